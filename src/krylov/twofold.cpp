#include "krylov/twofold.hpp"

#include <cmath>
#include <cstdint>

#include "kernels/backend/run_fused.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

struct Rows {
  [[gnu::always_inline]] static void run(const SparseMatrix* a, const double* x, TwofoldVector* y,
                                         std::int64_t begin, std::int64_t end) {
    constexpr double kWhole = 0x1p-960;  // a product of 106 bits is not below the least double
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0;
      double rest = 0;
      bool underflows = false;
      for (std::int64_t k = a->start[static_cast<std::size_t>(i)];
           k < a->start[static_cast<std::size_t>(i + 1)]; ++k) {
        const auto e = static_cast<std::size_t>(k);
        const double unknown = x[a->column[e]];
        const DoubleDouble product = two_product(a->value[e], unknown);
        underflows |= std::abs(product.hi) < kWhole && a->value[e] != 0 && unknown != 0;
        const DoubleDouble partial = two_sum(sum, product.hi);
        sum = partial.hi;
        rest += partial.lo + product.lo;
      }
      const DoubleDouble both = two_sum(sum, rest);
      const auto row = static_cast<std::size_t>(i - begin);
      y->hi[row] = both.hi;
      y->lo[row] = both.lo;
      y->underflows[row] = underflows ? 1 : 0;
    }
  }
};

struct Remainders {
  [[gnu::always_inline]] static void run(const TwofoldVector* product, double theta,
                                         const double* x, double* r) {
    for (std::size_t i = 0; i < product->hi.size(); ++i) {
      const DoubleDouble multiple = two_product(theta, x[i]);
      const DoubleDouble difference = two_sum(product->hi[i], -multiple.hi);
      r[i] = difference.hi + (difference.lo + (product->lo[i] - multiple.lo));
    }
  }
};

}  // namespace

TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x) {
  return multiply_twofold(a, x, 0, a.rows);
}

TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x, std::int64_t begin,
                               std::int64_t end) {
  const auto rows = static_cast<std::size_t>(end - begin);
  TwofoldVector y{std::vector<double>(rows), std::vector<double>(rows),
                  std::vector<unsigned char>(rows)};
  run_fused<Rows>(&a, x.data(), &y, begin, end);
  return y;
}

std::vector<double> minus_multiple(const TwofoldVector& product, double theta,
                                   std::span<const double> x) {
  std::vector<double> r(x.size());
  run_fused<Remainders>(&product, theta, x.data(), r.data());
  return r;
}

}  // namespace strata
