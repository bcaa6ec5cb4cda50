// Solve a dense symmetric positive definite system in a quarter of the memory that its matrix
// takes.
//
// Prints the size of the matrix, the device memory it was given, what was moved, and the backward
// error.

#include <cstdio>
#include <strata/strata.hpp>
#include <vector>

int main() {
  const std::int64_t n = 1000;
  std::vector<double> a(n * n), b(n, 1.0), x(n);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) a[i + j * n] = i == j ? 2.0 * n : 1.0 / (1 + i + j);
  }

  strata::CholeskyOptions options;
  options.run.devices = "host:1";                     // "auto" takes a GPU where there is one
  options.run.device_memory_bytes = 2 * 1024 * 1024;  // the matrix has 8,000,000 bytes
  const strata::SolveResult result =
      strata::solve({a.data(), n, n, n}, {b.data(), n, 1, n}, {x.data(), n, 1, n}, options);

  if (!result.certificate.factor.ok) return 1;
  std::printf("matrix %lld bytes, device memory %lld bytes\n", static_cast<long long>(n * n * 8),
              static_cast<long long>(result.factor.peak_device_bytes));
  std::printf("moved %lld bytes, planned %lld bytes\n",
              static_cast<long long>(result.factor.traffic.total()),
              static_cast<long long>(result.factor.planned_traffic.total()));
  std::printf("backward error %.1e\n", result.certificate.backward_error);
  return 0;
}
