#include "qr/exact_rank.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"

namespace strata {
namespace {

constexpr int kBits = 61;
constexpr std::uint64_t kPrime = (std::uint64_t{1} << kBits) - 1;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t s = a + b;
  return s >= kPrime ? s - kPrime : s;
}
std::uint64_t negative(std::uint64_t a) { return a == 0 ? 0 : kPrime - a; }
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product p = static_cast<Product>(a) * b;
  return sum(static_cast<std::uint64_t>(p & kPrime), static_cast<std::uint64_t>(p >> kBits));
}
std::uint64_t inverse(std::uint64_t a) {  // a^(p − 2), by Fermat
  std::uint64_t power = 1;
  for (std::uint64_t left = kPrime - 2; left > 0; left >>= 1) {
    if ((left & 1) != 0) power = product(power, a);
    a = product(a, a);
  }
  return power;
}

/// Residue of x = mantissa·2^exponent modulo p, the mantissa of 53 bits.
std::uint64_t residue(double x) {
  if (x == 0) return 0;
  int exponent = 0;
  const auto mantissa =
      static_cast<std::uint64_t>(std::ldexp(std::abs(std::frexp(x, &exponent)), 53));
  const int turn = (((exponent - 53) % kBits) + kBits) % kBits;
  const std::uint64_t turned =
      turn == 0 ? mantissa : ((mantissa << turn) | (mantissa >> (kBits - turn))) & kPrime;
  const std::uint64_t value = turned == kPrime ? 0 : turned;
  return x < 0 ? negative(value) : value;
}

}  // namespace

ExactRank::ExactRank(std::int64_t n) : n_(n), probe_(static_cast<std::size_t>(n)) { draw(); }

/// Another vector of the null space: anything where the basis has no pivot, and there what makes
/// products with its rows 0.
void ExactRank::draw() {
  ++draws_;
  for (std::size_t j = 0; j < probe_.size(); ++j) probe_[j] = random_bits(draws_, j) % kPrime;
  for (const Row& row : basis_) probe_[static_cast<std::size_t>(row.pivot)] = 0;
  Residues at_pivots;
  for (const Row& row : basis_) {
    std::uint64_t value = 0;
    for (std::size_t j = 0; j < probe_.size(); ++j)
      value = sum(value, product(row.values[j], probe_[j]));
    at_pivots.push_back(negative(value));
  }
  for (std::size_t k = 0; k < basis_.size(); ++k)
    probe_[static_cast<std::size_t>(basis_[k].pivot)] = at_pivots[k];
}

/// Reduces a row by the basis, and the basis by it.
void ExactRank::take(Residues row) {
  const auto subtract = [](Residues& from, std::uint64_t factor, const Residues& what) {
    const std::uint64_t minus = negative(factor);
    for (std::size_t j = 0; j < from.size() && minus != 0; ++j)
      from[j] = sum(from[j], product(minus, what[j]));
  };
  for (const Row& known : basis_)
    subtract(row, row[static_cast<std::size_t>(known.pivot)], known.values);
  const auto first = std::find_if(row.begin(), row.end(), [](auto x) { return x != 0; });
  if (first == row.end()) return;
  const auto pivot = static_cast<std::size_t>(first - row.begin());
  const std::uint64_t by = inverse(*first);
  for (std::uint64_t& x : row) x = product(x, by);
  for (Row& known : basis_) subtract(known.values, known.values[pivot], row);
  basis_.push_back({static_cast<std::int64_t>(pivot), std::move(row)});
  draw();
}

template <class T>
void ExactRank::add(const T* block, std::int64_t rows) {
  Residues row(static_cast<std::size_t>(n_));
  for (std::int64_t i = 0; i < rows && !is_full(); ++i) {
    std::uint64_t seen = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      const auto at = static_cast<std::size_t>(j);
      row[at] = residue(static_cast<double>(block[i + j * rows]));
      seen = sum(seen, product(row[at], probe_[at]));
    }
    if (seen != 0) take(row);
  }
}

std::vector<std::int64_t> ExactRank::dependent_columns() const {
  std::vector<bool> pivots(static_cast<std::size_t>(n_));
  for (const Row& row : basis_) pivots[static_cast<std::size_t>(row.pivot)] = true;
  std::vector<std::int64_t> columns;
  for (std::int64_t j = 0; j < n_; ++j) {
    if (!pivots[static_cast<std::size_t>(j)]) columns.push_back(j);
  }
  return columns;
}

template void ExactRank::add(const double*, std::int64_t);
template void ExactRank::add(const float*, std::int64_t);

}  // namespace strata
