#include "sparse/entry_checks.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "device/device_host.hpp"
#include "sparse/pattern.hpp"

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

bool all_finite(std::span<const double> values) {
  // An exponent of nothing but ones, plus one, carries into the sign: that of Inf and NaN alone.
  // Integers, because they may be combined in any order, and so in vectors.
  constexpr std::uint64_t kExponent = 0x7FF0'0000'0000'0000;
  constexpr std::uint64_t kOne = 0x0010'0000'0000'0000;
  std::uint64_t carried = 0;
  for (const double value : values)
    carried |= (std::bit_cast<std::uint64_t>(value) & kExponent) + kOne;
  return carried >> 63U == 0;
}

bool all_finite(std::span<const double> values, WorkCrew& crew) {
  std::atomic<bool> finite = true;
  for_pieces(values, crew, [&](std::int64_t, std::span<const double> part) {
    if (!all_finite(part)) finite = false;
  });
  return finite;
}

}  // namespace strata
