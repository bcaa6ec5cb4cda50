#include "cholesky/device_probes.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

/// Row `row` of the sums, by vectors.
std::vector<double> sums_of(MemoryStore& store, std::int64_t row) {
  const BlockTable& blocks = store.blocks();
  std::vector<double> sums;
  for (std::int64_t c = 0; c < blocks.block_cols(lanczos::kSums); ++c) {
    const BlockId id(lanczos::kSums, row, c);
    const auto* from = reinterpret_cast<const double*>(store.lend(id));
    sums.insert(sums.end(), from, from + blocks.extent(id).cols);
  }
  return sums;
}

}  // namespace

DeviceProbes::DeviceProbes(TileFactor& factor, const double* points,
                           const CovarianceParameters& parameters, const ProbeOptions& options)
    : factor_(factor),
      points_(points),
      parameters_(parameters),
      options_(options),
      problem_(factor.lanczos_problem(options.probes, options.steps_max)) {
  parameters_.same_points = true;  // Σ has the nugget
}

DeviceProbes::~DeviceProbes() {
  for (const std::uint64_t identity : problem_.basis) factor_.forget(identity);
  factor_.forget(problem_.work_identity);
  factor_.forget(problem_.column_points_identity);
}

/// In the order of the schedule, without the factor.
std::vector<DeviceProbes::Memory> DeviceProbes::families_of(const BlockTable& blocks,
                                                            std::span<const double> norms) {
  const auto make = [&](int family, BlockSource source = nullptr) {
    return std::make_shared<FamilyMemory>(blocks, family, std::move(source));
  };
  const std::int64_t n = problem_.n;
  if (!work_) factor_.keep(problem_.work_identity, work_ = make(lanczos::kWork));
  const auto newest = static_cast<int>(basis_.size());
  BlockSource signs;
  if (newest == 0) {
    signs = [seed = options_.seed, n](const BlockExtent& x, std::byte* to) {
      auto* out = reinterpret_cast<double*>(to);
      const double size = 1 / std::sqrt(static_cast<double>(n));
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.rows; ++i)
          out[i + j * x.rows] = size * sign_of(seed, n, x.row + i, x.col + j);
      }
    };
  }
  basis_.push_back(make(lanczos::kBasis + newest, std::move(signs)));
  factor_.keep(problem_.basis.back(), basis_.back());
  const auto points = [&](int family) {
    return make(family, source_of_view(points_, std::max<std::int64_t>(n, 1), false));
  };
  std::vector<Memory> families{
      points(lanczos::kRowPoints), points(lanczos::kColumnPoints), work_,
      make(lanczos::kWhitened),    make(lanczos::kRight),          make(lanczos::kParts),
      make(lanczos::kSums)};
  families.push_back(make(lanczos::kNorms, [norms](const BlockExtent& x, std::byte* to) {
    std::copy_n(norms.data() + x.col, x.cols, reinterpret_cast<double*>(to));
  }));
  families.insert(families.end(), basis_.begin(), basis_.end());
  return families;
}

ProbeSums DeviceProbes::step(std::span<const double> norms) {
  require(problem_.basis.size() == basis_.size() &&
              std::ssize(norms) == (basis_.empty() ? 0 : options_.probes),
          ErrorKind::misuse, "log_determinant", "{} norms of {} probes in step {}", norms.size(),
          options_.probes, basis_.size());
  problem_.basis.push_back(factor_.new_identity());
  auto schedule = std::make_shared<const Schedule>(lanczos_step(problem_));
  std::shared_ptr<const Schedule> narrower;
  if (problem_.products_at_once > 0) {
    LanczosProblem narrow = problem_;
    narrow.products_at_once = 0;
    narrower = std::make_shared<const Schedule>(lanczos_step(narrow));
  }
  const std::vector<Memory> families = families_of(schedule->blocks, norms);
  report_ = factor_.step_lanczos(schedule, std::move(narrower), families, parameters_);

  std::vector<Memory> all{nullptr};
  all.insert(all.end(), families.begin(), families.end());
  MemoryStore store(schedule->blocks, std::move(all));
  const LanczosSums numbers{std::ssize(problem_.basis) - 1};
  ProbeSums sums;
  sums.shares = sums_of(store, numbers.share(0, numbers.step));
  // What the second pass finds is rounding of the first.
  const std::vector<double> again = sums_of(store, numbers.share(1, numbers.step));
  for (std::size_t j = 0; j < again.size(); ++j) sums.shares[j] += again[j];
  sums.squares = sums_of(store, numbers.square());
  if (numbers.neighbours() == 0) return sums;
  const std::vector<double> next = sums_of(store, 0);
  const std::vector<double> last = sums_of(store, 1);
  for (std::size_t j = 0; j + 1 < next.size(); ++j) {
    // Neighbours of different blocks do not meet.
    if ((static_cast<std::int64_t>(j) + 1) % problem_.columns == 0) continue;
    sums.above.push_back(next[j]);
    sums.below.push_back(last[j + 1]);
  }
  return sums;
}

}  // namespace strata
