#pragma once
// StoredPlace: what the file of a factor says of where its blocks rest in storage.
//
// Contract: directories that are the file's own are named by nothing, so that all may be moved
// together; others by absolute paths.

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

class ChecksumReader;
class ChecksumWriter;

struct StoredPlace {
  std::uint64_t matrix = 0;                ///< StorageOptions::matrix
  std::vector<std::string> directories{};  ///< empty: blocks are in the file

  /// As the file in `directory` names these.
  [[nodiscard]] static StoredPlace seen_from(const std::string& directory, std::uint64_t matrix,
                                             const std::vector<std::string>& others);
  /// As a file in `directory` names them.
  [[nodiscard]] std::vector<std::string> directories_from(const std::string& directory) const;
};

void save_place(const StoredPlace& place, ChecksumWriter& writer);
/// Throws Error{input} for a file at `path` that names no directories.
[[nodiscard]] StoredPlace read_place(ChecksumReader& reader, const std::string& path);

}  // namespace strata
