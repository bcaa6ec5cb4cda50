#pragma once
// Operation: what a task does to its blocks, as far as plans need to know it.
//
// Contract: an operation is a constant that its own file set defines (src/kernels/NAME.hpp): its
// name, how it uses each operand, and how much work a call is. Nothing that plans, issues, executes
// or simulates knows any of them (calibration measures some by name). Two constants with the same
// name are the same operation, so that a backend in a shared object may have its own copy. Operands
// are numbered; what is written comes first, by convention.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "matrix/block_table.hpp"

namespace strata {

/// How an operation uses an operand.
enum class Access : std::uint8_t { read, write, read_write };

[[nodiscard]] constexpr bool reads(Access access) noexcept { return access != Access::write; }
[[nodiscard]] constexpr bool writes(Access access) noexcept { return access != Access::read; }

inline constexpr int kOperandsMax = 8;

struct Operation {
  /// Work of one call, from the extents of its operands and the task's variant: floating-point
  /// operations (multiplications and additions), or another unit that `flops_per_work` converts.
  using Work = double (*)(std::span<const BlockExtent> operands, std::uint32_t variant);

  std::string_view name;
  int operands = 0;
  std::array<Access, kOperandsMax> access{};
  Work work = nullptr;
  /// Floating-point operations that a run counts for a unit of work (0: it counts none), …
  double flops_per_work = 1;
  /// … and those that it is taken to cost where no rate was measured.
  double nominal_cost = 1;
};

/// The elements of an operation's operands, in their order.
class Elements {
 public:
  constexpr Elements() = default;
  constexpr Elements(std::initializer_list<Element> elements) {
    for (const Element element : elements) push_back(element);
  }
  /// `count` operands of the same element.
  constexpr Elements(int count, Element element) {
    for (int i = 0; i < count; ++i) push_back(element);
  }

  constexpr void push_back(Element element) {
    bits_ |= (static_cast<std::uint64_t>(element) + 1) << (8 * size_++);
  }
  [[nodiscard]] constexpr int size() const noexcept { return size_; }
  [[nodiscard]] constexpr Element operator[](int i) const noexcept {
    return static_cast<Element>((bits_ >> (8 * i) & 0xff) - 1);
  }
  /// The same for equal lists, different for others.
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  constexpr bool operator==(const Elements&) const = default;

 private:
  std::uint64_t bits_ = 0;
  int size_ = 0;
};

/// "fp64", or "fp16 × fp16 × fp32" where they differ.
[[nodiscard]] std::string to_string(const Elements& elements);

}  // namespace strata
