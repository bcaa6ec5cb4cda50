#pragma once
// What warps do with numbers as digits of eight bits (gram_digits.hpp): make them, and add up their
// products on the integer tensor cores.
//
// Contract: only for gram_digits_cuda.cu. Digits lie in shared memory column by column,
// kDigitColumn words each, those of a column digit by digit, and of a digit four rows a word.

#include "kernels/backend/tile_copy_cuda.hpp"
#include "kernels/tall/gram_common_cuda.hpp"
#include "kernels/tall/gram_digits.hpp"

namespace strata::gram_gpu {

inline constexpr int kDigitGroup = 8;               // columns of a group
inline constexpr int kPieceRows = kDigitRows;       // the depth of a product of the tensor cores
inline constexpr int kDigitWords = kPieceRows / 4;  // words of one digit of a column
// Words of a column, with one more digit, which is zero. Eight columns, read 16 bytes each, are in
// different banks.
inline constexpr int kDigitColumn = (kDigits + 1) * kDigitWords + 4;
inline constexpr int kShallow = 9;  // nonzero digits where the numbers of a piece are alike

/// The pairs of columns of a warp: those of two groups (or twice the same) with a third one.
struct DigitSquare {
  signed char row[2];
  signed char col;
};

// ---- digits

__device__ inline double power_of_two(int exponent) {  // -1022 … 1023
  return __hiloint2double((exponent + 1023) << 20, 0);
}

/// The thirteen digits of a number: two, four, four and three in a word, the words of least weight
/// first.
struct DigitWords {
  unsigned word[4];
};

/// Digits, by floating-point arithmetic, of any number.
__device__ inline DigitWords digits_in_doubles(double x, int exponent) {
  constexpr double kStart = 6755399441055744.0 + 141289400074368.0;  // 1.5·2^52 + 0x808080808080
  constexpr double kLast = 6755399441055744.0 + 0x80;
  constexpr double kNext = 0x1p48;
  const double scale = power_of_two(46 - exponent);
  const double t0 = fused(x, scale, kStart);
  double rest = fused(x, scale, -rounded_sum(t0, -kStart));
  const double t1 = fused(rest, kNext, kStart);
  rest = fused(rest, kNext, -rounded_sum(t1, -kStart));
  // Here 128 is added to each digit; the carry out of a part goes to the one before it.
  const auto last = static_cast<unsigned>(__double2loint(fused(rest, 256.0, kLast)));
  const auto bits = [](double t) {
    return static_cast<unsigned long long>(__double_as_longlong(t));
  };
  const unsigned long long six = bits(t1) + (last >> 8);
  const unsigned long long first = bits(t0) + (six >> 48 & 1);
  return {
      {(static_cast<unsigned>(six << 8) | (last & 0xffU)) ^ 0x8080U,
       static_cast<unsigned>(six >> 8) ^ 0x80808080U,
       (static_cast<unsigned>(first << 8) | static_cast<unsigned>(six >> 40 & 0xff)) ^ 0x80808080U,
       static_cast<unsigned>(first >> 24) ^ 0x80808080U}};
}

/// Digits, by integer arithmetic, of a number that is 0 or at least 2^-31 of the largest one, so
/// that its last two digits are 0. `high` and `low` are its words, `field` the biased exponent of
/// the largest.
__device__ inline DigitWords digits_of_large(unsigned high, unsigned low, int field) {
  const unsigned sign = static_cast<unsigned>(static_cast<int>(high) >> 31);
  // The digits of a negative number −z are those of the complement: 127 is added to each digit of
  // z, and the bits are inverted.
  const unsigned half = sign ^ 0x80808080U;
  const unsigned mantissa = __funnelshift_l(low, (high & 0xfffffU) | 0x100000U, 2);
  const int shift = static_cast<int>((high & 0x7fffffffU) >> 20) + 31 - field;
  const unsigned power = shift < 0 ? 0 : 1U << shift;
  const auto wide = [](unsigned x) { return static_cast<unsigned long long>(x); };
  const unsigned long long lower = wide(low << 2) * power + half;
  const unsigned long long upper =
      wide(mantissa) * power + ((wide(half) << 32 | half) + (lower >> 32));
  return {{0, static_cast<unsigned>(lower) ^ half, static_cast<unsigned>(upper) ^ half,
           static_cast<unsigned>(upper >> 32) ^ half}};
}

/// The digits of four rows of a column, one row a byte. Returns whether there are any behind the
/// first kShallow.
__device__ inline bool put_digits(const double2 (&v)[2], int field, unsigned* to) {
  const double x[4] = {v[0].x, v[0].y, v[1].x, v[1].y};
  const int exponent = digit_exponent(field);
  const int from = exponent + 1022;  // `field`, unless that is below the smallest exponent
  const unsigned least = static_cast<unsigned>(from - 31) << 20;
  bool large = true;
#pragma unroll
  for (const double value : x) {
    const unsigned size = static_cast<unsigned>(__double2hiint(value)) & 0x7fffffffU;
    // Size 0 wraps to the largest number and counts as large, like numbers below 2^-1042: neither
    // has digits.
    large = large && size - 1 >= least - 1;
  }
  DigitWords d[4];
  if (large) {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      d[k] = digits_of_large(static_cast<unsigned>(__double2hiint(x[k])),
                             static_cast<unsigned>(__double2loint(x[k])), from);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) d[k] = digits_in_doubles(x[k], exponent);
  }
  const auto put = [to](int digit, unsigned a, unsigned b, unsigned selector) {
    to[digit * kDigitWords] = __byte_perm(a, b, selector);
  };
  const auto both = [&d](int first, int k, unsigned selector) {
    return __byte_perm(d[first].word[k], d[first + 1].word[k], selector);
  };
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int digit = 12 - 4 * k + (k > 0 ? 2 : 0);  // of the lowest byte
    const unsigned low[2] = {both(0, k, 0x5140), both(2, k, 0x5140)};
    put(digit, low[0], low[1], 0x5410);
    put(digit - 1, low[0], low[1], 0x7632);
    if (k == 0) continue;
    const unsigned high[2] = {both(0, k, 0x7362), both(2, k, 0x7362)};
    put(digit - 2, high[0], high[1], 0x5410);
    if (k < 3) put(digit - 3, high[0], high[1], 0x7632);
  }
  unsigned behind = 0;
#pragma unroll
  for (const DigitWords& words : d) behind |= words.word[0] | (words.word[1] & 0xffffU);
  return behind != 0;
}

// ---- sums

/// An operand of the tensor cores: 8 × 16 digits a word.
struct FourWords {
  unsigned word[4];
};
/// `at`: the shared address of the row that this lane provides; eight lanes make a word.
__device__ inline FourWords read_words(unsigned at) {
  FourWords w{};
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
               : "r"(at)
               : "memory");
  return w;
}

/// Where a lane reads: on the left two groups of columns, on the right two digits of one, each of
/// rows 0 … 15 and 16 … 31.
inline constexpr int kHalfBytes = 4 * 4;
inline constexpr int kDigitBytes = 4 * kDigitWords;
inline constexpr int kGroupBytes = 4 * kDigitGroup * kDigitColumn;
__device__ inline int place_left(const DigitSquare& square) {
  const int lane = tile::lane();
  return square.row[lane / 8 % 2] * kGroupBytes + lane % 8 * 4 * kDigitColumn +
         lane / 16 * kHalfBytes;
}
__device__ inline int place_right(const DigitSquare& square) {
  const int lane = tile::lane();
  return square.col * kGroupBytes + lane % 8 * 4 * kDigitColumn + lane / 16 * kDigitBytes +
         lane / 8 % 2 * kHalfBytes;
}

/// The sums of one warp, weight by weight; their magnitudes are below 2^28 in a unit.
struct DigitSums {
  int of[kDigits][4] = {};

  __device__ void add(int weight, const FourWords& a, const unsigned* b) {
    int(&s)[4] = of[weight];
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
        : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b[0]), "r"(b[1]));
  }
  /// Adds the products of a piece. Digits on the right are taken in two parts, so as to need fewer
  /// registers.
  __device__ void add_piece(unsigned left, unsigned right) {
    add_part<0, kFirstDigits>(left, right);
    add_part<kFirstDigits, kDigits + 1>(left, right);
  }
  /// The same where there are only the first kShallow digits.
  __device__ void add_shallow(unsigned left, unsigned right) {
    FourWords b[(kShallow + 1) / 2];
#pragma unroll
    for (int k = 0; k < (kShallow + 1) / 2; ++k) b[k] = read_words(right + 2 * k * kDigitBytes);
#pragma unroll
    for (int i = 0; i < kShallow; ++i) {
      const FourWords a = read_words(left + i * kDigitBytes);
#pragma unroll
      for (int j = 0; j < kShallow && j + i < kDigits; ++j)
        add(i + j, a, &b[j / 2].word[j % 2 * 2]);
    }
  }

 private:
  static constexpr int kFirstDigits = 8;

  /// Adds the products with digits kFrom … kTo − 1 on the right.
  template <int kFrom, int kTo>
  __device__ void add_part(unsigned left, unsigned right) {
    FourWords b[(kTo - kFrom) / 2];
#pragma unroll
    for (int k = 0; k < (kTo - kFrom) / 2; ++k)
      b[k] = read_words(right + (kFrom + 2 * k) * kDigitBytes);
#pragma unroll
    for (int i = 0; i + kFrom < kDigits; ++i) {
      const FourWords a = read_words(left + i * kDigitBytes);
#pragma unroll
      for (int j = kFrom; j < kTo && j + i < kDigits; ++j)
        add(i + j, a, &b[(j - kFrom) / 2].word[j % 2 * 2]);
    }
  }
};

/// Converts an integer of less than 51 bits.
__device__ inline double to_double(long long x) {
  return rounded_sum(__longlong_as_double(x + 0x4338000000000000LL), -6755399441055744.0);
}
/// Value `v` of kCount weights from kFirst on, in units of the last one.
template <int kFirst, int kCount>
__device__ inline double of_weights(const DigitSums& s, int v) {
  long long sum = s.of[kFirst + kCount - 1][v];
#pragma unroll
  for (int k = 0; k + 1 < kCount; ++k)
    sum += static_cast<long long>(s.of[kFirst + k][v]) * (1LL << 8 * (kCount - 1 - k));
  return to_double(sum);
}

/// What exact sums add to those of two columns with these exponents (gram.hpp).
__device__ inline DoubleDouble part_of(const DigitSums& s, int v, int field_x, int field_y) {
  const double first = rounded_product(of_weights<0, 4>(s, v), 0x1p32);
  const double second = of_weights<4, 4>(s, v);
  const double third =
      fused(of_weights<8, 3>(s, v), 0x1p-24, rounded_product(of_weights<11, 2>(s, v), 0x1p-40));
  const double high = rounded_sum(first, second);
  const double low = rounded_sum(rounded_sum(second, -rounded_sum(high, -first)), third);
  const int exponent = digit_exponent(field_x) + digit_exponent(field_y) - 68;
  const int near = max(-1000, min(exponent, 1000));
  const bool numbers = field_x != kNoNumber && field_y != kNoNumber;
  const double w = numbers ? power_of_two(near) : __longlong_as_double(0x7ff8000000000000LL);
  const double rest = power_of_two(exponent - near);
  return {rounded_product(rounded_product(high, w), rest),
          rounded_product(rounded_product(low, w), rest)};
}

}  // namespace strata::gram_gpu
