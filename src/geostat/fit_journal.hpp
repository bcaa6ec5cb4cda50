#pragma once
// The journal of a fit: its finished evaluations, in a file, so that an interrupted fit goes on.
//
// Contract: the file begins with what the evaluations depend on (the version, the data, the options
// that decide the way of the search), one a line; then a line for each evaluation, numbers in
// hexadecimal so that they come back bit for bit. It is written anew, beside and then renamed, for
// each evaluation. Devices, memory and tiles are not part of it: a fit may go on elsewhere.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "geostat/fit_space.hpp"
#include "geostat/gaussian_process.hpp"

namespace strata {

struct JournalEntry {
  int stage = 0;
  FitSpace::Values at{};
  GaussianProcess::Evaluation evaluation;
  double seconds = 0;
  bool lower_failed = false;  ///< lower precisions were asked for and failed: it was made in FP64
};

class FitJournal {
 public:
  /// Reads `path` if it is there. Throws Error{input} if that is no journal or one of other inputs,
  /// naming what differs; Error{storage} if it cannot be written.
  FitJournal(std::string path, const Points& points, std::span<const double> values,
             const FitOptions& options);

  /// If the next entry of the file was made at `entry`'s stage and place, fills in the rest and
  /// goes on to the one after. Throws Error{input} if it was made elsewhere.
  [[nodiscard]] bool replay(JournalEntry& entry);
  /// Appends one, behind all that were replayed. Throws Error{storage}.
  void add(const JournalEntry& entry);

 private:
  void read();
  [[nodiscard]] JournalEntry parse(const std::string& line) const;

  std::string path_;
  std::vector<std::string> header_;
  std::vector<std::string> lines_;  ///< of the evaluations
  std::size_t replayed_ = 0;
};

}  // namespace strata
