#pragma once
// QR factorization of tall and skinny matrices, and least squares.
//
// Contract: V is m × n with m >= n, column-major; V = Q·R with R upper triangular and its diagonal
// not negative. With more than kQrColumnsMax columns `automatic` takes blocks one after the other.
// Q takes the place of V. Misuse (m < n, shapes that do not fit) is Error{misuse}. An element that
// is NaN or infinite is Error{input} with its row and column. A finite column whose length exceeds
// the largest number of its precision, which R could not hold, is Error{input} with its number. V
// is then as it was. Everything else is told by QrInfo, never hidden.
//
// The result has the same bits for any number of devices, any budget and policy, in core or
// streamed, and from run to run: the order of every sum follows from m and n. With fewer than 20
// columns it has the same on CPUs and GPUs, with more where QrOptions::wide_sums is not automatic.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/element.hpp"
#include "strata/machine.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"
#include "strata/qr_method.hpp"

namespace strata {

/// Columns that a kernel holds at a time. qr() and qr_in_place() by `automatic` take more, and so
/// does least_squares(), which copies A then; the other methods, qr_r(), TallQr and the simulations
/// do not, and say in Error{misuse} what does.
inline constexpr std::int64_t kQrColumnsMax = 512;

/// How sums of products of doubles are formed in double-double, over the rows of tall matrices.
/// Both are as exact as that format; their last bits differ.
enum class WideSums : std::uint8_t {
  automatic,   ///< on GPUs alone, of 20 columns or more: digits; else extraction
  extraction,  ///< by floating-point operations, with the same bits on CPUs and GPUs
  digits,      ///< by integers, on the tensor cores of GPUs; many times slower on CPUs, same bits
};

/// What becomes of columns that depend on those before them.
enum class DependentColumns : std::uint8_t {
  drop,  ///< Q has `rank` columns, the rest of V is zeros; R has `rank` rows, the rest zeros
  fill,  ///< Q has n orthonormal columns; R has zeros in the rows of those that are not of V
};

struct QrOptions {
  QrMethod method = QrMethod::automatic;
  DependentColumns dependent = DependentColumns::drop;
  /// The last pass also adds up QᵀQ, so that `orthogonality` is measured, at no further
  /// reading of V; `automatic` then goes on until its promise is kept.
  bool verify = true;
  /// With `automatic` columns are dependent whose distance from the span of those before them,
  /// relative to their own length and to a factor of √2, is at most this. 0: those that are so
  /// exactly, as the numbers of V are stored (of more than kQrColumnsMax columns, to
  /// 5e-15·√n). n·2^-52 takes those for dependent that were computed from others in fp64. Below
  /// 0.1.
  double rank_tolerance = 0;
  std::uint32_t seed = 0;  ///< of random sketches, below 2^28
  WideSums wide_sums = WideSums::automatic;
  RunOptions run{};  ///< devices, budgets, policy, progress
};

/// One factor that was taken off V.
struct QrStep {
  /// "cholesky", "shifted cholesky", "eigenvalues", "sketch", "cgs", "tsqr", …
  std::string what;
  bool wide_sum = false;    ///< its Gram matrix was in twice the digits of V
  bool wide_solve = false;  ///< and so was the solve
  /// An estimate from below, by its own triangle, of the columns before it at unit length;
  /// infinite: a pivot failed.
  double condition = 0;
  /// ‖I − QᵀQ‖ of the columns behind it, in the Frobenius norm; NaN: not measured.
  double orthogonality = std::numeric_limits<double>::quiet_NaN();
};

struct QrInfo {
  /// Whether Q is orthonormal within 1e-14·√n (fp32: 1e-5·√n), where that is known, by any method.
  /// With `automatic` also that the residual is within as much (and twice the rank tolerance) and
  /// the rank certain. With the others also that the last Cholesky factorization did not fail, and
  /// that what R loses at the lower end of the range is within the same.
  bool ok = false;
  /// n without dependent columns; by TSQR, which names none, without columns of zeros.
  std::int64_t rank = 0;
  /// Columns farther than n roundings of T, beside their length, from the span of those before
  /// them: `rank` without those that may have been computed from others. By the diagonal of R.
  std::int64_t numerical_rank = 0;
  std::vector<std::int64_t> dependent_columns;  ///< by number from 0, increasing
  /// Condition of V with its columns scaled to length 1, in the 2-norm, without dependent columns.
  /// An upper bound, by any method; infinite where none is known. From `automatic` it is a few
  /// percent above κ to 1e12 and where columns are near those of few others, more beyond, and
  /// infinite where Q came by reflections of a V of κ above 1e14 or so. Other methods know none
  /// where what they round hides the smallest singular value (TSQR from 1e11 or 1e12 on, and with a
  /// column of zeros), or where the orthogonality is NaN.
  double condition = 0;
  /// ‖I − QᵀQ‖, of the columns that are not dependent. Measured: the Frobenius norm, an upper bound
  /// of the 2-norm; of `automatic` with (4·√n + n)·2^-53 for what rounding does to sums in fp64.
  /// Else a bound, of `automatic` and TSQR; NaN of the other methods, and where no Q was asked for.
  double orthogonality = 0;
  bool measured = false;
  /// The largest ‖v_j − Q·r_j‖/‖v_j‖: an upper bound from what each pass rounds, or, where
  /// `automatic` went by reflections, measured by random combinations of rows. NaN of other methods
  /// than `automatic` and TSQR where the orthogonality is.
  double residual = std::numeric_limits<double>::quiet_NaN();
  int passes = 0;           ///< over V
  int failed_cholesky = 0;  ///< factorizations that met a pivot that is not positive
  int shifts = 0;           ///< that were added to one for this
  /// Whether squares of columns that are not zeros could have overflowed or underflowed, so that
  /// they were scaled first, which took two more passes (three of TSQR, which scales columns
  /// shorter than 2^-960 alone). A column of zeros takes one more, in which it is told from one
  /// whose squares underflow.
  bool rescaled = false;
  QrMethod method = QrMethod::automatic;
  std::vector<QrStep> steps;  ///< in their order; of more than kQrColumnsMax columns none
  RunReport report;           ///< of all passes
};

/// A tall matrix that is only read, in either order: as NumPy has it, rows one after the other, it
/// need not be turned round first. May lie in a mapped file (NpyFile) larger than memory.
template <class T>
struct TallInput {
  MatrixView<const T> view;  ///< m × n; where `by_rows`, its transpose, n × m
  bool by_rows = false;

  [[nodiscard]] std::int64_t rows() const noexcept { return by_rows ? view.cols : view.rows; }
  [[nodiscard]] std::int64_t cols() const noexcept { return by_rows ? view.rows : view.cols; }
  [[nodiscard]] const T& operator()(std::int64_t i, std::int64_t j) const noexcept {
    return by_rows ? view(j, i) : view(i, j);
  }
};

/// V ← Q, and R, n × n, written as a whole. Where the one device is a CPU without a budget, V is
/// worked on where it lies; else it passes through the devices. Throws Error{misuse, input, memory,
/// device, cancelled}; after one of the last three V may hold anything.
QrInfo qr(MatrixView<double> v, MatrixView<double> r, const QrOptions& options = {});
/// Sums are in fp64 where they are wide.
QrInfo qr(MatrixView<float> v, MatrixView<float> r, const QrOptions& options = {});
/// The same with Q, m × n, in a place of its own; V is not written. It is read once more than Q is
/// written by the methods of Gram and Schmidt, and for more than kQrColumnsMax columns. By
/// `automatic`, a V that is larger than the memory of the devices is read by each pass, and Q is
/// stored by the last alone, whatever the condition, where blocks of both fit there.
QrInfo qr(const TallInput<double>& v, MatrixView<double> q, MatrixView<double> r,
          const QrOptions& options = {});
QrInfo qr(const TallInput<float>& v, MatrixView<float> q, MatrixView<float> r,
          const QrOptions& options = {});

/// R alone, as NumPy's qr(mode="r"): V, of at most kQrColumnsMax columns, is only read. Once, where
/// the condition of its unit columns is at most 9e14 (fp32: 9e6); beyond, and where columns depend
/// on others, twice, to tell rank and condition; two more times where it is `rescaled`, one more
/// where a column is zeros. There are orthonormal columns Q with ‖v_j − Q·r_j‖ <= 1e-14·√n·‖v_j‖
/// for each column (fp32: 1e-5·√n), as of qr(); where that has one solve (κ to 9.5e7; fp32: 2.3e4)
/// R has the bits of its R. `method` is automatic, `verify` has no meaning; of `dependent`, `drop`
/// gives R `rank` rows and zeros below them, `fill` leaves zeros in the rows of dependent columns.
/// `orthogonality` is NaN: there is no Q. `ok` says that R is what is promised here. Throws as
/// qr().
QrInfo qr_r(const TallInput<double>& v, MatrixView<double> r, const QrOptions& options = {});
QrInfo qr_r(const TallInput<float>& v, MatrixView<float> r, const QrOptions& options = {});

/// V = Q·R with a Q that is not stored: what is kept is V itself, which is only read and has to
/// stay as it is, and the triangles whose inverses make Q of it. Q has the bits of qr()'s with the
/// same options, the automatic method and `drop`, as long as one last solve there is enough, as it
/// was in every test. T is double or float. Move-only; calls of one object follow one another.
///
/// V, of at most kQrColumnsMax columns, is read once where the condition of its unit columns is at
/// most 9.5e7 (fp32: 2.3e4), twice up to 9e14 (9e6), beyond that up to three times. It is read
/// twice more where it is `rescaled`, once more where a column is zeros; and once by each call. It
/// stays on the devices between calls where there is room.
template <class T>
class TallQr {
 public:
  /// Finds the triangles. Throws as qr(), and Error{misuse} for another method than automatic, for
  /// `fill`, and for more columns. `verify` is for write().
  explicit TallQr(const TallInput<T>& v, const QrOptions& options = {});
  TallQr(TallQr&&) noexcept;
  TallQr& operator=(TallQr&&) noexcept;
  ~TallQr();

  [[nodiscard]] std::int64_t rows() const noexcept;  ///< of V and Q
  [[nodiscard]] std::int64_t cols() const noexcept;  ///< of Q: the rank of V
  /// R, cols() × the columns of V.
  [[nodiscard]] MatrixView<const T> r() const noexcept;
  /// `passes` and `report` are those of the constructor. The orthogonality is a bound from the
  /// condition, until write() has measured it: ‖I − QᵀQ‖ <= 1e-14·√n (fp32: 1e-5·√n).
  [[nodiscard]] const QrInfo& info() const noexcept;

  /// Y ← Q·C, C of cols() × k and Y of rows() × k. Each element is a sum in fp64 by fused
  /// multiply-adds, columns of Q ascending, rounded to T. V is read once for every 128 columns of
  /// C. Throws Error{misuse, memory, device, cancelled}; after one of the last three Y may hold
  /// anything. Returns what the run took.
  RunReport apply(MatrixView<const T> c, MatrixView<T> y);
  /// C ← Qᵀ·B, B of rows() × k, read once, and C of cols() × k, in sums of twice the digits of T,
  /// rounded last. V is read once for every 128 columns of B. Throws Error{misuse, memory, device,
  /// cancelled}, and Error{input} with its place for an element of B that is not finite, or for a
  /// column of B that is so long that its products overflow.
  RunReport apply_transposed(const TallInput<T>& b, MatrixView<T> c);
  /// Q into a place of its own, rows() × cols(), in one pass; it may lie in a mapped file
  /// (NpyOutput). With `verify` that pass also measures the orthogonality, for info(). Throws as
  /// apply().
  RunReport write(MatrixView<T> q);

  struct State;  ///< private to the library

 private:
  std::unique_ptr<State> state_;
};
extern template class TallQr<double>;
extern template class TallQr<float>;

/// qr() of a V that lies in the memory of a device already, with any leading dimension; Q takes
/// its place, and nothing of its size is copied. R is in host memory. `options.run.devices` names
/// the device: "auto" is the one in whose memory V lies; budgets, policy and queues have no
/// meaning. What the caller has started on V has to be done before the call; calls for one device
/// follow one another, whatever thread they come from. The bits are those of qr(). Throws as qr(),
/// and Error{misuse} for a V that is not in memory of the device, Error{device} if there is no such
/// device.
QrInfo qr_in_place(MatrixView<double> v, MatrixView<double> r, const QrOptions& options = {});
QrInfo qr_in_place(MatrixView<float> v, MatrixView<float> r, const QrOptions& options = {});

/// The same of a V in parts: ranges of its rows, in their order, each in the memory of a device of
/// its own, all of one kind; every part but the last that has rows has a multiple of
/// qr_part_multiple() of them. "auto" are the devices in whose memory the parts lie; "cuda:0,1"
/// names one for each. A device reads and writes its own rows alone: what travels are sums. The
/// bits are those of qr() of the whole. Throws as qr_in_place() of one matrix, and Error{misuse}
/// for more than 32 parts, parts that are cut elsewhere, two on one device, or a text that names
/// another number of devices.
QrInfo qr_in_place(std::span<const MatrixView<double>> parts, MatrixView<double> r,
                   const QrOptions& options = {});
QrInfo qr_in_place(std::span<const MatrixView<float>> parts, MatrixView<float> r,
                   const QrOptions& options = {});
/// Where a V of n columns may be cut: a power of two, of rows, because of the order of sums. Throws
/// Error{misuse} for a negative n; so does the next one, for m and less than one part too.
[[nodiscard]] std::int64_t qr_part_multiple(std::int64_t n);
/// Rows of each part but the last, which has what is left, where V is dealt evenly: such a
/// multiple. Where V is short the last parts have none.
[[nodiscard]] std::int64_t qr_part_rows(std::int64_t m, std::int64_t n, int parts);

/// One pass over V as it is planned.
struct QrPass {
  std::string what;  ///< which sums and solves, and in what: "solve in fp64, Gram matrix in dd"
  Traffic traffic;
  double predicted_seconds = 0;
};
struct QrPlan {
  RunReport report;            ///< of all passes; `seconds` is 0: nothing runs
  std::vector<QrPass> passes;  ///< in their order
};

/// What qr(), with Q in the place of V, of an m × n matrix of unit columns of condition `condition`
/// would do on `machine` by the automatic method, without any data: its passes, their bytes, memory
/// and predicted seconds. n at most kQrColumnsMax. Throws Error{misuse, memory} as qr() would.
[[nodiscard]] QrPlan simulate_qr(std::int64_t m, std::int64_t n, const Machine& machine,
                                 const QrOptions& options = {}, Element precision = Element::fp64,
                                 double condition = 1);

/// The same of qr_r().
[[nodiscard]] QrPlan simulate_qr_r(std::int64_t m, std::int64_t n, const Machine& machine,
                                   const QrOptions& options = {}, Element precision = Element::fp64,
                                   double condition = 1);

struct LeastSquaresInfo {
  bool ok = false;  ///< error_bound is below 1e-6, and no column of A depends on others
  std::int64_t rank = 0;
  /// Columns of A, as qr() finds them; their coefficients are 0, so x is one of many.
  std::vector<std::int64_t> dependent_columns;
  double condition = 0;  ///< as of QrInfo
  /// ‖b_k − A·x_k‖₂ of x as it is written, for each b_k, however small.
  std::vector<double> residual_norm;
  /// Error of x, relative to the norm of x with the columns of A scaled to length 1, and to the
  /// largest element of x as it is; the larger of both, and of all b_k. That is what rounding does
  /// to x, from the condition, the residual and, where x was refined, the last step. Infinite where
  /// nothing is known.
  double error_bound = 0;
  int refinements = 0;  ///< each read A and b once more, on the host
  /// R of A (n × n, column-major, zeros below the diagonal) and Qᵀb = R·x (n × k): RᵀR = AᵀA. Rows
  /// of dependent columns are zeros.
  std::vector<double> r, qtb;
  RunReport report;
};

struct LeastSquaresOptions {
  WideSums wide_sums = WideSums::automatic;
  RunOptions run{};  ///< devices, budgets, policy, progress
};

/// x (n × k) that minimizes ‖b − A·x‖₂ for each of the k columns of b, from the Gram matrix of [A
/// b] in double-double. A and b are read once (once more where a column is zeros or the residual is
/// near rounding, twice more where squares could overflow or underflow) and not written. Where that
/// is not good for six digits, x is refined, a reading a step, with this R, that of qr_r(), or that
/// of a copy of A which becomes Q; so are more than kQrColumnsMax columns of [A b]. Throws as qr();
/// m >= n.
LeastSquaresInfo least_squares(MatrixView<const double> a, MatrixView<const double> b,
                               MatrixView<double> x, const LeastSquaresOptions& options = {});
LeastSquaresInfo least_squares(const TallInput<double>& a, const TallInput<double>& b,
                               MatrixView<double> x, const LeastSquaresOptions& options = {});

}  // namespace strata
