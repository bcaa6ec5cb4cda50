#pragma once
// LU of matrices that lie in the memory of a device already, and solves with it there.
//
// Contract: as device_cholesky.hpp: nothing is copied; work on matrices that the caller has started
// is done before a call, which returns when its result is there; calls for one device follow one
// another, whatever thread they come from. T is double, float, or std::complex of one of them. On
// "host" a call is carried out by one thread; for all cores there is lu().

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strata/matrix_view.hpp"

namespace strata {

struct DeviceLuOptions {
  /// "auto": the device in whose memory the matrix lies; "cuda:1"; "host".
  std::string device = "auto";
};

/// What elimination met. Sizes are |x|, of complex numbers |re| + |im|.
struct [[nodiscard]] DeviceLuInfo {
  bool ok = true;                ///< there are factors to solve with
  std::int64_t zero_pivot = -1;  ///< first column whose pivot is exactly zero
  std::int64_t not_finite = -1;  ///< first column that holds a NaN or an infinity afterwards
  double largest = 0;            ///< the largest element of A and of U
  double smallest_pivot = 0;     ///< on the diagonal of U
};

/// A ← L and U with P·A = L·U, n × n, in place: U on and above the diagonal, L below it without its
/// unit diagonal, in the order of rows that LAPACK's getrf leaves. Pivots, n × 1 in memory of the
/// same device: row j was exchanged with row pivots(j, 0) >= j, in the order of j, counted from 0.
/// The pivot is the first of the largest elements of its column, as in LAPACK. A zero pivot is a
/// value, and elimination goes on. Throws before anything is started. Error{misuse}: a matrix that
/// is not square, pivots of another shape, a leading dimension below n, no data, data that is not
/// aligned to its elements or not in memory of the device. Error{device}: there is no such device.
DeviceLuInfo lu_in_place(MatrixView<double> a, MatrixView<std::int64_t> pivots,
                         const DeviceLuOptions& options = {});
DeviceLuInfo lu_in_place(MatrixView<float> a, MatrixView<std::int64_t> pivots,
                         const DeviceLuOptions& options = {});
DeviceLuInfo lu_in_place(MatrixView<std::complex<double>> a, MatrixView<std::int64_t> pivots,
                         const DeviceLuOptions& options = {});
DeviceLuInfo lu_in_place(MatrixView<std::complex<float>> a, MatrixView<std::int64_t> pivots,
                         const DeviceLuOptions& options = {});

/// As lu_in_place() of many matrices, whose orders may differ; they are on one device and do not
/// overlap, pivots neither. Made for many small ones: on a GPU matrices of up to 256 rows are
/// factored beside each other, larger ones one after another. The result has one entry a matrix,
/// and what one meets changes nothing in the others. Throws as lu_in_place(), and Error{misuse}
/// unless there are as many vectors of pivots as matrices.
[[nodiscard]] std::vector<DeviceLuInfo> lu_batched(std::span<const MatrixView<double>> matrices,
                                                   std::span<const MatrixView<std::int64_t>> pivots,
                                                   const DeviceLuOptions& options = {});
[[nodiscard]] std::vector<DeviceLuInfo> lu_batched(std::span<const MatrixView<float>> matrices,
                                                   std::span<const MatrixView<std::int64_t>> pivots,
                                                   const DeviceLuOptions& options = {});
[[nodiscard]] std::vector<DeviceLuInfo> lu_batched(
    std::span<const MatrixView<std::complex<double>>> matrices,
    std::span<const MatrixView<std::int64_t>> pivots, const DeviceLuOptions& options = {});
[[nodiscard]] std::vector<DeviceLuInfo> lu_batched(
    std::span<const MatrixView<std::complex<float>>> matrices,
    std::span<const MatrixView<std::int64_t>> pivots, const DeviceLuOptions& options = {});

/// Which system is solved with the factors of A.
enum class DeviceLuSystem : std::uint8_t {
  plain,       ///< A·X = B
  transposed,  ///< Aᵀ·X = B
  adjoint      ///< Aᴴ·X = B
};

/// B ← X, n × m, by the factors and pivots that lu_in_place() left with info.ok; an exact zero on
/// the diagonal of U gives what a division by it gives. Throws as lu_in_place(), and Error{misuse}
/// for right-hand sides of another height and a system that does not exist.
void solve_in_place(MatrixView<const double> lu, MatrixView<const std::int64_t> pivots,
                    MatrixView<double> b, DeviceLuSystem system = DeviceLuSystem::plain,
                    const DeviceLuOptions& options = {});
void solve_in_place(MatrixView<const float> lu, MatrixView<const std::int64_t> pivots,
                    MatrixView<float> b, DeviceLuSystem system = DeviceLuSystem::plain,
                    const DeviceLuOptions& options = {});
void solve_in_place(MatrixView<const std::complex<double>> lu,
                    MatrixView<const std::int64_t> pivots, MatrixView<std::complex<double>> b,
                    DeviceLuSystem system = DeviceLuSystem::plain,
                    const DeviceLuOptions& options = {});
void solve_in_place(MatrixView<const std::complex<float>> lu, MatrixView<const std::int64_t> pivots,
                    MatrixView<std::complex<float>> b,
                    DeviceLuSystem system = DeviceLuSystem::plain,
                    const DeviceLuOptions& options = {});

}  // namespace strata
