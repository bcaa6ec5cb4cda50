#pragma once
// A folder of its own for a test, and what tests of readers share.
//
// Contract: the folder is made by the constructor and removed with everything in it.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "strata/error.hpp"

namespace strata::test {

class Scratch {
 public:
  Scratch() {
    std::string pattern = ::testing::TempDir() + "/strata-io-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  /// Writes a file and returns its path.
  [[nodiscard]] std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  /// The names in the folder, so that a test sees what was left behind.
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

 private:
  std::string folder_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Calls f, which must throw Error of this kind with a message of one line that contains each
/// piece.
template <class F>
void expect_error(ErrorKind kind, const std::vector<std::string>& pieces, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& piece : pieces) {
      EXPECT_NE(message.find(piece), std::string::npos)
          << "'" << piece << "' is not in: " << message;
    }
    return;
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << ::testing::PrintToString(pieces);
}

}  // namespace strata::test
