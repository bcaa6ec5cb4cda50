// See lu_storage.hpp.

#include "bench/lu_storage.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "base/work_crew.hpp"
#include "bench/uniform_matrix.hpp"
#include "strata/calibrate.hpp"
#include "strata/detect.hpp"

namespace strata::bench {
namespace {

/// The folders of a run, gone with it.
class Folders {
 public:
  explicit Folders(const std::vector<std::string>& directories) {
    for (const std::string& directory : directories)
      paths.push_back(directory + "/strata-bench-lu");
  }
  Folders(const Folders&) = delete;
  Folders& operator=(const Folders&) = delete;
  ~Folders() { remove(); }
  void remove() {
    std::error_code error;
    for (const std::string& path : paths) std::filesystem::remove_all(path, error);
  }
  std::vector<std::string> paths;
};

/// By rows or by columns the same matrix.
MatrixSource<double> uniform_matrix(std::int64_t n, std::uint64_t seed, bool by_rows) {
  const auto crew = std::make_shared<WorkCrew>(helping_threads());
  const std::int64_t along = by_rows ? n : 1;
  const std::int64_t across = by_rows ? 1 : n;
  return {n, by_rows, [=](std::int64_t first, std::int64_t count, double* to) {
            crew->share(count, [&](std::int64_t c) {
              for (std::int64_t i = 0; i < n; ++i) {
                const auto place = static_cast<std::uint64_t>((first + c) * across + i * along);
                to[c * n + i] = random_uniform(seed, place) - 0.5;
              }
            });
          }};
}

MatrixView<const double> column_of(const std::vector<double>& x) {
  return {x.data(), std::ssize(x), 1, std::max<std::int64_t>(std::ssize(x), 1)};
}
MatrixView<double> column_of(std::vector<double>& x) {
  return {x.data(), std::ssize(x), 1, std::max<std::int64_t>(std::ssize(x), 1)};
}

void solve_by_panels(std::int64_t n, const LuBench& bench, const LuOptions& options,
                     const std::vector<double>& b, std::vector<double>& x, LuStorageRow& row) {
  const MatrixSource<double> a = uniform_matrix(n, bench.seed, false);
  const auto start = std::chrono::steady_clock::now();
  GeneralFactor factor = factor_general(a, Element::fp64, options);
  row.total_seconds = seconds_since(start);
  row.run = factor.report();
  row.growth = factor.info().growth;
  row.how = factor.stored().how;
  const auto solve = std::chrono::steady_clock::now();
  (void)factor.solve(column_of(b), column_of(x));
  row.solve_seconds = seconds_since(solve);
}

/// B is carried along, and X is what the factors give.
void solve_by_stripes(std::int64_t n, const LuBench& bench, const RunOptions& run,
                      const std::vector<double>& b, std::vector<double>& x, LuStorageRow& row) {
  StripeOptions stripes = *bench.stripes;
  stripes.refines = false;
  stripes.run = run;
  const auto start = std::chrono::steady_clock::now();
  const StripeSolveResult result = strata::solve_by_stripes(uniform_matrix(n, bench.seed, true),
                                                            column_of(b), column_of(x), stripes);
  row.total_seconds = seconds_since(start);
  row.run = result.factor;
  row.growth = result.info.growth;
  row.how = result.how;
  row.refusal = result.refusal;
  row.solve_seconds = result.solve.seconds;
}

LuStorageRow run_one(std::int64_t n, const LuBench& bench, LuOptions options) {
  Folders folders(options.run.storage.directories);
  options.run.storage.directories = folders.paths;
  LuStorageRow row;
  row.n = n;
  const StorageModel rates = calibrate_storage(folders.paths);
  folders.remove();
  row.read_rate = rates.read.bytes_per_second;
  row.write_rate = rates.write.bytes_per_second;
  if (!options.run.rates) {
    Machine machine = detect_machine(options.run.devices, options.run.device_memory_bytes);
    machine.storage = rates;
    options.run.rates = machine;
  }
  std::vector<double> b(at(n));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_uniform(bench.seed + 1, i) - 0.5;
  std::vector<double> x(b);
  bench.stripes ? solve_by_stripes(n, bench, options.run, b, x, row)
                : solve_by_panels(n, bench, options, b, x, row);
  const Traffic& planned = row.run.planned_traffic;
  // The matrix is made, not read, the first time.
  const std::int64_t read = planned.storage_read_bytes - n * n * bytes_of(Element::fp64);
  row.bound_seconds = std::max(static_cast<double>(read) / row.read_rate,
                               static_cast<double>(planned.storage_write_bytes) / row.write_rate);
  if (row.refusal.empty()) {
    const LinearResidual left =
        residual_of<double>(n, uniform_matrix(n, bench.seed, false).fill, x, b);
    row.largest_residual = left.largest;
    row.hpl_residual = left.hpl;
  }
  return row;
}

}  // namespace

std::vector<LuStorageRow> run_lu_storage(const LuBench& bench, const LuOptions& options) {
  require(bench.precision == Element::fp64 && bench.peer.empty(), ErrorKind::misuse, "bench",
          "--storage is of fp64, without a peer");
  std::vector<LuStorageRow> rows;
  for (const std::int64_t n : bench.sizes) rows.push_back(run_one(n, bench, options));
  return rows;
}

}  // namespace strata::bench
