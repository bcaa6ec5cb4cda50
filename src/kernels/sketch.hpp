#pragma once
// Random sketches of a block of rows: S ← Ω·X with few rows, for a preconditioner of QR.
//
//   sketch            S ← Ω·X                             operands S, V, d
//
// X = V·diag(d), d (n × 1, fp64) powers of two or 0; V is h × n in fp64 or fp32, S s × n in fp64,
// written as a whole. Ω is s × h; what is random about it follows from the seed and the number of
// each row in the whole matrix (BlockView::row), so that sketches of blocks add up to that of V.
// The factor 1/√s that would keep lengths is left out.
//
// The variant holds the kind and the seed (sketch_variant):
// * gaussian: elements that are nearly normal, sums of twelve uniform numbers of 16 bits less their
//   mean (variance 1, none beyond 6): no logarithm, which backends would round differently.
// * multi: CountSketch to sketch_buckets(n) rows, each row of X with a random sign added to one of
//   them (Clarkson, Woodruff, "Low-rank approximation and regression in input sparsity time",
//   2017), then gaussian (multi-sketch: Higgins, Szyld, Boman, Yamazaki, "Analysis of randomized
//   Householder-Cholesky QR factorization with multisketching", 2025).
// * srht_fp64, srht_fp32, srht_fp16: rows with random signs, a Walsh–Hadamard transform over the
//   rows of the block, and s rows of it at random (block SRHT: Balabanov, Beaupère, Grigori,
//   Lederer, "Block subsampled randomized Hadamard transform for low-rank approximation", 2023),
//   computed in fp64 or, after rounding to the format, in fp32; that of fp16 is rounded to fp16
//   again.
//
// Contract. All backends give the same bits:
// * gaussian: rows of X in tiles of 128; S_ik of a tile is a chain of fused multiply-adds over its
//   rows from 0 on, and tiles are added in their order, from 0 on.
// * multi: each bucket is a sum over the rows of X in their order, from 0 on; then gaussian, the
//   buckets in the place of rows.
// * srht: column k is scaled by the power of two of its largest magnitude in the block, as
//   householder.hpp does it, rounded (to fp16 through fp32), padded by zeros to a power of two H of
//   rows; stages of distance 1, 2, 4, … H/2 put (a + b, a − b) in the place of (a, b). fp16: times
//   2^-c, 2^c the power of two not below √H, rounded, times 2^c.

#include <bit>
#include <cstdint>

#include "base/random.hpp"
#include "kernels/kernel_table.hpp"

namespace strata {

enum class SketchKind : std::uint8_t { gaussian, multi, srht_fp64, srht_fp32, srht_fp16 };

inline constexpr int kSketchTileRows = 128;
inline constexpr std::uint32_t kSketchSeedMax = (1U << 28) - 1;

/// seed: at most kSketchSeedMax.
[[nodiscard]] constexpr std::uint32_t sketch_variant(SketchKind kind, std::uint32_t seed) noexcept {
  return static_cast<std::uint32_t>(kind) | seed << 4;
}
[[nodiscard]] constexpr SketchKind sketch_kind(std::uint32_t variant) noexcept {
  return static_cast<SketchKind>(variant & 15U);
}

/// Buckets of CountSketch: 2·n² as its theory wants it, but no more than fast memory holds.
[[nodiscard]] constexpr std::int64_t sketch_buckets(std::int64_t n) noexcept {
  constexpr std::int64_t kMax = 8192;
  return 2 * n * n < kMax ? 2 * n * n : kMax;
}

// ---- random numbers

/// What a kernel draws from: a seed of its own for each purpose.
enum class SketchStream : std::uint8_t { normal, bucket, sign, sample };
[[nodiscard]] constexpr std::uint64_t sketch_seed(std::uint32_t variant,
                                                  SketchStream stream) noexcept {
  return random_bits(0x5ce7c4, (std::uint64_t{variant >> 4} << 8) + static_cast<unsigned>(stream));
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

[[nodiscard]] constexpr std::int64_t sketch_bucket(std::uint64_t seed, std::int64_t row,
                                                   std::int64_t buckets) noexcept {
  return static_cast<std::int64_t>((random_bits(seed, static_cast<std::uint64_t>(row)) >> 32) *
                                       static_cast<std::uint64_t>(buckets) >>
                                   32);
}
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

/// c of the transform in fp16.
[[nodiscard]] constexpr int sketch_half_shift(std::int64_t transform_rows) noexcept {
  return (static_cast<int>(std::bit_width(static_cast<std::uint64_t>(transform_rows))) - 1 + 1) / 2;
}

// ---- the operation

namespace sketch_work {
inline double products(std::span<const BlockExtent> x, std::uint32_t variant) {
  const auto rows = static_cast<double>(x[1].rows);
  const auto cols = static_cast<double>(x[1].cols);
  const auto sketched = static_cast<double>(x[0].rows);
  switch (sketch_kind(variant)) {
    case SketchKind::gaussian: return 2 * rows * cols * sketched;
    case SketchKind::multi:
      return 2 * rows * cols + 2 * static_cast<double>(sketch_buckets(x[1].cols)) * cols * sketched;
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

inline constexpr Elements kSketchElements[] = {{Element::fp64, Element::fp64, Element::fp64},
                                               {Element::fp64, Element::fp32, Element::fp64}};

inline void add_sketch(KernelTable& table, KernelFunction kernel) {
  for (const Elements& elements : kSketchElements) table.set(sketch, elements, kernel);
}

/// In plain loops.
void sketch_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// For the CPU: the rows of S in vectors.
void sketch_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

/// Throws Error{device} for a kind that there is not.
void require_sketch(std::uint32_t variant);

}  // namespace strata
