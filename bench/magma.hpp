#pragma once
// MAGMA where it is installed: loaded at run time, never linked.
//
// Contract: the prototypes are those of MAGMA 2.8 (magma_auxiliary.h, magma_types.h and what
// magma_z.h becomes for doubles and floats; the first with them for `_native` is 2.5), built with
// 32-bit integers (magma_int_t is int). Throws std::runtime_error with one line where MAGMA is not,
// or is too old. Loaded once, it stays for the rest of the process.

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "bench/installed_library.hpp"

namespace strata::bench {

class MagmaLibrary {
 public:
  static constexpr std::array<const char*, 2> kFiles{"libmagma.so", "libmagma.so.2"};

  /// Takes the first of the files that loads, and calls magma_init.
  explicit MagmaLibrary(std::span<const char* const> files = kFiles) : library_("MAGMA", files) {
    library_.bind(init_, "magma_init");
    library_.bind(version_, "magma_version");
    library_.bind(set_device_, "magma_setdevice");
    library_.bind(dpotrf_, "magma_dpotrf_native");
    library_.bind(spotrf_, "magma_spotrf_native");
    InstalledLibrary::check("magma_init", init_());
  }

  /// "2.8.0".
  [[nodiscard]] std::string version() const {
    int major = 0;
    int minor = 0;
    int micro = 0;
    version_(&major, &minor, &micro);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(micro);
  }

  /// The lower triangle in place, by GPU alone ("native"), on memory of that GPU; returns info.
  template <class T>
  [[nodiscard]] int potrf(int device, T* a, std::int64_t n, std::int64_t ld) const {
    constexpr int kLower = 122;  // MagmaLower
    // MAGMA's own indices are i + j·ldda in magma_int_t.
    if (n > 0 && ld > std::numeric_limits<int>::max() / n)
      throw std::runtime_error("order " + std::to_string(n) + " is too large for 32-bit integers");
    set_device_(device);
    int info = 0;
    const auto order = static_cast<int>(n);
    const auto stride = static_cast<int>(ld);
    if constexpr (std::is_same_v<T, double>) {
      (void)dpotrf_(kLower, order, a, stride, &info);
    } else {
      (void)spotrf_(kLower, order, a, stride, &info);
    }
    return info;
  }

 private:
  InstalledLibrary library_;
  int (*init_)() = nullptr;
  void (*version_)(int*, int*, int*) = nullptr;
  void (*set_device_)(int) = nullptr;
  int (*dpotrf_)(int uplo, int n, double* a, int ldda, int* info) = nullptr;
  int (*spotrf_)(int uplo, int n, float* a, int ldda, int* info) = nullptr;
};

}  // namespace strata::bench
