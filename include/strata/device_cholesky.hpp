#pragma once
// Cholesky of matrices that lie in the memory of a device already.
//
// Contract: the lower triangle of A becomes L; what lies above the diagonal and below row n is
// neither read nor written. Nothing is copied. Work on the matrix that the caller has started is
// done before the call; the call returns when L is there. Calls for one device follow one another,
// whatever thread they come from. T is double or float, or std::complex of one of them, of
// Hermitian matrices; the imaginary part of their diagonal is not read, and is zero afterwards.

#include <complex>
#include <span>
#include <string>
#include <vector>

#include "strata/cholesky.hpp"
#include "strata/cholesky_options.hpp"

namespace strata {

struct DeviceCholeskyOptions {
  /// "auto": the device in whose memory the matrix lies; "cuda:1"; "host".
  std::string device = "auto";
  /// As in CholeskyBlocking; zeros: as tuned. Complex matrices have one way.
  CholeskyVariant variant = CholeskyVariant::automatic;
  int recnb = 0;
  int nb = 0;
};

/// A ← L with L·Lᴴ = A, n × n, in place. After a failure, which is a value, the columns from the
/// bad pivot on hold no meaning. Throws before anything is started. Error{misuse}: a matrix that is
/// not square, a leading dimension below n, no data, data that is not aligned to its elements or
/// not in memory of the device, values of recnb or nb that do not exist. Error{device}: there is no
/// such device.
FactorInfo cholesky_in_place(MatrixView<double> a, const DeviceCholeskyOptions& options = {});
FactorInfo cholesky_in_place(MatrixView<float> a, const DeviceCholeskyOptions& options = {});
FactorInfo cholesky_in_place(MatrixView<std::complex<double>> a,
                             const DeviceCholeskyOptions& options = {});
FactorInfo cholesky_in_place(MatrixView<std::complex<float>> a,
                             const DeviceCholeskyOptions& options = {});

/// The same for many matrices of equal or different orders on one device, which do not overlap; a
/// failure of one leaves the others as they are. Nothing is started if one of them is refused.
[[nodiscard]] std::vector<FactorInfo> cholesky_batched(std::span<const MatrixView<double>> matrices,
                                                       const DeviceCholeskyOptions& options = {});
[[nodiscard]] std::vector<FactorInfo> cholesky_batched(std::span<const MatrixView<float>> matrices,
                                                       const DeviceCholeskyOptions& options = {});
[[nodiscard]] std::vector<FactorInfo> cholesky_batched(
    std::span<const MatrixView<std::complex<double>>> matrices,
    const DeviceCholeskyOptions& options = {});
[[nodiscard]] std::vector<FactorInfo> cholesky_batched(
    std::span<const MatrixView<std::complex<float>>> matrices,
    const DeviceCholeskyOptions& options = {});

}  // namespace strata
