// Method: Householder's reduction and QL (small_eigen.hpp) have every value to rounding of the
// largest. Where that does not resolve what is wanted, as at the small end of a graded matrix,
// Jacobi's rotations follow (jacobi_eigen.hpp), which take longer and have small values to digits
// of their own. Which of both is better is seen from the pairs themselves. Values within rounding
// of the last one that is wanted come in any order: all of these are certified, and the wanted ones
// chosen by what is certified.

#include "krylov/dense_eigs.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "dense/jacobi_eigen.hpp"

namespace strata {
namespace {

/// Elements that rotations may change, a few seconds' worth.
constexpr std::int64_t kRotatedMax = 1'500'000'000;

SquareMatrix<double> dense_matrix(const SparseMatrix& a) {
  SquareMatrix<double> dense(a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
         k < a.start[static_cast<std::size_t>(i + 1)]; ++k)
      dense(i, a.column[static_cast<std::size_t>(k)]) = a.value[static_cast<std::size_t>(k)];
  }
  return dense;
}

/// Pairs from the wanted end inwards, and how many of them are not resolved, with those that might
/// take their places.
struct Chosen {
  std::vector<std::int64_t> columns;
  std::int64_t unresolved = 0;
};

Chosen choose(const CertifiedMatrix& of, const SymmetricEigen& eigen, const EigsOptions& options) {
  const std::int64_t n = of.a.rows;
  const double sign = options.which == EigenEnd::smallest ? 1 : -1;
  const auto column = [&](std::int64_t j) { return sign > 0 ? j : n - 1 - j; };
  const auto value = [&](std::int64_t j) {
    return sign * eigen.values[static_cast<std::size_t>(column(j))];
  };
  const double rounding =
      8 * static_cast<double>(n) * std::numeric_limits<double>::epsilon() * of.norm;
  std::vector<CertifiedPair> pairs;
  for (std::int64_t j = 0; j < n && (j < options.k || value(j) <= value(options.k - 1) + rounding);
       ++j) {
    const std::span<const double> v(&eigen.vectors(0, column(j)), static_cast<std::size_t>(n));
    pairs.push_back(certified(of, v, options.tolerance));
  }
  const auto at = [&](std::int64_t j) -> const CertifiedPair& {
    return pairs[static_cast<std::size_t>(j)];
  };
  std::vector<std::int64_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, [&](std::int64_t i, std::int64_t j) {
    return sign * at(i).value < sign * at(j).value;
  });
  Chosen chosen;
  const double last = sign * at(order[static_cast<std::size_t>(options.k - 1)]).value;
  for (std::int64_t j = 0; j < std::ssize(order); ++j) {
    const CertifiedPair& pair = at(order[static_cast<std::size_t>(j)]);
    if (j < options.k) chosen.columns.push_back(column(order[static_cast<std::size_t>(j)]));
    if (j < options.k || sign * pair.value - pair.bound <= last)
      chosen.unresolved += pair.unresolved ? 1 : 0;
  }
  return chosen;
}

/// The chosen pairs alone.
SymmetricEigen taken(const SymmetricEigen& eigen, const Chosen& chosen) {
  SymmetricEigen some;
  some.vectors = SquareMatrix<double>(eigen.vectors.n);
  for (std::int64_t j = 0; j < std::ssize(chosen.columns); ++j) {
    const std::int64_t from = chosen.columns[static_cast<std::size_t>(j)];
    some.values.push_back(eigen.values[static_cast<std::size_t>(from)]);
    std::copy_n(&eigen.vectors(0, from), eigen.vectors.n, &some.vectors(0, j));
  }
  return some;
}

}  // namespace

SymmetricEigen dense_eigen(const CertifiedMatrix& of, const EigsOptions& options, WorkCrew& crew) {
  const auto go_on = [&] {
    require(!options.run.progress || options.run.progress({.what = "eigs"}), ErrorKind::cancelled,
            "eigs", "cancelled");
  };
  go_on();
  const SquareMatrix<double> dense = dense_matrix(of.a);
  const SymmetricEigen by_reduction = symmetric_eigen(dense, crew);
  go_on();
  if (by_reduction.values.empty()) return by_reduction;
  const Chosen first = choose(of, by_reduction, options);
  if (first.unresolved == 0) return taken(by_reduction, first);
  const SymmetricEigen by_rotations = jacobi_eigen(dense, kRotatedMax);
  go_on();
  if (by_rotations.values.empty()) return taken(by_reduction, first);
  const Chosen second = choose(of, by_rotations, options);
  return second.unresolved < first.unresolved ? taken(by_rotations, second)
                                              : taken(by_reduction, first);
}

/// The dense matrix, the vectors by reduction, and those, the matrix and the rotations of Jacobi's
/// method.
std::int64_t dense_eigen_bytes(std::int64_t n) {
  return 5 * n * n * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace strata
