#pragma once
// Which columns of a matrix depend on those before them, exactly, as its numbers are stored.
//
// Method: a double is an integer times a power of two, so it has a residue modulo the prime
// p = 2^61 − 1, where a product with 2^e is a rotation; columns are eliminated there. The rank
// modulo p is never above the true one, so a column that is called independent is; one that is
// called dependent is so unless p divides each of the minors that say otherwise, which has not been
// seen to happen by chance. A row is looked at through one random vector of the null space of the
// rows so far: its product with a row in their span is 0, with another one it is 0 with a
// probability of 1/p. So a row costs n products, and n of them at most n² more.

#include <cstdint>
#include <vector>

namespace strata {

class ExactRank {
 public:
  explicit ExactRank(std::int64_t n);

  /// Takes `rows` more rows, column-major and packed, all finite. T is double or float.
  template <class T>
  void add(const T* block, std::int64_t rows);
  /// Whether no column depends on others, whatever rows come.
  [[nodiscard]] bool is_full() const { return std::ssize(basis_) == n_; }
  /// By number, increasing.
  [[nodiscard]] std::vector<std::int64_t> dependent_columns() const;

 private:
  using Residues = std::vector<std::uint64_t>;
  struct Row {
    std::int64_t pivot;  ///< where it has 1, as no other row of the basis has
    Residues values;
  };
  void take(Residues row);
  void draw();

  std::int64_t n_;
  std::uint64_t draws_ = 0;
  std::vector<Row> basis_;
  Residues probe_;  ///< of the null space of the basis
};

}  // namespace strata
