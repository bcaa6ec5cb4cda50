#pragma once
// Options of factors that tests share.

#include <cstdint>
#include <string>

#include "strata/sparse_factor.hpp"

namespace strata::test {

inline SparseCholeskyOptions options_on(const std::string& devices, std::int64_t bytes = 0,
                                        Element element = Element::fp64) {
  SparseCholeskyOptions options;
  options.run.devices = devices;
  options.run.device_memory_bytes = bytes;
  options.precision = element;
  return options;
}

/// On the host, ordered by AMD.
inline SparseCholeskyOptions options_in(Element precision) {
  SparseCholeskyOptions options;
  options.run.devices = "host";
  options.analysis.ordering = SparseOrdering::amd;
  options.precision = precision;
  return options;
}

}  // namespace strata::test
