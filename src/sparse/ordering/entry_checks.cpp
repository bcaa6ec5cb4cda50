#include "sparse/ordering/entry_checks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "device/device_host.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// Arrays that are looked at before every factorization are shared by threads in such pieces: about
/// 50 µs each, a few times what waking a thread takes.
constexpr std::int64_t kPieceBytes = std::int64_t{512} << 10;

/// Calls look(piece, part of `list`), by several threads; returns the number of pieces.
template <class T, class Look>
std::int64_t for_pieces(std::span<const T> list, WorkCrew& crew, const Look& look) {
  const std::int64_t length = kPieceBytes / std::int64_t{sizeof(T)};
  const std::int64_t pieces = (std::ssize(list) + length - 1) / length;
  crew.share(pieces, [&](std::int64_t k) {
    const std::int64_t first = k * length;
    look(k, list.subspan(at(first), at(std::min(length, std::ssize(list) - first))));
  });
  return pieces;
}

}  // namespace

int checking_threads() {
  constexpr int kMost = 8;  // read memory as fast as it can be read
  return std::min(describe_host().compute_queues, kMost);
}

std::uint64_t arrangement_of(const SparseMatrix& a, WorkCrew& crew) {
  const auto pieces_of = [](std::int64_t bytes) { return bytes / kPieceBytes + 1; };
  std::vector<std::uint64_t> hashes(
      at(pieces_of(std::ssize(a.start) * 8) + pieces_of(std::ssize(a.column) * 4)));
  std::int64_t known = 0;
  const auto add = [&]<class T>(const std::vector<T>& list) {
    known += for_pieces(std::span(list), crew, [&](std::int64_t k, std::span<const T> part) {
      hashes[at(known + k)] = XXH3_64bits(part.data(), part.size_bytes());
    });
  };
  add(a.start);
  add(a.column);
  const std::array<std::int64_t, 3> shape{a.rows, a.cols, std::ssize(a.value)};
  const std::uint64_t seed = XXH3_64bits(shape.data(), sizeof shape);
  const std::uint64_t hash =
      XXH3_64bits_withSeed(hashes.data(), at(known) * sizeof hashes[0], seed);
  return std::max<std::uint64_t>(hash, 1);
}

double largest_magnitude(std::span<const double> values) {
  // Without their sign doubles are in the order of the integers with the same bits, those that are
  // no numbers last. Integers, because they may be combined in any order, and so in vectors.
  constexpr std::int64_t kMagnitude = 0x7FFF'FFFF'FFFF'FFFF;
  std::int64_t largest = 0;
  for (const double value : values)
    largest = std::max(largest, std::bit_cast<std::int64_t>(value) & kMagnitude);
  return std::bit_cast<double>(largest);
}

double largest_magnitude(std::span<const double> values, WorkCrew& crew) {
  std::vector<double> of_piece(
      at(std::ssize(values) * std::int64_t{sizeof(double)} / kPieceBytes + 1));
  for_pieces(values, crew, [&](std::int64_t k, std::span<const double> part) {
    of_piece[at(k)] = largest_magnitude(part);
  });
  return largest_magnitude(of_piece);
}

}  // namespace strata
