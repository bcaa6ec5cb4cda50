#pragma once
// Products with a square matrix for residuals, as a SlabbedMatrix has them, made elsewhere than on
// the host.
//
// Contract: A is the matrix's element. MatrixOnDevices keeps A beside a factor on the devices of
// its session; it comes there with the first product, or came with the factorization. The array and
// the session outlive it. Sums are in fp64 or wider, in an order of their own.

#include <cstdint>
#include <memory>
#include <vector>

#include "lu/lu_tasks.hpp"
#include "scalar/complex.hpp"
#include "session/session.hpp"
#include "store/memory_store.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"

namespace strata {

template <class A>
class MatrixProducts {
 public:
  using W = WideOf<A>;
  MatrixProducts() = default;
  MatrixProducts(const MatrixProducts&) = delete;  // others may have its address
  MatrixProducts& operator=(const MatrixProducts&) = delete;
  virtual ~MatrixProducts() = default;

  /// R ← R − op(A)·X, op(A) being A or, if `adjoint`, its (conjugate) transposed.
  virtual void residual(bool adjoint, MatrixView<const W> x, MatrixView<W> r) = 0;
  /// R ← B − A·X, summed up in double-double and then rounded.
  virtual void residual_dd(MatrixView<const W> b, MatrixView<const W> x, MatrixView<W> r) = 0;
  /// Y ← Y + |A|·X for X >= 0.
  virtual void add_magnitudes(MatrixView<const double> x, MatrixView<double> y) = 0;
};

/// A product that tells a copy of A from A (Freivalds, "Fast probabilistic algorithms", 1979).
template <class A>
struct ProbeProduct {
  std::vector<double> v{};
  std::vector<WideOf<A>> product{};  ///< A·v
  std::vector<double> magnitudes{};  ///< at least |A|·|v|
};

/// Throws Error{device} where `products` are those of another matrix than the probe's, by more than
/// sums are rounded: a fault of a copy would be in the factor and in the residuals alike, and
/// certificates would not show it. What is not seen of row i is below 8·(n + 8)·2⁻⁵³ of its
/// magnitudes.
template <class A>
void require_same_matrix(MatrixProducts<A>& products, const ProbeProduct<A>& probe);

template <class A>
class MatrixOnDevices final : public MatrixProducts<A> {
 public:
  using W = WideOf<A>;

  /// `problem`: its order, panel and devices, and the names that the matrix and its factor have on
  /// them; `factor`: where that goes if it has to make room, null where there is none. What
  /// products do is added to `report`, which outlives it.
  MatrixOnDevices(Session& session, MatrixView<const A> a, const MatrixProductProblem& problem,
                  std::shared_ptr<FamilyMemory> factor, RunReport& report);

  void residual(bool adjoint, MatrixView<const W> x, MatrixView<W> r) override;
  void residual_dd(MatrixView<const W> b, MatrixView<const W> x, MatrixView<W> r) override;
  void add_magnitudes(MatrixView<const double> x, MatrixView<double> y) override;

 private:
  /// The sums of all devices for some columns of X, of which the first device begins with `y`.
  template <class V, class Take>
  void multiply(std::uint32_t variant, MatrixView<const V> x, MatrixView<const V> y,
                const Take& take);

  Session& session_;
  MatrixView<const A> a_;
  MatrixProductProblem problem_;
  std::shared_ptr<FamilyMemory> factor_;
  RunReport& report_;
};

}  // namespace strata
