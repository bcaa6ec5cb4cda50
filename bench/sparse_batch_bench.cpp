#include "bench/sparse_batch_bench.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/numbers_there.hpp"
#include "bench/sparse_matrices.hpp"
#include "strata/sparse_batch.hpp"

namespace strata::bench {
namespace {

struct BatchRuns {
  Runs factor, solve, factor_there, solve_there;

  [[nodiscard]] BatchTimes times() const {
    return {factor.timing(), solve.timing(), factor_there.timing(), solve_there.timing()};
  }
};

class BatchRunner {
 public:
  BatchRunner(const SparseMatrix& lower, std::int64_t count, const SparseBench& bench)
      : lower_(lower),
        count_(count),
        options_(bench.options),
        batch_(analyze(lower, bench.options.analysis), lower, count, bench.options),
        one_(batch_.analysis(), lower, bench.options) {
    b_.resize(static_cast<std::size_t>(lower.rows * count));
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = random_uniform(7, i) - 0.5;
  }

  void run(int repeat, BatchRow& row) {
    values_.clear();
    for (std::int64_t k = 0; k < count_; ++k) {
      const auto seed = static_cast<std::uint64_t>(repeat * count_ + k);
      const std::vector<double> value = rescaled(lower_, seed).value;
      values_.insert(values_.end(), value.begin(), value.end());
    }
    std::vector<double> x = b_;
    run_together(x);
    row.path = batch_.report().path.empty() ? "planned" : batch_.report().path;
    for (const FactorInfo& info : batch_.infos())
      require(info.ok, ErrorKind::input, "bench", "{} is not positive definite: row {}", row.name,
              info.first_bad_pivot);
    std::vector<double> alone = b_;
    run_one_by_one(alone);
    const std::int64_t n = lower_.rows;
    row.different = 0;
    for (std::int64_t k = 0; k < count_; ++k) {
      const std::span<const double> own = std::span(x).subspan(at(k * n), at(n));
      const std::vector<double> b(b_.begin() + k * n, b_.begin() + (k + 1) * n);
      row.backward_error = std::max(row.backward_error, backward_error(matrix(k), b, own));
      if (std::memcmp(own.data(), &alone[at(k * n)], at(n) * sizeof(double)) != 0) ++row.different;
    }
    if (row.path == "resident") run_there();
  }

  void put(BatchRow& row) const {
    row.flops = batch_.analysis().counts.flops;
    row.together = together_.times();
    row.one_by_one = one_by_one_.times();
  }

 private:
  [[nodiscard]] static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] std::int64_t entries() const { return std::ssize(lower_.value); }
  [[nodiscard]] SparseMatrix matrix(std::int64_t k) const {
    SparseMatrix a = lower_;
    a.value.assign(values_.begin() + k * entries(), values_.begin() + (k + 1) * entries());
    return a;
  }

  void run_together(std::vector<double>& x) {
    const std::int64_t n = lower_.rows;
    together_.factor.time(false, [&] {
      (void)batch_.factor({values_.data(), entries(), count_, entries()});
    });
    together_.solve.time(false, [&] { batch_.solve({x.data(), n, count_, n}); });
  }

  /// Each is solved with before the next one is factored; the seconds of either are added up.
  void run_one_by_one(std::vector<double>& x) {
    const std::int64_t n = lower_.rows;
    std::vector<SparseMatrix> matrices;
    for (std::int64_t k = 0; k < count_; ++k) matrices.push_back(matrix(k));
    Runs factor;
    Runs solve;
    for (std::int64_t k = 0; k < count_; ++k) {
      factor.time(false, [&] { (void)one_.refactor(matrices[at(k)]); });
      solve.time(false, [&] { one_.solve({&x[at(k * n)], n, 1, n}); });
    }
    one_by_one_.factor.add_sum_of(factor);
    one_by_one_.solve.add_sum_of(solve);
  }

  void run_there() {
    const std::int64_t n = lower_.rows;
    NumbersThere there(options_.run, std::ssize(values_));
    const double* values = there.put(values_);
    together_.factor_there.time(false, [&] {
      (void)batch_.factor({values, entries(), count_, entries()});
    });
    NumbersThere sides(options_.run, std::ssize(b_));
    double* x = sides.put(b_);
    together_.solve_there.time(false, [&] { batch_.solve({x, n, count_, n}); });
    x = sides.put(b_);
    Runs factor;
    Runs solve;
    for (std::int64_t k = 0; k < count_; ++k) {
      factor.time(false, [&] {
        (void)one_.refactor_values({values + k * entries(), at(entries())});
      });
      solve.time(false, [&] { one_.solve({x + k * n, n, 1, n}); });
    }
    one_by_one_.factor_there.add_sum_of(factor);
    one_by_one_.solve_there.add_sum_of(solve);
  }

  const SparseMatrix& lower_;
  std::int64_t count_;
  SparseCholeskyOptions options_;
  SparseCholeskyBatch batch_;
  SparseCholesky one_;
  std::vector<double> values_, b_;
  BatchRuns together_, one_by_one_;
};

}  // namespace

BatchRow run_batch_bench(const std::string& name, const SparseMatrix& a, std::int64_t count,
                         const SparseBench& bench) {
  const SparseMatrix lower = lower_triangle(a);
  BatchRow row;
  row.name = name;
  row.n = a.rows;
  row.count = count;
  BatchRunner runner(lower, count, bench);
  for (int r = 0; r < bench.repeats; ++r) runner.run(r, row);
  runner.put(row);
  return row;
}

}  // namespace strata::bench
