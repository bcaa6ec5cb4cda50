#pragma once
// TallSite: a tall matrix in the memory of one or several devices, with what kernels take beside
// it.
//
// Contract: T is double or float. V is dealt to the devices as qr_part_rows() has it; kernels work
// on the first part. What was given can be put back.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/tall/gram.hpp"
#include "qr/pass_executor.hpp"
#include "run/device_set.hpp"
#include "strata/qr.hpp"

namespace strata::bench {

/// As options name the first `count` devices of a set; a CPU has one memory, whatever its number.
inline std::string names_of_first(DeviceSet& devices, int count) {
  if (devices.backend().kind() == DeviceKind::cpu) return fmt::format("host:{}", count);
  std::string names = devices.device(0).description().name;
  for (int d = 1; d < count; ++d)
    names += fmt::format(",{}", devices.device(d).description().name.substr(5));  // "cuda:"
  return names;
}

template <class T>
class TallSite {
 public:
  /// The element of sums that are wide.
  static constexpr Element kElement = element_of<T>;
  static constexpr Element kWide = std::is_same_v<T, double> ? Element::dd : Element::fp64;

  /// On the first `count` devices. Throws Error{memory} if V does not fit.
  TallSite(DeviceSet& devices, int count, std::int64_t n, std::vector<T> given)
      : devices_(devices),
        m_(std::ssize(given) / n),
        n_(n),
        given_(std::move(given)),
        queue_(devices.device(0).make_queue(QueuePriority::normal)),
        sums_(devices.device(0).allocate(n * n * 16)),
        scales_(load(std::vector<double>(static_cast<std::size_t>(n), 1.0))),
        factor_(load(factor<T>(1))),
        wide_factor_(load(factor<double>(kWide == Element::dd ? 2 : 1))) {
    const std::int64_t most = qr_part_rows(m_, n, count);
    for (int d = 0; d < count; ++d) {
      const std::int64_t rows = std::min(most, m_ - first_row(d, most));
      buffers_.push_back(devices.device(d).allocate(std::max<std::int64_t>(rows, 1) * n * kBytes));
      parts_.push_back(
          {reinterpret_cast<T*>(buffers_.back().data()), rows, n, std::max<std::int64_t>(rows, 1)});
      queues_.push_back(devices.device(d).make_queue(QueuePriority::normal));
    }
    fill();
  }

  [[nodiscard]] const std::vector<MatrixView<T>>& parts() const noexcept { return parts_; }

  double seconds_of(const Operation& operation, const std::vector<BlockView>& views,
                    std::uint32_t variant = 0) {
    Elements elements;
    for (const BlockView& view : views) elements.push_back(view.element);
    const KernelFunction kernel = devices_.backend().kernels().find(operation.name, elements);
    const Event begin = queue_->record();
    kernel(*queue_, {views, operation.operands}, {.variant = variant});
    const Event end = queue_->record();
    queue_->synchronize();
    return end.seconds() - begin.seconds();
  }

  /// V as it was given is factored where it lies, `r` is n × n. From the call to the return.
  double seconds_of_qr(const QrOptions& how, MatrixView<T> r, QrInfo& info) {
    fill();
    const auto begin = std::chrono::steady_clock::now();
    info = parts_.size() == 1 ? qr_in_place(parts_[0], r, how)
                              : qr_in_place(std::span<const MatrixView<T>>(parts_), r, how);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  /// How the library forms sums in double-double there.
  [[nodiscard]] std::uint32_t sums() const {
    return wide_sums_of(WideSums::automatic, n_, devices_.machine());
  }
  [[nodiscard]] BlockView v() const {
    const MatrixView<T>& part = parts_[0];
    return {part.data, part.rows, n_, part.ld, 0, 0, kElement};
  }
  [[nodiscard]] BlockView b(Element e) const { return {sums_.data(), n_, n_, n_, 0, 0, e}; }
  [[nodiscard]] BlockView largest() const { return {sums_.data(), n_, 1, n_, 0, 0, Element::fp64}; }
  [[nodiscard]] BlockView d() const { return {scales_.data(), n_, 1, n_, 0, 0, Element::fp64}; }
  [[nodiscard]] BlockView r(Element e) const {
    return {e == kElement ? factor_.data() : wide_factor_.data(), n_, n_, n_, 0, 0, e};
  }

  /// V as it was given.
  void fill() {
    std::int64_t first = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      for (std::int64_t j = 0; j < n_; ++j)
        queues_[p]->copy(parts_[p].column(j), given_.data() + first + j * m_,
                         parts_[p].rows * kBytes, CopyDirection::host_to_device);
      first += parts_[p].rows;
    }
    for (const auto& queue : queues_) queue->synchronize();
  }

 private:
  static constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));

  [[nodiscard]] std::int64_t first_row(int d, std::int64_t most) const {
    return std::min(m_, d * most);
  }
  template <class W>
  Buffer load(const std::vector<W>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(W));
    Buffer buffer = devices_.device(0).allocate(bytes);
    queue_->copy(buffer.data(), values.data(), bytes, CopyDirection::host_to_device);
    queue_->synchronize();
    return buffer;
  }
  /// Nearly the identity, so that V can be solved with it again and again; `parts` numbers each.
  template <class W>
  [[nodiscard]] std::vector<W> factor(std::int64_t parts) const {
    std::vector<W> r(static_cast<std::size_t>(n_ * n_ * parts));
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i <= j; ++i)
        r[static_cast<std::size_t>((i + j * n_) * parts)] = i == j ? W(1) : W(0x1p-20);
    }
    return r;
  }

  DeviceSet& devices_;
  std::int64_t m_;
  std::int64_t n_;
  std::vector<T> given_;
  std::unique_ptr<Queue> queue_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Buffer> buffers_;
  std::vector<MatrixView<T>> parts_;
  Buffer sums_;
  Buffer scales_;
  Buffer factor_;
  Buffer wide_factor_;
};

}  // namespace strata::bench
