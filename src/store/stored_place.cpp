#include "store/stored_place.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/checksum_file.hpp"

namespace strata {

StoredPlace StoredPlace::seen_from(const std::string& directory, std::uint64_t matrix,
                                   const std::vector<std::string>& others) {
  StoredPlace place{matrix, {}};
  for (const std::string& other : others) {
    std::error_code error;
    const bool same = std::filesystem::equivalent(directory, other, error);
    place.directories.push_back(same ? "" : std::filesystem::absolute(other, error).string());
  }
  return place;
}

std::vector<std::string> StoredPlace::directories_from(const std::string& directory) const {
  std::vector<std::string> all;
  for (const std::string& name : directories) all.push_back(name.empty() ? directory : name);
  return all;
}

void save_place(const StoredPlace& place, ChecksumWriter& writer) {
  std::vector<char> names;
  for (const std::string& directory : place.directories) {
    names.insert(names.end(), directory.begin(), directory.end());
    names.push_back('\n');
  }
  writer.add(place.matrix);
  writer.add(names);
}

StoredPlace read_place(ChecksumReader& reader, const std::string& path) {
  StoredPlace place;
  std::vector<char> names;
  reader.read(place.matrix);
  reader.read(names);
  for (auto begin = names.begin(); begin != names.end();) {
    const auto end = std::find(begin, names.end(), '\n');
    require(end != names.end(), ErrorKind::input, "factor", "'{}' names no directories", path);
    place.directories.emplace_back(begin, end);
    begin = end + 1;
  }
  require(!place.directories.empty(), ErrorKind::input, "factor", "'{}' names no directories",
          path);
  return place;
}

}  // namespace strata
