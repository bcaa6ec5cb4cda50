#pragma once
// The file of an analysis on its way to the disk.
//
// Contract: complete under a temporary name once it is constructed; publish() makes it visible,
// and without that nothing is left. Throws Error{storage, cancelled}.

#include <string>

#include "base/checksum_file.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

class AnalysisFile {
 public:
  /// `analysis` is well formed.
  AnalysisFile(const SparseAnalysis& analysis, const std::string& path);
  void publish() { writer_.publish(); }

 private:
  ChecksumWriter writer_;
};

}  // namespace strata
