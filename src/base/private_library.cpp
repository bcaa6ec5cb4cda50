#include "base/private_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace strata {
namespace {

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3; before, a memory file is executable anyway
#endif

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }
  void keep_open() { descriptor_ = -1; }

 private:
  int descriptor_;
};

int memory_file() {
  const int file = memfd_create("strata-private-library", MFD_CLOEXEC | MFD_EXEC);
  if (file >= 0 || errno != EINVAL) return file;
  return memfd_create("strata-private-library", MFD_CLOEXEC);
}

bool copy_file(int from, int to) {
  struct stat status {};
  if (fstat(from, &status) != 0) return false;
  off_t done = 0;
  while (done < status.st_size) {
    const ssize_t sent = sendfile(to, from, &done, static_cast<std::size_t>(status.st_size - done));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
  }
  return true;
}

template <class T>
bool read_at(int file, ElfW(Off) offset, T& value) {
  return pread(file, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value;
}

/// Where the dynamic section of a shared library of this machine lies in its file.
std::optional<ElfW(Phdr)> dynamic_segment(int file) {
  ElfW(Ehdr) header{};
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr))) {
    return std::nullopt;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    if (!read_at(file, header.e_phoff + i * sizeof segment, segment)) return std::nullopt;
    if (segment.p_type == PT_DYNAMIC) return segment;
  }
  return std::nullopt;
}

/// Puts DT_SYMBOLIC in the place of the library's name, or, if it has none, of the first of the
/// null entries at the end, where there is a second.
bool make_nameless_and_symbolic(int file) {
  const std::optional<ElfW(Phdr)> segment = dynamic_segment(file);
  if (!segment) return false;
  std::optional<ElfW(Off)> place;
  for (ElfW(Off) at = 0; at + sizeof(ElfW(Dyn)) <= segment->p_filesz; at += sizeof(ElfW(Dyn))) {
    ElfW(Dyn) entry{};
    if (!read_at(file, segment->p_offset + at, entry)) return false;
    if (entry.d_tag == DT_SONAME) place = segment->p_offset + at;
    if (entry.d_tag != DT_NULL) continue;
    if (!place && at + 2 * sizeof entry <= segment->p_filesz) place = segment->p_offset + at;
    break;
  }
  ElfW(Dyn) symbolic{};
  symbolic.d_tag = DT_SYMBOLIC;
  return place && pwrite(file, &symbolic, sizeof symbolic, static_cast<off_t>(*place)) ==
                      static_cast<ssize_t>(sizeof symbolic);
}

/// What the dynamic section of a loaded library says of its relocations.
struct Relocations {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  struct Table {
    const ElfW(Rela) * first = nullptr;
    std::size_t bytes = 0;
  };
  std::array<Table, 2> tables;  // of procedures, of data

  explicit Relocations(const link_map& library) {
    ElfW(Sxword) kind = DT_RELA;
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (entry->d_tag == DT_JMPREL) tables[0].first = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_RELA) tables[1].first = reinterpret_cast<const ElfW(Rela)*>(address);
      if (entry->d_tag == DT_PLTRELSZ) tables[0].bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_RELASZ) tables[1].bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_PLTREL) kind = static_cast<ElfW(Sxword)>(entry->d_un.d_val);
    }
    if (symbols == nullptr || names == nullptr || kind != DT_RELA) tables = {};
  }
};

/// Writes to memory that the loader may have made read-only behind its relocations.
bool overwrite(ElfW(Addr) place, void* value) {
  const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  void* const from = reinterpret_cast<void*>(place & ~(page - 1));
  if (mprotect(from, page, PROT_READ | PROT_WRITE) != 0) return false;
  std::memcpy(reinterpret_cast<void*>(place), &value, sizeof value);
  return true;
}

std::string system_reason(const char* what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

}  // namespace

bool redirect_calls(void* handle, const std::string& function, void* target) {
  link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return false;
  const Relocations relocations(*library);
  bool found = false;
  for (const Relocations::Table& table : relocations.tables) {
    for (std::size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& entry = table.first[i];
      const ElfW(Sym)& symbol = relocations.symbols[ELF64_R_SYM(entry.r_info)];
      if (ELF64_R_SYM(entry.r_info) == 0 || function != relocations.names + symbol.st_name)
        continue;
      if (!overwrite(library->l_addr + entry.r_offset, target)) return false;
      found = true;
    }
  }
  return found;
}

PrivateLibrary open_private_copy(const std::string& path) {
  const File source(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return {nullptr, system_reason(path.c_str())};
  File copy(memory_file());
  if (copy.get() < 0) return {nullptr, system_reason("memfd_create")};
  if (!copy_file(source.get(), copy.get())) return {nullptr, system_reason("no copy in memory")};
  if (!make_nameless_and_symbolic(copy.get())) {
    return {nullptr, fmt::format("{} is no shared library of this machine", path)};
  }
  const std::string name = fmt::format("/proc/self/fd/{}", copy.get());
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, dlerror()};
  // The loader takes two files of one name for one: the number must not be given out again.
  copy.keep_open();
  return {handle, {}};
}

}  // namespace strata
