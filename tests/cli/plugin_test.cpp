// Which CUDA plugins the program takes: those of its own version alone.

#include <cstdlib>
#include <filesystem>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

/// The plugin that programs are told to load, for the time of a test.
class CliPlugin : public testing::Test {
 protected:
  ~CliPlugin() override { unsetenv("STRATA_CUDA_BACKEND"); }

  /// Why there is no CUDA device with this plugin, as `info` says it.
  static std::string why(const std::string& plugin) {
    // It lies beside the program of the tests.
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string file = folder / ("libfake_backend_" + plugin + ".so");
    setenv("STRATA_CUDA_BACKEND", file.c_str(), 1);
    const Json info = expect_json({"info"});
    EXPECT_EQ(info.at("backends").size(), 1U) << "the host alone";
    const auto text = info.at("cuda").get<std::string>();
    expect_pieces(text, {file});
    expect_refused({"plan", "cholesky", "--n", "10", "--devices", "cuda:0"}, 3,
                   {"no CUDA device: " + text});
    return text;
  }
};

const std::string kOwn = STRATA_BACKEND_VERSION;

TEST_F(CliPlugin, OfTheOwnVersionIsAsked) {
  const std::string text = why("same");
  expect_pieces(text, {"the fake has no devices"});
  EXPECT_EQ(text.find("built for"), std::string::npos) << text;
}

TEST_F(CliPlugin, OfAnotherVersionIsNotUsed) {
  const std::string text = why("other");
  expect_pieces(text, {"was built for version 0.0.9+0123456789ab, this is " + kOwn});
  EXPECT_EQ(text.find("no devices"), std::string::npos) << "it was called: " << text;
}

TEST_F(CliPlugin, OfBeforeVersionsIsNotUsed) {
  const std::string text = why("none");
  expect_pieces(text, {"strata_cuda_backend_version", "this is " + kOwn});
  EXPECT_EQ(text.find("no devices"), std::string::npos) << "it was called: " << text;
}

TEST_F(CliPlugin, AVersionNamesTheProjectAndTheInterface) {
  const Json info = expect_json({"info"});
  const std::size_t plus = kOwn.find('+');
  ASSERT_NE(plus, std::string::npos) << kOwn;
  EXPECT_EQ(kOwn.substr(0, plus), info.at("version"));
  EXPECT_EQ(kOwn.size() - plus - 1, 12U) << kOwn;
  EXPECT_EQ(kOwn.find_first_not_of("0123456789abcdef", plus + 1), std::string::npos) << kOwn;
}

}  // namespace
}  // namespace strata::test
