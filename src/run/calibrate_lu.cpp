// What calibrate() measures of LU's panels, on devices that do not run host code.
//
// Method: a panel of random numbers, thirty-two times as high as it is wide or as high as memory
// allows, is factored, and updates another one, alone on a queue. Tall panels are what a large
// matrix has: what does not grow with their height, exchanges and solves, counts as little in them
// as it does there. Columns are windows of one sequence of random numbers, so that little has to be
// made. A GPU is no faster than its rate for products when other queues work beside.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_update.hpp"
#include "run/calibrate_devices.hpp"
#include "scalar/dispatch.hpp"
#include "schedule/complex_work.hpp"
#include "schedule/machine_model.hpp"

namespace strata {
namespace {

constexpr std::int64_t kHeight = 32;  // rows of a panel, in its columns
constexpr int kCalls = 3;             // of which the first, which loads kernels, does not count

class PanelPair {
 public:
  PanelPair(Device& device, Element element, std::int64_t rows, std::int64_t columns)
      : element_(element),
        rows_(rows),
        columns_(columns),
        panel_(device.allocate(bytes())),
        beside_(device.allocate(bytes())),
        pivots_(device.allocate(columns * bytes_of(Element::int64))),
        status_(device.allocate_host(static_cast<std::int64_t>(sizeof(PanelStatus)))),
        random_(device.allocate_host((rows + kWindows) * bytes_of(element))) {
    dispatch_blas(element, [&]<class T>(std::type_identity<T>) {
      auto* values = reinterpret_cast<RealOf<T>*>(random_.data());
      const auto count = random_.bytes() / static_cast<std::int64_t>(sizeof(RealOf<T>));
      for (std::int64_t i = 0; i < count; ++i)
        values[i] =
            static_cast<RealOf<T>>(2 * random_uniform(3, static_cast<std::uint64_t>(i)) - 1);
    });
  }

  void fill(Queue& queue) const {
    for (const Buffer* to : {&panel_, &beside_}) {
      for (std::int64_t j = 0; j < columns_; ++j) {
        const std::int64_t window = (j * 1009 + (to == &panel_ ? 0 : 500)) % kWindows;
        queue.copy(to->data() + j * rows_ * bytes_of(element_),
                   random_.data() + window * bytes_of(element_), rows_ * bytes_of(element_),
                   CopyDirection::host_to_device);
      }
    }
  }
  [[nodiscard]] std::vector<BlockView> of_getrf() const {
    return {view(panel_),
            pivots(),
            {status_.data(), kPanelStatusRows, 1, kPanelStatusRows, 0, 0, Element::fp64}};
  }
  [[nodiscard]] std::vector<BlockView> of_update() const {
    return {view(beside_), view(panel_), pivots()};
  }

 private:
  static constexpr std::int64_t kWindows = 65'536;

  [[nodiscard]] std::int64_t bytes() const { return rows_ * columns_ * bytes_of(element_); }
  [[nodiscard]] BlockView view(const Buffer& buffer) const {
    return {buffer.data(), rows_, columns_, rows_, 0, 0, element_};
  }
  [[nodiscard]] BlockView pivots() const {
    return {pivots_.data(), 1, columns_, 1, 0, 0, Element::int64};
  }

  Element element_;
  std::int64_t rows_;
  std::int64_t columns_;
  Buffer panel_;
  Buffer beside_;
  Buffer pivots_;
  Buffer status_;
  Buffer random_;
};

}  // namespace

std::vector<KernelRate> measure_panels(DeviceSet& devices, Queue& queue, Element element,
                                       std::int64_t columns, double flops_per_second) {
  const Elements of_getrf{element, Element::int64, Element::fp64};
  const Elements of_update{element, element, Element::int64};
  const KernelFunction factor = devices.backend().kernels().find(getrf.name, of_getrf);
  const KernelFunction update = devices.backend().kernels().find(lu_update.name, of_update);
  Device& device = devices.device(0);
  const std::int64_t most = device.budget_bytes() / 3 / (columns * bytes_of(element));
  const std::int64_t rows = std::min(kHeight * columns, most);
  if (factor == nullptr || update == nullptr || rows < 2 * columns) return {};
  const PanelPair panels(device, element, rows, columns);
  const std::vector<BlockView> factored = panels.of_getrf();
  const std::vector<BlockView> updated = panels.of_update();
  std::vector<double> factor_times;
  std::vector<double> update_times;
  for (int call = 0; call < kCalls; ++call) {
    panels.fill(queue);
    const Event begin = queue.record();
    factor(queue, {factored, getrf.operands}, {});
    const Event middle = queue.record();
    update(queue, {updated, lu_update.operands}, {});
    const Event end = queue.record();
    queue.synchronize();
    if (call == 0) continue;
    factor_times.push_back(middle.seconds() - begin.seconds());
    update_times.push_back(end.seconds() - middle.seconds());
  }
  const std::vector<BlockExtent> extents(2, {0, 0, rows, columns});
  const auto rate_of = [&](const Operation& operation, const Elements& elements,
                           const std::vector<double>& times) {
    const double work = work_factor(element) *
                        operation.work(std::span(extents).first(&operation == &getrf ? 1 : 2), 0);
    const double least = work / flops_per_second;
    const double seconds = std::max({*std::min_element(times.begin(), times.end()), least, 1e-9});
    return KernelRate{std::string(operation.name), list_of(elements), work, seconds,
                      std::clamp(least / seconds, 0.01, 1.0)};
  };
  return {rate_of(getrf, of_getrf, factor_times), rate_of(lu_update, of_update, update_times)};
}

}  // namespace strata
