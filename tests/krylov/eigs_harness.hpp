#pragma once
// eigs() as tests call it.

#include <cstdint>
#include <vector>

#include "strata/krylov.hpp"

namespace strata::test {

struct Pairs {
  std::vector<double> vectors;
  EigsInfo info;
};
inline Pairs pairs(const SparseMatrix& a, const EigsOptions& options) {
  Pairs result{std::vector<double>(static_cast<std::size_t>(a.rows * options.k)), {}};
  result.info = eigs(a, {result.vectors.data(), a.rows, options.k, a.rows}, options);
  return result;
}

}  // namespace strata::test
