#include "bench/gmres_bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "base/check.hpp"
#include "run/device_set.hpp"

namespace strata::bench {
namespace {

struct Case {
  std::int64_t s = 1;
  KrylovBasis basis = KrylovBasis::newton;
  QrMethod method = QrMethod::cgs2;
  BlockOrthogonalization block = BlockOrthogonalization::classical;
  Preconditioner preconditioner = Preconditioner::none;
  Element precision = Element::fp64;
};

class GmresRunner {
 public:
  explicit GmresRunner(const GmresBench& bench)
      : bench_(bench), b_(static_cast<std::size_t>(bench.matrix.rows)) {
    const std::vector<double> ones(static_cast<std::size_t>(bench.matrix.cols), 1.0);
    multiply(bench.matrix, ones, b_);
  }

  [[nodiscard]] GmresRow run(const Case& what, const RunOptions& options) const {
    GmresOptions how;
    how.restart = bench_.restart;
    how.restarts_max = bench_.restarts_max;
    how.s = what.s;
    how.basis = what.basis;
    how.orthogonalization = what.method;
    how.precision = what.precision;
    how.tolerance = bench_.tolerance;
    how.balance = bench_.balance;
    how.ghost_zones = bench_.ghost_zones && what.s > 1;
    how.block_orthogonalization = what.block;
    if (what.block == BlockOrthogonalization::two_stage) how.panel = bench_.panel;
    how.preconditioner.kind = what.preconditioner;
    how.preconditioner.block_size = bench_.block_size;
    how.run = options;
    GmresRow row;
    row.s = what.s;
    row.basis = what.basis;
    row.method = what.method;
    row.block = what.block;
    row.preconditioner = what.preconditioner;
    row.precision = what.precision;
    std::vector<GmresInfo> infos;
    for (int r = 0; r < bench_.repeats; ++r) {
      std::vector<double> x(b_.size());
      const auto begin = std::chrono::steady_clock::now();
      infos.push_back(gmres(bench_.matrix, b_, x, how));
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      row.all_seconds.push_back(seconds.count());
    }
    std::vector<std::size_t> order(infos.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
      return row.all_seconds[i] < row.all_seconds[j];
    });
    const std::size_t middle = order[order.size() / 2];
    row.seconds = row.all_seconds[middle];
    row.info = std::move(infos[middle]);
    row.devices = std::ssize(row.info.report.devices);
    return row;
  }

 private:
  const GmresBench& bench_;
  std::vector<double> b_;
};

/// As many devices as `count` of the kind that the first of the options is.
RunOptions with_devices(const RunOptions& options, std::int64_t count) {
  RunOptions of = options;
  const DeviceSet devices(options);
  if (devices.backend().kind() == DeviceKind::gpu) {
    of.devices = "cuda:0";
    for (std::int64_t d = 1; d < count; ++d) of.devices += fmt::format(",{}", d);
  } else {
    of.devices = fmt::format("host:{}", count);
  }
  return of;
}

/// Those of the yardsticks first.
std::vector<Case> cases_of(const GmresBench& bench, Preconditioner preconditioner) {
  const KrylovBasis none = KrylovBasis::newton;
  const BlockOrthogonalization plain = BlockOrthogonalization::classical;
  const Element first = bench.precisions.front();
  std::vector<Case> cases{{1, none, QrMethod::cgs2, plain, preconditioner, first},
                          {1, none, QrMethod::mgs, plain, preconditioner, first}};
  const auto add = [&](std::int64_t s, KrylovBasis basis, Element precision) {
    for (const BlockOrthogonalization block : bench.blocks) {
      for (const QrMethod method : bench.methods) {
        if (goes_with(block, method))
          cases.push_back({s, basis, method, block, preconditioner, precision});
      }
    }
  };
  for (const std::int64_t s : bench.s) {
    for (const KrylovBasis basis : bench.bases) {
      for (const Element precision : bench.precisions) add(s, basis, precision);
    }
  }
  return cases;
}

void check(const GmresBench& bench) {
  require(bench.repeats >= 1, ErrorKind::misuse, "bench", "{} repeats", bench.repeats);
  require(!bench.precisions.empty(), ErrorKind::misuse, "bench", "no precision to compare");
  for (const std::int64_t s : bench.s)
    require(s >= 2 && s <= bench.restart, ErrorKind::misuse, "bench",
            "blocks of s = {} vectors do not fit a restart of {}", s, bench.restart);
  const auto has = [&](BlockOrthogonalization block) {
    return std::find(bench.blocks.begin(), bench.blocks.end(), block) != bench.blocks.end();
  };
  require(bench.panel == 0 || has(BlockOrthogonalization::two_stage), ErrorKind::misuse, "bench",
          "a panel of {} vectors is of two-stage orthogonalization", bench.panel);
  for (const BlockOrthogonalization block : bench.blocks)
    require(std::any_of(bench.methods.begin(), bench.methods.end(),
                        [block](QrMethod method) { return goes_with(block, method); }),
            ErrorKind::misuse, "bench", "{} orthogonalization goes with none of the methods",
            to_string(block));
}

}  // namespace

std::string name_of(const GmresRow& row) {
  std::string behind = row.precision == Element::fp64 ? "" : ", fp32";
  if (row.preconditioner != Preconditioner::none)
    behind += fmt::format(", {}", to_string(row.preconditioner));
  if (row.s == 1) return fmt::format("gmres {}{}", to_string(row.method), behind);
  std::string name =
      fmt::format("s = {} {} {}", row.s, to_string(row.basis), to_string(row.method));
  if (row.block != BlockOrthogonalization::classical)
    name += fmt::format(" {}", to_string(row.block));
  return name + behind;
}

std::vector<GmresRow> run_gmres_bench(const GmresBench& bench, const RunOptions& options,
                                      const std::function<void(const GmresRow&)>& told) {
  check(bench);
  const GmresRunner runner(bench);
  std::vector<GmresRow> rows;
  const auto keep = [&](GmresRow row, double yardstick) {
    row.ratio = yardstick / row.seconds;
    if (!rows.empty()) rows.back().info.report.trace = {};
    rows.push_back(std::move(row));
    if (told) told(rows.back());
  };
  for (const Preconditioner preconditioner : bench.preconditioners) {
    double yardstick = 0;
    for (const Case& what : cases_of(bench, preconditioner)) {
      GmresRow row = runner.run(what, options);
      if (yardstick == 0) yardstick = row.seconds;
      keep(std::move(row), yardstick);
    }
  }
  for (const std::int64_t count : bench.device_counts) {
    const RunOptions of = with_devices(options, count);
    const std::vector<Case> cases = cases_of(bench, bench.preconditioners.back());
    GmresRow first = runner.run(cases.front(), of);
    const double seconds = first.seconds;
    keep(std::move(first), seconds);
    for (const Case& what : cases) {
      if (what.s == bench.s.back() && what.basis == bench.bases.back())
        keep(runner.run(what, of), seconds);
    }
  }
  return rows;
}

}  // namespace strata::bench
