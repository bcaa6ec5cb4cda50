#pragma once
// StartingDevices: what GPUs take once in a process, beside the reading of data.
//
// Contract: begins on a thread of its own, and waits for it where it ends. What fails is said by
// who uses the devices.

#include <exception>
#include <future>
#include <string>

#include "strata/detect.hpp"

namespace strata::cli {

class StartingDevices {
 public:
  explicit StartingDevices(const std::string& devices)
      : started_(std::async(std::launch::async, [devices] {
          try {
            start_devices(devices);
          } catch (const std::exception&) {  // it is met again
          }
        })) {}

 private:
  std::future<void> started_;  // its destructor waits
};

}  // namespace strata::cli
