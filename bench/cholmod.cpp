#include "bench/cholmod.hpp"

#include <cstdlib>
#include <string>

#include "base/environment_overlay.hpp"
#include "bench/peer_blas.hpp"

namespace strata::bench {
namespace {

/// An OpenBLAS chooses its kernels once, when it is loaded, by this variable where it is set. It
/// has the name of the kernels that ours had to be told, and is not set where ours chose by itself.
EnvironmentOverlay::Variables kernels_of_ours() {
  const BlasDescription& ours = host_blas().about;
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr || ours.kernels_asked.empty()) return {};
  return {{"OPENBLAS_CORETYPE", ours.kernels_asked}};
}

PeersPlugin load_plugin() {
  const EnvironmentOverlay overlay(kernels_of_ours());
  return PeersPlugin("libstrata_peer_cholmod.so");
}

}  // namespace

CholmodLibrary::CholmodLibrary(int threads) : plugin_(load_plugin()) {
  CholmodStart* start = nullptr;
  plugin_.bind(start, "strata_cholmod_start");
  plugin_.bind(open_, "strata_cholmod_open");
  plugin_.bind(analyze_, "strata_cholmod_analyze");
  plugin_.bind(factor_, "strata_cholmod_factor");
  plugin_.bind(log_determinant_, "strata_cholmod_log_determinant");
  plugin_.bind(solve_, "strata_cholmod_solve");
  plugin_.bind(close_, "strata_cholmod_close");
  PeersPlugin::call(start, "CHOLMOD", threads > 0 ? threads : all_cores(), &about_);
}

CholmodProblem::CholmodProblem(const CholmodLibrary& library, const SparseMatrix& lower)
    : library_(library), column_(lower.column.begin(), lower.column.end()) {
  const CholmodMatrix matrix{lower.rows, lower.start.data(), column_.data(), lower.value.data()};
  PeersPlugin::call(library_.open_, "CHOLMOD", &matrix, &problem_);
}

CholmodProblem::~CholmodProblem() {
  std::array<char, 64> message{};
  (void)library_.close_(problem_, message.data(), std::ssize(message));
}

CholmodCounts CholmodProblem::analyze(std::span<const std::int64_t> order) {
  CholmodCounts counts{};
  const std::int64_t* first = order.empty() ? nullptr : order.data();
  PeersPlugin::call(library_.analyze_, "CHOLMOD", problem_, first, &counts);
  return counts;
}

std::int64_t CholmodProblem::factor(std::span<const double> values) {
  std::int64_t bad_row = -1;
  PeersPlugin::call(library_.factor_, "CHOLMOD", problem_, values.data(), &bad_row);
  return bad_row;
}

double CholmodProblem::log_determinant() const {
  double value = 0;
  PeersPlugin::call(library_.log_determinant_, "CHOLMOD", problem_, &value);
  return value;
}

std::span<const double> CholmodProblem::solve(std::span<const double> b, std::int64_t nrhs) {
  const double* x = nullptr;
  PeersPlugin::call(library_.solve_, "CHOLMOD", problem_, b.data(), nrhs, &x);
  return {x, b.size()};
}

}  // namespace strata::bench
