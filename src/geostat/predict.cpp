// Prediction in one go, and in pieces as targets come. Which targets share a block of a schedule
// decides the rounding (cholesky/whitened_sums.hpp), so pieces are cut where one go would cut them:
// what a source hands over is gathered up to that, whatever its own portions are.

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "geostat/checks.hpp"
#include "geostat/kriging.hpp"
#include "geostat/point_sets.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr const char* kPredictWhere = "predict";

void check_chunk(std::int64_t chunk) {
  require(chunk >= 0, ErrorKind::misuse, kPredictWhere, "chunk is {}, but must be at least 0",
          chunk);
}

/// Targets that a source handed over and that are not predicted yet.
class Pending {
 public:
  Pending(const Model& model, const TargetSource& source) : model_(model), source_(source) {}

  /// At most `count` targets, fewer only at the end.
  [[nodiscard]] Points take(std::int64_t count) {
    while (!ended_ && waiting_.size() < count) {
      Points more = source_(count - waiting_.size());
      ended_ = more.size() == 0 && more.y.empty();
      if (ended_) break;
      check_targets(model_, more, kPredictWhere);
      append(waiting_, more);
    }
    if (waiting_.size() <= count) return std::exchange(waiting_, {});
    Points first = rows_of(waiting_, 0, count);
    waiting_ = rows_of(waiting_, count, waiting_.size() - count);
    return first;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_ && waiting_.size() == 0; }

 private:
  const Model& model_;
  const TargetSource& source_;
  Points waiting_;
  bool ended_ = false;
};

}  // namespace

Prediction predict(const Model& model, const Points& targets, const CovarianceOptions& options,
                   std::int64_t chunk) {
  check_targets(model, targets, kPredictWhere);
  check_chunk(chunk);
  Kriging kriging(model, targets.size(), chunk, options, kPredictWhere);
  Prediction out = kriging.predict(targets, chunk);
  out.run = kriging.report();
  return out;
}

StreamedPrediction predict(const Model& model, const TargetSource& source,
                           const PredictionSink& sink, const CovarianceOptions& options,
                           std::int64_t chunk, std::int64_t expected) {
  constexpr std::int64_t kMany = 1 << 20;  // more than are computed at a time
  check_chunk(chunk);
  StreamedPrediction out;
  CovarianceOptions counted = options;
  if (options.run.progress) {
    counted.run.progress = [&out, &options, expected](Progress p) {
      if (std::string_view(p.what) == kPredictWhere) {
        p.done += static_cast<double>(out.targets);
        p.total = std::max(p.done, static_cast<double>(expected));
      }
      return options.run.progress(p);
    };
  }
  Kriging kriging(model, kMany, chunk, counted, kPredictWhere);
  out.run = kriging.report();
  Pending pending(model, source);
  const std::int64_t at_a_time = kriging.targets_at_a_time(kMany, chunk);
  for (Points piece = pending.take(at_a_time); piece.size() > 0; piece = pending.take(at_a_time)) {
    Prediction part = kriging.predict(piece, chunk);
    RunReport solve = std::exchange(part.solve, {});
    sink(piece, part);
    accumulate(out.solve, std::move(solve));
    out.targets += piece.size();
  }
  require(out.targets > 0, ErrorKind::misuse, kPredictWhere, "targets: 0 rows");
  out.certificate = kriging.certificate();
  out.rounding = kriging.rounding();
  return out;
}

}  // namespace strata
