// Look at a factorization of order 1,000,000 on eight GPUs, without any of them.

#include <cstdio>
#include <strata/strata.hpp>

int main() {
  const std::int64_t gib = std::int64_t{1} << 30;
  strata::Machine machine = strata::Machine::emulated(8, 128 * gib);
  machine.host_memory_bytes = 6000 * gib;
  strata::CholeskyOptions options;
  options.tile = 25'000;  // 40 by 40 tiles, so that the plan takes a moment only
  const strata::RunReport report = strata::simulate_cholesky(1'000'000, machine, options);
  std::printf("predicted %.0f s, %.1f TB over the links (the floor: %.1f TB), %lld tasks\n",
              report.predicted_seconds.value(),
              1e-12 * static_cast<double>(report.planned_traffic.total()),
              1e-12 * static_cast<double>(report.planned_traffic.floor_bytes),
              static_cast<long long>(report.tasks));

  try {
    (void)strata::simulate_cholesky(1'000'000, strata::Machine::emulated(1, gib), options);
  } catch (const strata::Error& error) {
    std::printf("refused: %s\n", error.what());
    return 0;
  }
  return 1;
}
