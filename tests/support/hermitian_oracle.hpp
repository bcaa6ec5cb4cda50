#pragma once
// What is true of a Hermitian system A·x = b: x, log|A|, and errors of an x that was computed.
//
// Contract: no complex arithmetic, and nothing of the library's. With A = B + C·i, x = u + v·i the
// real symmetric system [B −C; C B]·[u; v] = [Re b; Im b] is eliminated in numbers of 113 bits; its
// determinant is |A|². The lower triangle of A is read, and of its diagonal the real part.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace strata::test {

__extension__ using Quad = __float128;

class HermitianOracle {
 public:
  /// A is anything with rows and a complex element (i, j).
  template <class A>
  explicit HermitianOracle(const A& a) : n_(a.rows), u_(static_cast<std::size_t>(4 * n_ * n_)) {
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j < n_; ++j) {
        const auto z = a(std::max(i, j), std::min(i, j));
        const Quad re = z.real();
        const Quad im = i == j ? Quad{0} : i > j ? Quad(z.imag()) : -Quad(z.imag());
        of(i, j) = re;
        of(n_ + i, n_ + j) = re;
        of(n_ + i, j) = im;
        of(i, n_ + j) = -im;
      }
    }
    for (std::int64_t k = 0; k < 2 * n_; ++k) {  // L·D·Lᵀ, without pivoting
      if (!(of(k, k) > 0)) {
        definite_ = false;
        return;
      }
      log_determinant_ += std::log(static_cast<long double>(of(k, k))) / 2;
      for (std::int64_t i = k + 1; i < 2 * n_; ++i) {
        const Quad factor = of(i, k) / of(k, k);
        if (factor == 0) continue;
        for (std::int64_t j = k + 1; j < 2 * n_; ++j) of(i, j) -= factor * of(k, j);
        of(i, k) = factor;
      }
    }
  }
  [[nodiscard]] bool definite() const { return definite_; }
  [[nodiscard]] double log_determinant() const { return static_cast<double>(log_determinant_); }

  /// ‖x − A⁻¹·b‖∞ / ‖x‖∞ of column c.
  template <class B, class X>
  [[nodiscard]] double forward_error(const B& b, const X& x, std::int64_t c) const {
    std::vector<Quad> y;
    for (std::int64_t i = 0; i < n_; ++i) y.push_back(b(i, c).real());
    for (std::int64_t i = 0; i < n_; ++i) y.push_back(b(i, c).imag());
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    for (std::int64_t k = 0; k < 2 * n_; ++k)
      for (std::int64_t i = k + 1; i < 2 * n_; ++i) y[at(i)] -= of(i, k) * y[at(k)];
    for (std::int64_t k = 2 * n_; k-- > 0;) {
      for (std::int64_t j = k + 1; j < 2 * n_; ++j) y[at(k)] -= of(k, j) * y[at(j)];
      y[at(k)] /= of(k, k);
    }
    double error = 0;
    double size = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const auto re = static_cast<double>(y[at(i)] - Quad(x(i, c).real()));
      const auto im = static_cast<double>(y[at(n_ + i)] - Quad(x(i, c).imag()));
      error = std::max(error, std::hypot(re, im));
      size = std::max(size, static_cast<double>(std::hypot(x(i, c).real(), x(i, c).imag())));
    }
    return error == 0 ? 0 : error / size;
  }

 private:
  [[nodiscard]] Quad& of(std::int64_t i, std::int64_t j) {
    return u_[static_cast<std::size_t>(i + j * 2 * n_)];
  }
  [[nodiscard]] const Quad& of(std::int64_t i, std::int64_t j) const {
    return u_[static_cast<std::size_t>(i + j * 2 * n_)];
  }

  std::int64_t n_;
  std::vector<Quad> u_;
  bool definite_ = true;
  long double log_determinant_ = 0;
};

/// Backward errors of x in column c by sums of parts in 113 bits, over all of A as it is given.
struct HermitianErrors {
  double normwise = 0;
  double componentwise = 0;
};
template <class A, class B, class X>
HermitianErrors hermitian_errors(const A& a, const B& b, const X& x, std::int64_t c) {
  double residual = 0, norm_a = 0, norm_x = 0, norm_b = 0;
  HermitianErrors errors;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    Quad re = b(i, c).real(), im = b(i, c).imag();
    const double of_b = std::hypot(double(b(i, c).real()), double(b(i, c).imag()));
    double row = 0, terms = of_b;
    for (std::int64_t j = 0; j < a.rows; ++j) {
      re -= Quad(a(i, j).real()) * x(j, c).real() - Quad(a(i, j).imag()) * x(j, c).imag();
      im -= Quad(a(i, j).real()) * x(j, c).imag() + Quad(a(i, j).imag()) * x(j, c).real();
      const double size = std::hypot(double(a(i, j).real()), double(a(i, j).imag()));
      row += size;
      terms += size * std::hypot(double(x(j, c).real()), double(x(j, c).imag()));
    }
    const double r = std::hypot(static_cast<double>(re), static_cast<double>(im));
    residual = std::max(residual, r);
    if (r > 0) errors.componentwise = std::max(errors.componentwise, r / terms);
    norm_a = std::max(norm_a, row);
    norm_b = std::max(norm_b, of_b);
    norm_x = std::max(norm_x, std::hypot(double(x(i, c).real()), double(x(i, c).imag())));
  }
  errors.normwise = residual == 0 ? 0 : residual / (norm_a * norm_x + norm_b);
  return errors;
}

}  // namespace strata::test
