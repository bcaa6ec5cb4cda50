// Member functions that the oracles of the tests call for every element, optimized. Tests are not
// optimized where a sanitizer looks on, and the linker takes the first of several instances
// (strata_link_libraries_first), which is to be one of these.

#include <complex>
#include <cstdint>
#include <vector>

#include "strata/matrix_view.hpp"
#include "tests/support/problems.hpp"

template class std::vector<float>;
template class std::vector<double>;
template class std::vector<long double>;
template class std::vector<std::complex<float>>;
template class std::vector<std::complex<double>>;
template class std::vector<std::uint8_t>;
template class std::vector<std::int32_t>;
template class std::vector<std::int64_t>;
template class std::vector<std::uint64_t>;
template class std::vector<std::vector<double>>;

namespace strata {

template struct MatrixView<float>;
template struct MatrixView<const float>;
template struct MatrixView<double>;
template struct MatrixView<const double>;
template struct MatrixView<std::complex<float>>;
template struct MatrixView<const std::complex<float>>;
template struct MatrixView<std::complex<double>>;
template struct MatrixView<const std::complex<double>>;

namespace test {

template struct Matrix<float>;
template struct Matrix<double>;
template struct Matrix<std::complex<float>>;
template struct Matrix<std::complex<double>>;

}  // namespace test
}  // namespace strata
