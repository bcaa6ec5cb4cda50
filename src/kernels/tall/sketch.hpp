#pragma once
// Random sketches of a block of rows: S ← Ω·X with few rows, for a preconditioner of QR.
//
//   sketch            S ← Ω·X                             operands S, V, d
//   continue_sketch   S ← S + Ω·X, count alone            operands S, V, d
//
// X = V·diag(d), d (n × 1, fp64) powers of two or 0; V is h × n in fp64 or fp32, S s × n in fp64,
// written as a whole. Ω is s × h; what is random about it follows from the seed and the number of
// each row in the whole matrix (BlockView::row), so that sketches of blocks add up to that of V.
// The factor 1/√s that would keep lengths is left out.
//
// The variant holds the kind and the seed (sketch_variant):
// * gaussian: elements that are nearly normal, sums of twelve uniform numbers of 16 bits less their
//   mean (variance 1, none beyond 6): no logarithm, which backends would round differently.
// * count: CountSketch: each row of X, with a random sign, is added to one of the s rows of S, its
//   bucket (Clarkson, Woodruff, "Low-rank approximation and regression in input sparsity time",
//   2017). 32 rows side by side have buckets side by side, of which the first is random. What the
//   theory asks of buckets is that two rows meet with a probability of 1/s, and that signs are
//   independent; so it has the same variance, and memory is read and written in order.
// * srht_fp64, srht_fp32, srht_fp16: rows with random signs, a Walsh–Hadamard transform over the
//   rows of the block, and s rows of it at random (block SRHT: Balabanov, Beaupère, Grigori,
//   Lederer, "Block subsampled randomized Hadamard transform for low-rank approximation", 2023),
//   computed in fp64 or, after rounding to the format, in fp32; that of fp16 is rounded to fp16
//   again.
//
// Contract. All backends give the same bits:
// * gaussian: rows of X in tiles of 128; S_ik of a tile is a chain of fused multiply-adds over its
//   rows from 0 on, and tiles are added in their order, from 0 on.
// * count: the rows 32·t … 32·t + 31 of the whole matrix are tile t; V begins with one. Spans of
//   sketch_span(s) rows of it have sums of their own: each bucket's is over rows in their order,
//   from 0 on. Spans of a block are added as the units of gram.hpp, in a binary tree, so blocks of
//   2^k spans add up to the sketch of the whole, whatever k is. A block within a span that does not
//   begin with it is added by continue_sketch.
// * srht: column k is scaled by the power of two of its largest magnitude in the block, as
//   householder.hpp does it, rounded (to fp16 through fp32), padded by zeros to a power of two H of
//   rows. Stages of distance 1, 2, 4, … H/2 put (a + b, a − b) in the place of (a, b). fp16: times
//   2^-c, 2^c the power of two not below √H, rounded, times 2^c.

#include <bit>
#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "kernels/backend/kernel_table.hpp"
#include "strata/error.hpp"

namespace strata {

enum class SketchKind : std::uint8_t { gaussian, count, srht_fp64, srht_fp32, srht_fp16 };

inline constexpr int kSketchTileRows = 128;
inline constexpr std::uint32_t kSketchSeedMax = (1U << 28) - 1;

/// seed: at most kSketchSeedMax.
[[nodiscard]] constexpr std::uint32_t sketch_variant(SketchKind kind, std::uint32_t seed) noexcept {
  return static_cast<std::uint32_t>(kind) | seed << 4;
}
[[nodiscard]] constexpr SketchKind sketch_kind(std::uint32_t variant) noexcept {
  return static_cast<SketchKind>(variant & 15U);
}
[[nodiscard]] constexpr std::uint32_t sketch_seed_of(std::uint32_t variant) noexcept {
  return variant >> 4;
}

inline constexpr int kSketchCountRows = 32;  ///< of a tile of count

/// Buckets for n columns. Lengths in their space come out of CountSketch within about √(n/buckets)
/// of what they are, a quarter: so what a sketch makes orthonormal has a condition of 5/3 or so.
[[nodiscard]] constexpr std::int64_t sketch_buckets(std::int64_t n) noexcept {
  constexpr std::int64_t kLeast = 256;
  const auto enough =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(16 * (n < 1 ? 1 : n))));
  return enough < kLeast ? kLeast : enough;
}
/// Rows of V of which sums are one chain, a power of two: so many that they are a small part of V.
[[nodiscard]] constexpr std::int64_t sketch_span(std::int64_t buckets) noexcept {
  return 32 * static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(buckets)));
}

// ---- random numbers

/// What a kernel draws from: a seed of its own for each purpose.
enum class SketchStream : std::uint8_t { normal, bucket, sign, sample };
[[nodiscard]] constexpr std::uint64_t sketch_seed(std::uint32_t variant,
                                                  SketchStream stream) noexcept {
  return random_bits(0x5ce7c4,
                     (std::uint64_t{sketch_seed_of(variant)} << 8) + static_cast<unsigned>(stream));
}

/// Element i of the column of Ω for a row.
[[nodiscard]] constexpr double sketch_normal(std::uint64_t seed, std::int64_t row,
                                             std::int64_t i) noexcept {
  constexpr std::uint64_t kHalves = 0x0000ffff0000ffffULL;
  constexpr std::int64_t kTwiceMean = 12 * 65535;
  const std::uint64_t index =
      3 * (static_cast<std::uint64_t>(row) * 4096 + static_cast<std::uint64_t>(i));
  std::uint64_t sums = 0;  // two sums of six numbers each
  for (std::uint64_t k = 0; k < 3; ++k) {
    const std::uint64_t bits = random_bits(seed, index + k);
    sums += (bits & kHalves) + (bits >> 16 & kHalves);
  }
  const auto sum = static_cast<std::int64_t>((sums & 0xffffffffULL) + (sums >> 32));
  return static_cast<double>(2 * sum - kTwiceMean) * 0x1p-17;
}

/// The bucket of the first row of a tile of count; buckets >= kSketchCountRows.
[[nodiscard]] constexpr std::int64_t sketch_bucket(std::uint64_t seed, std::int64_t tile,
                                                   std::int64_t buckets) noexcept {
  return static_cast<std::int64_t>((random_bits(seed, static_cast<std::uint64_t>(tile)) >> 32) *
                                       static_cast<std::uint64_t>(buckets - kSketchCountRows + 1) >>
                                   32);
}
/// Signs of the rows of a tile of count, a bit each: set where the sign is negative.
[[nodiscard]] constexpr std::uint32_t sketch_signs(std::uint64_t seed, std::int64_t tile) noexcept {
  return static_cast<std::uint32_t>(random_bits(seed, static_cast<std::uint64_t>(tile)) >> 32);
}
/// Sign of row `row` of a transform.
[[nodiscard]] constexpr double sketch_sign(std::uint64_t seed, std::int64_t row) noexcept {
  return (random_bits(seed, static_cast<std::uint64_t>(row)) >> 63) != 0 ? -1.0 : 1.0;
}

/// Rows of a transform: the power of two that is not below.
[[nodiscard]] constexpr std::int64_t sketch_transform_rows(std::int64_t rows) noexcept {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows < 1 ? 1 : rows)));
}

/// Row i of the sample from H = 2^p rows of the block that begins at `row`: the values of a random
/// permutation of 0 … H − 1, from the beginning again where i reaches H.
[[nodiscard]] constexpr std::int64_t sketch_sample(std::uint64_t seed, std::int64_t row,
                                                   std::int64_t i, std::int64_t transform_rows) {
  const auto mask = static_cast<std::uint64_t>(transform_rows) - 1;
  int bits_of_rows = 0;
  while ((mask >> bits_of_rows) != 0) ++bits_of_rows;
  const int half = (bits_of_rows + 1) / 2;
  std::uint64_t x = static_cast<std::uint64_t>(i);
  for (std::uint64_t round = 0; round < 3; ++round) {  // each step maps 0 … H − 1 onto itself
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(row) * 4 + round);
    x = (x * (bits | 1) + (bits >> 32)) & mask;
    x ^= half > 0 ? x >> half : 0;
  }
  return static_cast<std::int64_t>(x & mask);
}

/// 2^-e, 2^e the power of two of a magnitude, as far as both are normal numbers.
[[nodiscard]] constexpr std::uint64_t sketch_power_bits(std::uint64_t magnitude_bits) noexcept {
  const auto field = static_cast<std::int64_t>(magnitude_bits >> 52);
  return static_cast<std::uint64_t>(field < 2045 ? 2046 - field : 1) << 52;
}

/// c of the transform in fp16. (std::bit_width, which nvcc takes in a kernel, is 0 there.)
[[nodiscard]] constexpr int sketch_half_shift(std::int64_t transform_rows) noexcept {
  int bits = 0;
  while (transform_rows >> bits != 0) ++bits;
  return bits / 2;
}

// ---- the operation

namespace sketch_work {
inline double products(std::span<const BlockExtent> x, std::uint32_t variant) {
  const auto rows = static_cast<double>(x[1].rows);
  const auto cols = static_cast<double>(x[1].cols);
  const auto sketched = static_cast<double>(x[0].rows);
  switch (sketch_kind(variant)) {
    case SketchKind::gaussian: return 2 * rows * cols * sketched;
    case SketchKind::count: return 2 * rows * cols;
    default: break;
  }
  const auto stages = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(x[1].rows)));
  return rows * cols * (2 + stages);
}
}  // namespace sketch_work

inline constexpr Operation sketch{.name = "sketch",
                                  .operands = 3,
                                  .access = {Access::write, Access::read, Access::read},
                                  .work = sketch_work::products,
                                  .nominal_cost = 4};

inline constexpr Operation continue_sketch{
    .name = "continue_sketch",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::read},
    .work = sketch_work::products,
    .nominal_cost = 4};

inline constexpr Elements kSketchElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                               {Element::fp64, Element::fp32, Element::fp64}};

inline void add_sketch(KernelTable& table, KernelFunction start, KernelFunction more) {
  for (const Elements& elements : kSketchElements) {
    table.set(sketch, elements, start);
    table.set(continue_sketch, elements, more);
  }
}

/// In plain loops.
void sketch_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void continue_sketch_reference(Queue& queue, const KernelCalls& calls,
                               const KernelParameters& parameters);
/// For the CPU: the rows of S, or of a tile of count, in vectors.
void sketch_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void continue_sketch_host(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters);

/// Checks operands and variant of either operation. Throws Error{device} for a kind that there is
/// not, or that cannot be continued; Error{misuse} for too few buckets and for blocks of count that
/// do not begin with a tile or, where they are to be continued, are not within a span.
inline void require_sketch(const BlockView* x, std::uint32_t variant, bool continued) {
  const SketchKind kind = sketch_kind(variant);
  if (kind > SketchKind::srht_fp16 || (continued && kind != SketchKind::count))
    throw Error(ErrorKind::device, continued ? "continue_sketch" : "sketch",
                "there is no kernel for variant " + std::to_string(variant));
  if (kind != SketchKind::count) return;
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::misuse, "sketch", what);
  };
  if (x[0].rows < kSketchCountRows)
    refuse(std::to_string(x[0].rows) + " buckets are fewer than the rows of a tile");
  if (x[1].row % kSketchCountRows != 0)
    refuse("a block begins with row " + std::to_string(x[1].row) + ", within a tile");
  if (continued && x[1].rows > sketch_span(x[0].rows))
    refuse("a block of " + std::to_string(x[1].rows) +
           " rows is more than the span that it continues");
}

}  // namespace strata
