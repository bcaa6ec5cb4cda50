// Instances of one library side by side: fake_openblas.cpp, with a DT_SONAME and without.

#include "base/private_library.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace strata::testing {
namespace {

std::string beside_this_program(const std::string& file) {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / file).string();
}

/// The setting of one instance, through its own functions.
struct Instance {
  explicit Instance(void* library)
      : handle(library),
        get(reinterpret_cast<int (*)()>(dlsym(library, "openblas_get_num_threads"))),
        set(reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"))) {}

  void* handle;
  int (*get)();
  void (*set)(int);
};

class PrivateCopy : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static Instance make() {
    const PrivateLibrary library = open_private_copy(beside_this_program(GetParam()));
    EXPECT_NE(library.handle, nullptr) << library.why;
    return Instance(library.handle);
  }
};

TEST_P(PrivateCopy, SharesNothingWithOneThatIsThere) {
  const std::string path = beside_this_program(GetParam());
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const Instance theirs(loaded);
  theirs.set(7);
  const Instance ours = make();
  const Instance another = make();
  ours.set(1);
  another.set(2);
  EXPECT_EQ(theirs.get(), 7);
  EXPECT_EQ(ours.get(), 1);
  EXPECT_EQ(another.get(), 2);
  theirs.set(8);
  EXPECT_EQ(ours.get(), 1);
  for (void* handle : {ours.handle, another.handle, loaded}) dlclose(handle);
}

TEST_P(PrivateCopy, IsNotFoundByThoseWhoComeLater) {
  const std::string path = beside_this_program(GetParam());
  const Instance ours = make();
  ours.set(1);
  for (const std::string& name : {path, std::string(GetParam())})
    EXPECT_EQ(dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr) << name;
  void* const loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  const Instance theirs(loaded);
  EXPECT_NE(theirs.get, ours.get);
  theirs.set(5);
  EXPECT_EQ(ours.get(), 1);
  for (void* handle : {ours.handle, loaded}) dlclose(handle);
}

TEST_P(PrivateCopy, CallsAreRedirectedInThatInstanceAlone) {
  const Instance ours = make();
  const Instance another = make();
  const auto number = [](const Instance& instance) {
    return reinterpret_cast<long (*)(const char*)>(dlsym(instance.handle, "fake_number"))("17");
  };
  EXPECT_EQ(number(another), 17);
  const auto answer = +[](const char*, char**, int) -> long { return 42; };
  // A C library of 2023 and later may have another function of this meaning.
  EXPECT_TRUE(redirect_calls(ours.handle, "strtol", reinterpret_cast<void*>(answer)) ||
              redirect_calls(ours.handle, "__isoc23_strtol", reinterpret_cast<void*>(answer)));
  EXPECT_EQ(number(ours), 42);
  EXPECT_EQ(number(another), 17);
  EXPECT_EQ(std::strtol("17", nullptr, 10), 17);
  EXPECT_FALSE(redirect_calls(ours.handle, "no_such_function", reinterpret_cast<void*>(answer)));
  for (void* handle : {ours.handle, another.handle}) dlclose(handle);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutAName, PrivateCopy,
                         ::testing::Values("libfake_openblas.so", "libfake_unnamed.so"),
                         [](const auto& info) { return info.index == 0 ? "Named" : "Unnamed"; });

TEST(PrivateCopyOf, NothingOrAText) {
  const PrivateLibrary absent = open_private_copy("/no/such/library.so");
  EXPECT_EQ(absent.handle, nullptr);
  EXPECT_NE(absent.why.find("/no/such/library.so"), std::string::npos) << absent.why;
  const std::string file = ::testing::TempDir() + "/strata_private_library_text";
  for (const std::string& text : {std::string(), std::string("no library"),
                                  std::string("\177ELF") + std::string(200, '\0')}) {
    std::ofstream(file) << text;
    const PrivateLibrary library = open_private_copy(file);
    EXPECT_EQ(library.handle, nullptr);
    EXPECT_NE(library.why.find("no shared library"), std::string::npos) << library.why;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace strata::testing
