#pragma once
// A task that several devices carry out together, as each of them is told of it.
//
// Contract: each device gets the call three times, once a phase, and begins a phase when all have
// ended the one before; between these ends only the phase `work` waits for another device. Operands
// are its own blocks, as of any call; behind them, of each other device in their order, the blocks
// that the task writes, where they lie there. After the last phase each device has all that was
// written. Variant 0 is a call on one device, in one phase.

#include <cstdint>

namespace strata {

enum class SharePhase : std::uint8_t {
  prepare = 1,  ///< whatever has to be there before another device writes
  work = 2,
  conclude = 3,  ///< what needs all that was made, and changes nothing that others read
};

/// At most so many devices.
inline constexpr int kSharersMax = 8;

struct SharedCall {
  SharePhase phase;
  int rank;     ///< of this device, from 0 on
  int sharers;  ///< how many devices
  int written;  ///< blocks that the task writes

  [[nodiscard]] constexpr std::uint32_t variant() const {
    return static_cast<std::uint32_t>(phase) | static_cast<std::uint32_t>(rank) << 2 |
           static_cast<std::uint32_t>(sharers) << 8 | static_cast<std::uint32_t>(written) << 16;
  }
  [[nodiscard]] static constexpr SharedCall of(std::uint32_t variant) {
    return {static_cast<SharePhase>(variant & 3U), static_cast<int>(variant >> 2 & 63U),
            static_cast<int>(variant >> 8 & 255U), static_cast<int>(variant >> 16)};
  }
  /// How many of `operands` are those of this device alone.
  [[nodiscard]] constexpr int own(int operands) const { return operands - (sharers - 1) * written; }
  /// The place of the first operand of another device among all; `other` counts the other devices
  /// from 0.
  [[nodiscard]] constexpr int first_of(int other, int operands) const {
    return own(operands) + other * written;
  }
};

}  // namespace strata
