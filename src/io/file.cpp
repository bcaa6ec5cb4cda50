#include "io/file.hpp"

#include <sys/mman.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "io/text.hpp"

namespace strata {

FileBytes::FileBytes(std::string bytes, std::string name)
    : held_(std::move(bytes)), name_(std::move(name)) {}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : held_(std::move(other.held_)),
      name_(std::move(other.name_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) ::munmap(const_cast<char*>(mapping_), mapping_bytes_);
}

FileBytes FileBytes::read(const std::string& path) try {
  std::string bytes = InputFile(path).read_all();
  if (is_gzip(bytes)) return {gunzip(bytes, path), path};
  require(!path.ends_with(".gz"), ErrorKind::input, "gzip", "{}: the data are not gzip", path);
  return {std::move(bytes), path};
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "file", "{} does not fit in memory", path);
} catch (const std::length_error&) {
  fail(ErrorKind::memory, "file", "{} does not fit in memory", path);
}

FileBytes FileBytes::map(const std::string& path) {
  {
    const InputFile file(path);
    FileBytes mapped({}, path);
    mapped.mapping_ = file.map();
    mapped.mapping_bytes_ = mapped.mapping_ != nullptr ? file.length() : 0;
    if (mapped.mapped() && !is_gzip(mapped.bytes()) && !path.ends_with(".gz")) return mapped;
  }
  return read(path);
}

FileBytes FileBytes::as_text(FileBytes file) try {
  std::optional<std::string> text = utf8_of_utf16(file.bytes(), file.name());
  if (!text) return file;
  return {std::move(*text), file.name()};
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "file", "the text does not fit in memory");
}

OutputFile open_output(const std::string& path) {
  if (!path.ends_with(".gz")) return OutputFile(path);
  auto encoder = std::make_shared<GzipEncoder>();
  return OutputFile(
      path, [encoder](std::string_view bytes, bool last) { return encoder->encode(bytes, last); });
}

}  // namespace strata
