#include "bench/cudss_problem.hpp"

#include <array>

#include "run/device_set.hpp"

namespace strata::bench {
namespace {

/// The index of the first device, which has to be a GPU.
int first_gpu(const std::string& devices) {
  const DeviceChoice first = choose_all_devices(devices).front();
  require(first.backend == "cuda", ErrorKind::device, "bench",
          "cuDSS: the first device of '{}' is no GPU", devices);
  return first.indices.front();
}

}  // namespace

CudssPeer::CudssPeer(const std::string& devices) : device_(first_gpu(devices)) {
  CudssStart* start = nullptr;
  plugin_.bind(start, "strata_cudss_start");
  plugin_.bind(open_, "strata_cudss_open");
  plugin_.bind(analyze_, "strata_cudss_analyze");
  plugin_.bind(factor_, "strata_cudss_factor");
  plugin_.bind(solve_, "strata_cudss_solve");
  plugin_.bind(close_, "strata_cudss_close");
  std::array<char, 32> version{};
  PeersPlugin::call(start, "cuDSS", version.data(), std::ssize(version));
  version_ = version.data();
}

CudssProblem::CudssProblem(const CudssPeer& peer, const SparseMatrix& lower, std::int64_t nrhs)
    : peer_(peer) {
  const CudssMatrix matrix{lower.rows, lower.start.data(), lower.column.data(), lower.value.data(),
                           nrhs};
  PeersPlugin::call(peer_.open_, "cuDSS", &matrix, peer_.device_, &problem_);
}

CudssProblem::~CudssProblem() {
  std::array<char, 64> message{};
  (void)peer_.close_(problem_, message.data(), std::ssize(message));
}

std::int64_t CudssProblem::analyze() {
  std::int64_t factor_entries = 0;
  PeersPlugin::call(peer_.analyze_, "cuDSS", problem_, &factor_entries);
  return factor_entries;
}

std::int64_t CudssProblem::factor(const double* values) {
  std::int64_t bad_row = -1;
  PeersPlugin::call(peer_.factor_, "cuDSS", problem_, values, &bad_row);
  return bad_row;
}

void CudssProblem::solve(const double* b, std::int64_t nrhs, double* x) {
  PeersPlugin::call(peer_.solve_, "cuDSS", problem_, b, nrhs, x);
}

}  // namespace strata::bench
