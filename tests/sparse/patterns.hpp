#pragma once
// Sparse symmetric matrices of tests, and their factorization by the definition.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata::test {

/// The graph of its pattern, by so many threads.
inline SymmetricPattern pattern_of(const SparseMatrix& a, int threads = 1) {
  WorkCrew crew(threads - 1);
  return symmetric_pattern(a, crew);
}

enum class Give { lower, upper, both };

/// Edges of a graph, as one likes, with a diagonal.
class Edges {
 public:
  explicit Edges(std::int64_t n) : n_(n) {}
  void add(std::int64_t i, std::int64_t j) {
    if (i != j) edges_.emplace_back(std::max(i, j), std::min(i, j));
  }
  [[nodiscard]] SparseMatrix matrix(Give give = Give::lower) const {
    std::vector<std::int64_t> row;
    std::vector<std::int64_t> col;
    auto unique = edges_;
    std::sort(unique.begin(), unique.end());
    unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
    const auto put = [&](std::int64_t i, std::int64_t j) {
      row.push_back(i);
      col.push_back(j);
    };
    for (const auto& [i, j] : unique) {
      if (give != Give::upper) put(i, j);
      if (give != Give::lower) put(j, i);
    }
    for (std::int64_t i = 0; i < n_; ++i) put(i, i);
    return sparse_from_entries(n_, n_, row, col, std::vector<double>(row.size(), 1.0));
  }

 private:
  std::int64_t n_;
  std::vector<std::pair<std::int64_t, std::int64_t>> edges_;
};

/// Points of a grid whose coordinates differ by at most 1: in one of them (5 or 7 points), or in
/// any (9 or 27); each with `unknowns` unknowns.
inline SparseMatrix grid(std::int64_t p, std::int64_t q, std::int64_t r, bool corners = false,
                         std::int64_t unknowns = 1) {
  Edges edges(p * q * r * unknowns);
  const auto id = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return ((z * q) + y) * p + x;
  };
  for (std::int64_t i = 0; i < p * q * r; ++i) {
    const std::int64_t x = i % p;
    const std::int64_t y = i / p % q;
    const std::int64_t z = i / p / q;
    for (std::int64_t m = 0; m < 27; ++m) {
      const std::int64_t X = x + m % 3 - 1;
      const std::int64_t Y = y + m / 3 % 3 - 1;
      const std::int64_t Z = z + m / 9 - 1;
      if (X < 0 || X >= p || Y < 0 || Y >= q || Z < 0 || Z >= r) continue;
      if (!corners && std::abs(X - x) + std::abs(Y - y) + std::abs(Z - z) > 1) continue;
      for (std::int64_t u = 0; u < unknowns * unknowns; ++u)
        edges.add(i * unknowns + u / unknowns, id(X, Y, Z) * unknowns + u % unknowns);
    }
  }
  return edges.matrix();
}

struct Family {
  std::string name;
  SparseMatrix matrix;
};

/// Small members of the families that factorizations meet.
inline std::vector<Family> families() {
  const auto made = [](std::int64_t n, const std::function<void(Edges&)>& fill) {
    Edges edges(n);
    fill(edges);
    return edges.matrix();
  };
  return {
      {"nothing", made(0, [](Edges&) {})},
      {"one", made(1, [](Edges&) {})},
      {"two apart", made(2, [](Edges&) {})},
      {"two", made(2, [](Edges& e) { e.add(0, 1); })},
      {"diagonal", made(37, [](Edges&) {})},
      {"chain", made(53,
                     [](Edges& e) {
                       for (int i = 1; i < 53; ++i) e.add(i, i - 1);
                     })},
      {"star, hub first", made(61,
                               [](Edges& e) {
                                 for (int i = 1; i < 61; ++i) e.add(0, i);
                               })},
      {"star, hub last", made(61,
                              [](Edges& e) {
                                for (int i = 0; i < 60; ++i) e.add(60, i);
                              })},
      {"arrowhead of width 3", made(47,
                                    [](Edges& e) {
                                      for (int i = 0; i < 47; ++i)
                                        for (int k = 44; k < 47; ++k) e.add(i, k);
                                    })},
      {"dense", made(23,
                     [](Edges& e) {
                       for (int i = 0; i < 23 * 23; ++i) e.add(i % 23, i / 23);
                     })},
      {"blocks", made(60,
                      [](Edges& e) {
                        for (int i = 0; i < 60; ++i)
                          for (int k = i - i % 5; k < i; ++k) e.add(i, k);
                      })},
      {"forest", made(64,
                      [](Edges& e) {
                        for (int i = 0; i < 64; ++i)
                          if (i % 16 < 14) e.add(i, i - i % 16 + (i % 16) / 2 + 8);
                      })},
      {"two grids and isolated rows", made(60,
                                           [](Edges& e) {
                                             for (int i = 0; i < 50; ++i) {
                                               if (i % 5 != 4) e.add(i, i + 1);
                                               if (i % 25 < 20) e.add(i, i + 5);
                                             }
                                           })},
      {"a dense row in a chain", made(40,
                                      [](Edges& e) {
                                        for (int i = 1; i < 40; ++i) e.add(i, i - 1), e.add(i, 17);
                                      })},
      {"grid 7 × 9", grid(7, 9, 1)},
      {"grid 8 × 8, nine points", grid(8, 8, 1, true)},
      {"grid 4 × 5 × 3", grid(4, 5, 3)},
      {"grid 4 × 4 × 4, 27 points", grid(4, 4, 4, true)},
      {"hexahedra 3 × 2 × 3, 3 unknowns", grid(3, 2, 3, true, 3)},
  };
}

/// Members that are large enough for several threads to share them, made anew.
inline std::vector<Family> made_large_families(Give give) {
  const auto made = [give](std::int64_t n, const std::function<void(Edges&)>& fill) {
    Edges edges(n);
    fill(edges);
    return edges.matrix(give);
  };
  const auto add_grid = [](Edges& e, std::int64_t side,
                           const std::function<std::int64_t(std::int64_t)>& row) {
    for (std::int64_t i = 0; i < side * side * side; ++i) {
      if (i % side != side - 1) e.add(row(i), row(i + 1));
      if (i / side % side != side - 1) e.add(row(i), row(i + side));
      if (i / side / side != side - 1) e.add(row(i), row(i + side * side));
    }
  };
  constexpr std::int64_t kSide = 32;
  constexpr std::int64_t kGrid = kSide * kSide * kSide;
  return {
      {"nothing", made(0, [](Edges&) {})},
      {"one", made(1, [](Edges&) {})},
      {"diagonal", made(50000, [](Edges&) {})},
      {"chain", made(60000,
                     [](Edges& e) {
                       for (int i = 1; i < 60000; ++i) e.add(i, i - 1);
                     })},
      {"star", made(60000,
                    [](Edges& e) {
                      for (int i = 0; i < 60000; ++i) e.add(31234, i);
                    })},
      {"grid with dense rows", made(kGrid,
                                    [&](Edges& e) {
                                      add_grid(e, kSide, [](std::int64_t i) { return i; });
                                      for (std::int64_t i = 0; i < kGrid; i += 2) e.add(i, 9);
                                      for (std::int64_t i = 0; i < kGrid; i += 3) e.add(i, 30000);
                                    })},
      {"two scattered grids and isolated rows",
       made(2 * kGrid + 9999,
            [&](Edges& e) {
              constexpr std::int64_t kStep = 40503;  // no divisor of the number of rows
              for (const std::int64_t from : {std::int64_t{5000}, kGrid + 6000})
                add_grid(e, kSide,
                         [&](std::int64_t i) { return (from + i) * kStep % (2 * kGrid + 9999); });
            })},
      {"nodes with 3 unknowns", made(14 * 14 * 14 * 3,
                                     [&](Edges& e) {
                                       const auto node = [](std::int64_t i) { return i; };
                                       Edges nodes(14 * 14 * 14);
                                       add_grid(nodes, 14, node);
                                       const SparseMatrix a = nodes.matrix();
                                       for (std::int64_t i = 0; i < a.rows; ++i)
                                         for (std::int64_t k = a.start[at(i)];
                                              k < a.start[at(i + 1)]; ++k)
                                           for (std::int64_t u = 0; u < 9; ++u)
                                             e.add(3 * i + u / 3, 3 * a.column[at(k)] + u % 3);
                                     })},
  };
}

/// They take longer to make than many a test takes with them.
inline const std::vector<Family>& large_families(Give give) {
  static std::map<Give, std::vector<Family>> made;
  auto found = made.find(give);
  if (found == made.end()) found = made.emplace(give, made_large_families(give)).first;
  return found->second;
}

/// A random pattern of order n in which each pair is an edge with some probability.
inline SparseMatrix random_pattern(std::int64_t n, double density, std::uint64_t seed, Give give) {
  Edges edges(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      if (random_uniform(seed, static_cast<std::uint64_t>(i * n + j)) < density) edges.add(i, j);
  return edges.matrix(give);
}

inline std::vector<std::int32_t> random_order(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int32_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i)
    std::swap(order[at(i)],
              order[at(static_cast<std::int64_t>(random_bits(seed, static_cast<std::uint64_t>(i)) %
                                                 static_cast<std::uint64_t>(i + 1)))]);
  return order;
}

/// Whether entry (i, j) of L can differ from zero, by elimination: column k adds to all pairs of
/// its rows. Entries of columns, the diagonal included.
struct DenseFactor {
  std::int64_t n = 0;
  std::vector<char> filled;  ///< column by column

  DenseFactor(const SparseMatrix& a, const std::vector<std::int32_t>& order)
      : n(a.rows), filled(at(a.rows * a.rows)) {
    std::vector<std::int64_t> place(at(n));
    for (std::int64_t k = 0; k < n; ++k) place[at(order[at(k)])] = k;
    for (std::int64_t i = 0; i < n; ++i) {
      filled[at(i + i * n)] = 1;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
        const std::int64_t p = place[at(i)];
        const std::int64_t q = place[at(a.column[at(k)])];
        filled[at(std::max(p, q) + std::min(p, q) * n)] = 1;
      }
    }
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t j = k + 1; j < n; ++j)
        for (std::int64_t i = j; has(j, k) && i < n; ++i)
          if (has(i, k)) filled[at(i + j * n)] = 1;
  }
  [[nodiscard]] bool has(std::int64_t i, std::int64_t j) const {
    return filled[at(i + j * n)] != 0;
  }
  /// Rows of column j below row `from`, from itself on.
  [[nodiscard]] std::vector<std::int32_t> rows(std::int64_t j, std::int64_t from) const {
    std::vector<std::int32_t> list;
    for (std::int64_t i = from; i < n; ++i)
      if (has(i, j)) list.push_back(static_cast<std::int32_t>(i));
    return list;
  }
  [[nodiscard]] std::int64_t entries() const { return std::count(filled.begin(), filled.end(), 1); }
  [[nodiscard]] double flops() const {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto count = static_cast<double>(rows(j, j).size());
      sum += count * count;
    }
    return sum;
  }
};

/// Each entry times unit(i)·unit(j).
template <class Unit>
void in_units(SparseMatrix& a, const Unit& unit) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      a.value[at(k)] *= unit(i) * unit(a.column[at(k)]);
}

}  // namespace strata::test
