#pragma once
// Random samples of the data of a fit.
//
// Contract: equal arguments give equal samples; of one seed a smaller sample is part of a larger
// one.

#include <cstdint>
#include <span>
#include <vector>

#include "strata/geostat.hpp"

namespace strata {

struct Sample {
  Points points;
  std::vector<double> values;
};

/// `count` of the rows, drawn at random and in row order; all of them if there are no more.
[[nodiscard]] Sample make_sample(const Points& points, std::span<const double> values,
                                 std::int64_t count, std::uint64_t seed);

/// Drops the covariates whose coefficients a sample does not determine: one that marks few of the
/// points may be the same on all of the sample.
void drop_undetermined(Sample& sample, Mean mean, Distance distance);

/// The sizes of the samples on which a fit of n points begins, in ascending order. Each is a factor
/// of four in points and of 64 in work from the next. Evaluations of at most kSampleMin points cost
/// next to nothing; if there are no more points than that, all of them are the only sample.
inline constexpr std::int64_t kSampleMin = 500;
[[nodiscard]] std::vector<std::int64_t> sample_sizes(std::int64_t n);

}  // namespace strata
