#include "bench/cholmod.hpp"

#include <cstdlib>
#include <string>

#include "base/environment_overlay.hpp"
#include "bench/peer_blas.hpp"

namespace strata::bench {
namespace {

/// What libraries read once, when they are loaded, unless the user has set it.
EnvironmentOverlay::Variables environment_for(int threads) {
  EnvironmentOverlay::Variables variables;
  // The name of the kernels that ours had to be told; none where ours chose by itself.
  const std::string kernels = host_blas().about.kernels_asked;
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr && !kernels.empty())
    variables.emplace_back("OPENBLAS_CORETYPE", kernels);
  // CHOLMOD's loops ask for four threads whatever the machine has, and these wait for each other by
  // spinning: with other processes on the cores a factorization took up to a hundred times as long.
  if (std::getenv("OMP_THREAD_LIMIT") == nullptr)
    variables.emplace_back("OMP_THREAD_LIMIT", std::to_string(threads));
  if (std::getenv("OMP_WAIT_POLICY") == nullptr)
    variables.emplace_back("OMP_WAIT_POLICY", "passive");
  return variables;
}

PeersPlugin load_plugin(int threads) {
  const EnvironmentOverlay overlay(environment_for(threads));
  return PeersPlugin("libstrata_peer_cholmod.so");
}

int given_or_all(int threads) { return threads > 0 ? threads : all_cores(); }

}  // namespace

CholmodLibrary::CholmodLibrary(int threads) : plugin_(load_plugin(given_or_all(threads))) {
  CholmodStart* start = nullptr;
  plugin_.bind(start, "strata_cholmod_start");
  plugin_.bind(open_, "strata_cholmod_open");
  plugin_.bind(analyze_, "strata_cholmod_analyze");
  plugin_.bind(factor_, "strata_cholmod_factor");
  plugin_.bind(log_determinant_, "strata_cholmod_log_determinant");
  plugin_.bind(solve_, "strata_cholmod_solve");
  plugin_.bind(close_, "strata_cholmod_close");
  PeersPlugin::call(start, "CHOLMOD", given_or_all(threads), &about_);
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
