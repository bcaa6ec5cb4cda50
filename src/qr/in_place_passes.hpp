#pragma once
// InPlacePasses: passes over a tall matrix that lies in the memory of a device, without a plan.
//
// Contract: as pass_executor.hpp. The tasks of row_pass() are put into queues of the site in
// program order, on a GPU into one, on a CPU into one for each core, whose blocks are those of a
// device; a task waits for those of other queues that touch its blocks. V is where its caller has
// it, with its leading dimension, and is not copied; the small blocks beside it are in memory that
// the site keeps. The report has the bytes that crossed the link, which are those of the small
// blocks, and a span for each task. `progress` is asked while tasks run; Error{cancelled} if it
// says so.

#include <vector>

#include "qr/pass_executor.hpp"
#include "run/device_site.hpp"

namespace strata {

template <class T>
class InPlacePasses final : public PassExecutor<T> {
 public:
  /// V, and the columns of V that lie beside them, are in memory of the site, whose mutex is held
  /// as long as this lives. No block of a pass has columns of both.
  InPlacePasses(DeviceSite& site, const Options& options, MatrixView<T> v,
                MatrixView<T> beside = {})
      : site_(site),
        queues_(queues_of(site, options)),
        progress_(options.progress),
        v_(v),
        beside_(beside) {}

  [[nodiscard]] std::int64_t rows() const override { return v_.rows; }
  [[nodiscard]] std::int64_t cols() const override { return v_.cols + beside_.cols; }
  [[nodiscard]] RunReport run(RowProblem problem, const PassData<T>& data) override;
  void read(std::int64_t first, std::int64_t count, T* packed) override;

 private:
  [[nodiscard]] static int queues_of(const DeviceSite& site, const Options& options);
  [[nodiscard]] RowProblem completed(RowProblem problem) const;

  DeviceSite& site_;
  int queues_;
  ProgressCallback progress_;
  MatrixView<T> v_;
  MatrixView<T> beside_;
};

}  // namespace strata
