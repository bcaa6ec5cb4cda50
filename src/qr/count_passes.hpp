#pragma once
// The tasks of passes over a tall matrix that sketch it by CountSketch.
//
// Contract: emits tasks only. C, sketch_buckets(n) × n in fp64, is the sketch of V·diag(d) with the
// kind SketchKind::count and the seed of problem.variant, and B what the pass makes of it
// (row_passes.hpp). Family rows::kScales has d and n ones. Spans of rows of which sums are one
// chain belong to one device; they are summed in the order of SumTree, so no bit depends on blocks
// or devices.

#include "qr/row_passes.hpp"

namespace strata {

[[nodiscard]] Schedule count_pass(const RowProblem& problem);

}  // namespace strata
