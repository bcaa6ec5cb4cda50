#include "krylov/twofold.hpp"

#include <cstdint>

#include "kernels/backend/run_fused.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

struct Rows {
  [[gnu::always_inline]] static void run(const SparseMatrix* a, const double* x, double* hi,
                                         double* lo, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0;
      double rest = 0;
      for (std::int64_t k = a->start[static_cast<std::size_t>(i)];
           k < a->start[static_cast<std::size_t>(i + 1)]; ++k) {
        const auto e = static_cast<std::size_t>(k);
        const DoubleDouble product = two_product(a->value[e], x[a->column[e]]);
        const DoubleDouble partial = two_sum(sum, product.hi);
        sum = partial.hi;
        rest += partial.lo + product.lo;
      }
      const DoubleDouble both = two_sum(sum, rest);
      hi[i] = both.hi;
      lo[i] = both.lo;
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

TwofoldVector zeros(const SparseMatrix& a) {
  const std::vector<double> none(static_cast<std::size_t>(a.rows));
  return {none, none};
}

}  // namespace

TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x) {
  TwofoldVector y = zeros(a);
  run_fused<Rows>(&a, x.data(), y.hi.data(), y.lo.data(), std::int64_t{0}, a.rows);
  return y;
}

TwofoldVector multiply_twofold(const SparseMatrix& a, std::span<const double> x, WorkCrew& crew) {
  TwofoldVector y = zeros(a);
  for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    run_fused<Rows>(&a, x.data(), y.hi.data(), y.lo.data(), begin, end);
  });
  return y;
}

std::vector<double> minus_multiple(const TwofoldVector& product, double theta,
                                   std::span<const double> x) {
  std::vector<double> r(x.size());
  run_fused<Remainders>(&product, theta, x.data(), r.data());
  return r;
}

std::vector<double> subtracted_from(std::span<const double> b, const TwofoldVector& product) {
  std::vector<double> r(b.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    const DoubleDouble difference = two_sum(b[i], -product.hi[i]);
    r[i] = difference.hi + (difference.lo - product.lo[i]);
  }
  return r;
}

}  // namespace strata
