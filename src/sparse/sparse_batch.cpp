// The public calls: see strata/sparse_batch.hpp.

#include "strata/sparse_batch.hpp"

#include <utility>

#include "sparse/fronts/front_batch.hpp"

namespace strata {

struct SparseCholeskyBatch::State {
  State(SparseAnalysis analysis, const SparseMatrix& pattern, std::int64_t count,
        const SparseCholeskyOptions& options)
      : batch(std::move(analysis), pattern, count, options) {}

  FrontBatch batch;
};

SparseCholeskyBatch::SparseCholeskyBatch(SparseAnalysis analysis, const SparseMatrix& pattern,
                                         std::int64_t count, const SparseCholeskyOptions& options)
    : state_(std::make_unique<State>(std::move(analysis), pattern, count, options)) {}
SparseCholeskyBatch::SparseCholeskyBatch(SparseCholeskyBatch&&) noexcept = default;
SparseCholeskyBatch& SparseCholeskyBatch::operator=(SparseCholeskyBatch&&) noexcept = default;
SparseCholeskyBatch::~SparseCholeskyBatch() = default;

std::int64_t SparseCholeskyBatch::n() const noexcept { return std::ssize(analysis().order); }
std::int64_t SparseCholeskyBatch::count() const noexcept { return state_->batch.count(); }
const SparseAnalysis& SparseCholeskyBatch::analysis() const noexcept {
  return state_->batch.analysis();
}
std::span<const FactorInfo> SparseCholeskyBatch::infos() const noexcept {
  return state_->batch.infos();
}
const RunReport& SparseCholeskyBatch::report() const noexcept { return state_->batch.report(); }
const RunReport& SparseCholeskyBatch::solves() const noexcept { return state_->batch.solves(); }

std::span<const FactorInfo> SparseCholeskyBatch::factor(MatrixView<const double> values,
                                                        double shift) {
  state_->batch.factor(values, shift);
  return infos();
}

void SparseCholeskyBatch::solve(MatrixView<double> b) const { state_->batch.solve(b); }

}  // namespace strata
