#pragma once
// Dense general systems, of any size the host can hold: LU with partial pivoting.
//
// Contract: A is square and never modified. One call serves matrices that fit on the device and
// matrices that do not. Rows are exchanged for the largest element of the whole column, ties for
// the first, as LAPACK's ?getrf does. With a panel of the caller's (LuOptions::panel: its columns)
// the factors have the same bits whatever the budget, the policy and the number of devices; by
// itself a call takes the panel that is predicted to be fastest. Arrays are in fp64, fp32,
// complex128 or complex64; complex elements are compared by |re| + |im|.

#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "strata/array_ref.hpp"
#include "strata/certificate.hpp"
#include "strata/options.hpp"

namespace strata {

/// A determinant, phase·mantissa·2^exponent with |phase| = 1 and 1/2 <= mantissa < 1, which seldom
/// overflows a pair of numbers; sign, phase and mantissa are 0 for a singular matrix.
struct Determinant {
  int sign = 1;  ///< of a real matrix; of a complex one 1
  double mantissa = 0.5;
  std::int64_t exponent = 1;
  std::complex<double> phase = 1;  ///< det/|det|; of a real matrix its sign

  /// log |det|, natural; −∞ for 0.
  [[nodiscard]] double log() const noexcept;
  /// The number itself, ±∞ or 0 where it leaves the range; of a complex matrix its magnitude.
  [[nodiscard]] double value() const noexcept;
  [[nodiscard]] std::complex<double> complex_value() const noexcept;
};

/// The numerical outcome of an LU factorization.
struct [[nodiscard]] LuInfo {
  bool ok = true;  ///< every pivot is a finite number and not zero
  /// First column, counted from 0, whose pivot is exactly zero: A is singular but for what was
  /// rounded before; −1: none.
  std::int64_t zero_pivot = -1;
  /// First column that holds, or where elimination produced, a NaN or an infinity; −1: none. Then
  /// the rest was not factored.
  std::int64_t not_finite = -1;
  /// Largest element met in elimination over the largest of A (Wilkinson 1961): up to 2^(n−1) with
  /// partial pivoting, hardly ever above n. Complex elements count by |re| + |im|.
  double growth = 1;
  Determinant determinant;
};

/// How a general matrix is factored.
struct LuOptions {
  RunOptions run{};
  /// Columns of a panel. 0: so many as simulate_lu() predicts the fastest run with on these
  /// devices, or, with `reproducible`, as follow from n and the kind of device alone.
  std::int64_t panel = 0;
  /// The same bits whatever the budget, the rates and the number of devices; only a budget that
  /// cannot hold the blocks of a task makes the panel narrower.
  bool reproducible = false;
  /// Large products of factors in fp32 on a GPU are made of two fp16 parts of each number, on
  /// tensor cores, and have some 21 bits: enough to precondition. solve_general_mixed() sets it.
  bool halves = false;
};

/// P·A = L·U in column panels in host memory. Move-only.
class LuFactor {
 public:
  LuFactor(LuFactor&&) noexcept;
  LuFactor& operator=(LuFactor&&) noexcept;
  ~LuFactor();

  [[nodiscard]] std::int64_t n() const noexcept;
  [[nodiscard]] const LuInfo& info() const noexcept;
  /// What the factorization did: times, traffic, memory.
  [[nodiscard]] const RunReport& report() const noexcept;

  /// B ← A⁻¹·B for n × nrhs right-hand sides, in the factor's precision. Throws Error{misuse} if
  /// the shapes or the precision do not fit or there is no factor to solve with.
  RunReport solve(ArrayRef b);
  /// B ← A⁻ᵀ·B.
  RunReport solve_transposed(ArrayRef b);
  /// B ← A⁻ᴴ·B, by the conjugate transposed matrix; of a real A as solve_transposed().
  RunReport solve_adjoint(ArrayRef b);

  /// LAPACK's pivots, counted from 1: row i was exchanged with row pivots[i − 1], i = 1 … n in this
  /// order.
  [[nodiscard]] std::vector<std::int64_t> pivots() const;
  /// LAPACK's factors: U on and above the diagonal of `out` (n × n), below it L with all exchanges
  /// applied and without its unit diagonal.
  void copy_factors(ArrayRef out) const;

  struct State;  ///< private to the library
  explicit LuFactor(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

/// Factors A (n × n). A numerical failure is in `info()`; everything else is thrown as Error.
[[nodiscard]] LuFactor lu(ConstArrayRef a, const LuOptions& options = {});
/// The same where A lies, so that beside a GPU the host holds one matrix: columns of n numbers, one
/// behind the other, which afterwards hold panels of L and U in an order of the library's own. They
/// outlive the factor, nobody else uses them meanwhile, and for a GPU they are page-locked.
/// copy_factors() needs another array. What is thrown while A is factored leaves nothing of it.
[[nodiscard]] LuFactor lu_overwriting(ArrayRef a, const LuOptions& options = {});

/// What `solve_general` hands back beside x.
struct GeneralSolveResult {
  /// As of positive definite systems, with these differences. `factor` holds the outcome of LU,
  /// its log_determinant is of |det A|. scaled_condition is an estimate of ‖S‖∞·‖S⁻¹‖∞ for
  /// S = R·A·C: columns have about 1 for their largest elements, before rows are divided by the
  /// sums of their magnitudes. It is Skeel's condition of A·C, which bad scaling does not raise.
  Certificate certificate;
  LuInfo info;
  /// A bound of what rounding did to log |det A|, and to the phase in radians; while it is finite
  /// the sign is right. As reliable as the estimates it takes. Inf: not a digit is known.
  double log_determinant_error = std::numeric_limits<double>::infinity();
  /// ‖b − A·x‖∞ / (u·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n), u = 2⁻⁵³ (2⁻²⁴ in fp32): what the HPL benchmark wants
  /// below 16.
  double hpl_residual = 0;
  /// What L and U are in: of solve_general the precision of X, of solve_general_mixed fp32 or
  /// complex64, unless it fell back.
  Element factor_precision = Element::fp64;
  int gmres_iterations = 0;  ///< of all columns that were solved by GMRES, of the certificate, too
  /// Why solve_general_mixed factored A again in fp64; empty: it did not.
  std::string fallback;
  RunReport factor;
  RunReport solve;
};

/// Solves A·X = B for n × nrhs right-hand sides; X may not overlap A or B. If A is singular or not
/// finite, X is left as it was and info.ok is false. X is refined until each column has a
/// componentwise backward error of a few ulps of its precision or steps no longer help, with
/// residuals in double-double where forward_error is above solution_error_wanted(). Where rows are
/// in units 2^10 and more apart, what is factored is A with rows and columns scaled by powers of
/// two. X has at most the precision of A. Everything else is as of solve() in strata/cholesky.hpp:
/// fp32, complex numbers, numbers near the ends of the range.
[[nodiscard]] GeneralSolveResult solve_general(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                               const LuOptions& options = {});

/// X ← A⁻¹, n × n: solve_general() with the identity. Refining and certifying n columns takes some
/// eight matrices of this size in host memory. The bounds are those of the worst column.
[[nodiscard]] GeneralSolveResult inverse_general(ConstArrayRef a, ArrayRef x,
                                                 const LuOptions& options = {});

/// X and certificate of solve_general() by factors in fp32 (complex64), which take half of the
/// memory and of the time. X is refined to the backward errors of fp64 by steps, or by GMRES with
/// the factors as preconditioner. Where they do not do, because A is singular in fp32, the backward
/// errors or the bounds are not those of fp64, A is factored again in fp64, and `fallback` says
/// why: what is handed back is then solve_general()'s. Rows and columns are scaled by powers of two
/// before they are rounded, so that no element leaves the range of fp32. Beside A the host holds
/// the factors alone; those in fp32 are gone when A is factored again. The determinant is that of
/// the factors. A and X are in fp64, or in complex128.
[[nodiscard]] GeneralSolveResult solve_general_mixed(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                                     const LuOptions& options = {});

/// A square matrix that is read some columns, or some rows, at a time, always alike: from a file,
/// or made anew, as by a method of moments. T is double or std::complex<double>.
template <class T>
struct MatrixSource {
  std::int64_t n = 0;
  bool by_rows = false;  ///< else by columns
  /// Columns (rows) first … first + count − 1, one behind the other, n numbers each. May be called
  /// by several threads at once; what it throws ends the run.
  std::function<void(std::int64_t first, std::int64_t count, T* to)> fill{};
};

/// n × n numbers that lie packed in a file, in the byte order of this machine.
struct MatrixInFile {
  std::string path;
  std::int64_t offset = 0;  ///< bytes before the first
  std::int64_t n = 0;
  Element element = Element::fp64;  ///< fp64, fp32, complex128 or complex64
  bool by_rows = false;             ///< else by columns
};
/// Reads it past the page cache of the system where the file system allows it. Throws Error{misuse}
/// for elements that are not real (complex) numbers, Error{storage} for a file that cannot be read
/// or is too short; `fill` throws Error{input} for a number that is not finite, with its place.
[[nodiscard]] MatrixSource<double> source_of(const MatrixInFile& matrix);
[[nodiscard]] MatrixSource<std::complex<double>> complex_source_of(const MatrixInFile& matrix);

/// L·U of a matrix in fp64 or complex128, or of one that was narrowed to fp32 or complex64, to be
/// kept in a file and to solve with later. Rows and columns are scaled by powers of two before they
/// are rounded and factored, so it serves any range; solutions are in fp64. With
/// RunOptions::storage it rests in files, and of host memory it takes what
/// RunOptions::host_memory_bytes allows. Move-only.
class GeneralFactor {
 public:
  /// Reads what save() wrote. Throws Error{input} for what is no such factor, or damaged;
  /// Error{memory}. If the directories of a factor in storage have moved, options.storage says
  /// where they are now; Error{storage} where they are not whole.
  [[nodiscard]] static GeneralFactor open(const std::string& directory,
                                          const RunOptions& options = {});
  /// Whether `directory` holds a factor of this kind, whole or not.
  [[nodiscard]] static bool is_at(const std::string& directory);
  GeneralFactor(GeneralFactor&&) noexcept;
  GeneralFactor& operator=(GeneralFactor&&) noexcept;
  ~GeneralFactor();

  [[nodiscard]] std::int64_t n() const noexcept;
  [[nodiscard]] Element precision() const noexcept;  ///< of L and U
  [[nodiscard]] const LuInfo& info() const noexcept;
  /// What the factorization did; of a factor that was read its order, panel and host memory.
  [[nodiscard]] const RunReport& report() const noexcept;
  /// As the last solve() with A certified them; files keep them. NaN: there was none.
  [[nodiscard]] double scaled_condition() const noexcept;
  [[nodiscard]] double log_determinant_error() const noexcept;
  [[nodiscard]] StoredParts stored() const;
  /// Whether A was given by rows (MatrixSource::by_rows): the transpose is factored then, and
  /// columns that LuInfo names are rows of A.
  [[nodiscard]] bool by_rows() const noexcept;
  /// Writes the file "factor" in a directory, which is made if need be; whole or absent. It says
  /// where a factor in storage rests. Throws Error{misuse} if there is no factor to solve
  /// with, Error{storage}.
  void save(const std::string& directory) const;

  /// X ← A⁻¹·B as the factors have it, of which nothing is known. X may be B. Throws Error{misuse}
  /// for shapes that do not fit, real numbers with a complex factor or the other way round, or
  /// where there is no factor to solve with.
  RunReport solve(ConstArrayRef b, ArrayRef x);
  /// The same, refined and certified as solve_general() and solve_general_mixed() do it with these
  /// factors, by the A that they are of. Nothing is factored again: `fallback` says what a factor
  /// in fp32 does not reach, and with another A not a digit of X is known. X is in fp64 or, with a
  /// complex factor, complex128.
  GeneralSolveResult solve(ConstArrayRef a, ConstArrayRef b, ArrayRef x);
  GeneralSolveResult solve(const MatrixSource<double>& a, ConstArrayRef b, ArrayRef x);
  GeneralSolveResult solve(const MatrixSource<std::complex<double>>& a, ConstArrayRef b,
                           ArrayRef x);

  struct State;  ///< private to the library
  explicit GeneralFactor(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

/// What the journal of a directory of storage, the first one, says; it may be in use. Throws
/// Error{storage} if it holds no such factor.
[[nodiscard]] FactorProgress general_factor_progress(const std::string& directory);

/// `precision`: of L and U, fp64 or fp32, of complex numbers that of their parts. A numerical
/// failure is in info(); everything else is thrown as Error.
[[nodiscard]] GeneralFactor factor_general(ConstArrayRef a, Element precision = Element::fp64,
                                           const LuOptions& options = {});
/// The same of a matrix that is never whole in memory. It is read three times: for its scales, to
/// tell it from others, and for its factors. Where it comes by rows it is read once more for its
/// scales, and its transpose is factored (GeneralFactor::by_rows()); where its rows or columns are
/// far apart, up to 26 times more for its scales.
[[nodiscard]] GeneralFactor factor_general(const MatrixSource<double>& a,
                                           Element precision = Element::fp64,
                                           const LuOptions& options = {});
[[nodiscard]] GeneralFactor factor_general(const MatrixSource<std::complex<double>>& a,
                                           Element precision = Element::fp64,
                                           const LuOptions& options = {});

/// What `lu` of order n would do on `machine`, without any data, as simulate_cholesky().
[[nodiscard]] RunReport simulate_lu(std::int64_t n, const Machine& machine,
                                    const LuOptions& options = {},
                                    Element precision = Element::fp64);

}  // namespace strata
