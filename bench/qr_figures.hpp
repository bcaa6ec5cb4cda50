#pragma once
// Experiments of bench qr --figures: those of Yamazaki, Tomov and Dongarra, SIAM J. Sci. Comput. 37
// (2015), on the machine at hand.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/block_errors.hpp"
#include "strata/options.hpp"
#include "strata/qr.hpp"

namespace strata::bench {

/// Figure 3: what one factorization does, counted in its trace, without what only checks Q.
struct MethodCounts {
  QrMethod method = QrMethod::cholqr;
  double flops = 0;
  std::int64_t reductions = 0;  ///< sums over all rows that the next step waits for
  std::string kernel;           ///< what it runs on
  std::string bound;  ///< of ‖I − QᵀQ‖, κ the condition of V, ε that of its precision
};
/// Counts for a random matrix of n columns with as many rows as two blocks have.
[[nodiscard]] std::vector<MethodCounts> count_methods(std::int64_t n);

/// Figures 5 to 13: a method applied to V, and to its own Q again.
struct PassErrors {
  std::string matrix;
  QrMethod method = QrMethod::cholqr;
  double condition = 0;             ///< of V with unit columns, an estimate
  std::vector<FactorError> errors;  ///< after each pass
  std::vector<double> conditions;   ///< of Q after each pass
};
/// The four matrices: "K20" and "K30", 20 and 30 powers of the 33 × 33 Laplacian over 4 times ones.
/// "Hilbert", the leading 100 × 100 part of the matrix of 1/(i + j + 1). "synthetic", a row of ones
/// above a diagonal of random numbers of a rounding, 101 × 100.
[[nodiscard]] std::vector<PassErrors> run_pass_errors(int passes,
                                                      const std::vector<QrMethod>& methods,
                                                      const RunOptions& options);

/// Figure 4: whole calls in place, on one device and on each number of those that there are.
struct RatePoint {
  std::int64_t m = 0;
  std::string what;  ///< "mgs", "mgs, 2 devices", or the peer
  double seconds = 0;
  double flops_per_second = 0;  ///< 2·m·n² over the seconds, whatever the method does
};
[[nodiscard]] std::vector<RatePoint> run_rates(const std::vector<std::int64_t>& rows,
                                               std::int64_t n, const std::vector<QrMethod>& methods,
                                               int repeats, const RunOptions& options);

/// Figure 15: instructions in doubles for one product that is added to a double-double sum, counted
/// by running the arithmetic of the kernels on a type that counts; of extraction with the carry
/// that comes once in 32.
struct ProductCount {
  std::string what;
  double additions = 0;
  double multiplications = 0;
  double fused = 0;

  [[nodiscard]] double total() const noexcept { return additions + multiplications + fused; }
};
[[nodiscard]] std::vector<ProductCount> count_products();

/// Figure 14: what sums in double-double by extraction may be tuned by, and what is taken. On a GPU
/// all shapes of a thread block (kernels/tall/gram_shape.hpp); on a CPU rows of a block.
struct TunedSum {
  std::int64_t n = 0;
  int edge = 0;                              ///< of the square of pairs of a thread, …
  int units = 0;                             ///< … units at once, …
  int threads = 0, columns = 0, panels = 0;  ///< … and what follows: of a block, of a panel, of V
  std::int64_t rows = 0;                     ///< of a block, on a CPU
  bool taken = false;
  double seconds = 0;  ///< the median
};
[[nodiscard]] std::vector<TunedSum> run_tuned_sums(const std::vector<std::int64_t>& columns,
                                                   std::int64_t m, int repeats,
                                                   const RunOptions& options);

/// Figures 18 and 19: kernels beside those of QrBench. Those in floats ("gram s", "gram ss", and on
/// a CPU "openblas sgemm" and "openblas ssyrk") run on the first device that the options name, the
/// factorization of a Gram matrix ("cholesky", "cholesky dd") on the host.
struct KernelSeconds {
  std::int64_t n = 0;
  std::string what;
  double seconds = 0;  ///< the median
};
[[nodiscard]] std::vector<KernelSeconds> run_other_kernels(const std::vector<std::int64_t>& columns,
                                                           std::int64_t m, int repeats,
                                                           const RunOptions& options);

}  // namespace strata::bench
