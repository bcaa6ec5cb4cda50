#pragma once
// RowOwners: which device computes which row of tiles.
//
// Contract: a pure function of the number of rows and of the devices' rates; no result depends on
// it where all devices have the same kernels. Devices that are alike, or of which nothing is known,
// get the serpentine cyclic distribution of device_of_row(). Else each gets work in proportion to
// its rate: the rows, whose work grows with the square of their number, are given from the last to
// the first, each to the device that would be done with it first (longest processing time first;
// Graham, "Bounds on multiprocessing timing anomalies", 1969).

#include <cstdint>
#include <vector>

namespace strata {

class RowOwners {
 public:
  /// `rates`: of each device, in any unit; empty: all alike.
  RowOwners(std::int64_t rows, int devices, const std::vector<double>& rates);

  [[nodiscard]] int operator[](std::int64_t row) const {
    return owners_[static_cast<std::size_t>(row)];
  }
  /// No row below this one is of the same device.
  [[nodiscard]] bool is_last_of_its_device(std::int64_t row) const {
    return last_[static_cast<std::size_t>((*this)[row])] == row;
  }

 private:
  std::vector<std::uint16_t> owners_;
  std::vector<std::int64_t> last_;  // by device: its last row
};

}  // namespace strata
