#pragma once
// Where the updates of a branch lie in its work memory, one front after another.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strata {

/// Places of updates within a branch's work: the first gap that is large enough.
class WorkPlaces {
 public:
  std::int64_t take(std::int32_t s, std::int64_t elements) {
    std::int64_t begin = 0;
    auto before = live_.begin();
    for (; before != live_.end() && before->begin - begin < elements; ++before) begin = before->end;
    live_.insert(before, {s, begin, begin + elements});
    peak_ = std::max(peak_, begin + elements);
    return begin;
  }
  void give_back(std::int32_t s) {
    live_.erase(std::find_if(live_.begin(), live_.end(),
                             [=](const Live& one) { return one.supernode == s; }));
  }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }

 private:
  struct Live {
    std::int32_t supernode;
    std::int64_t begin, end;
  };
  std::vector<Live> live_;
  std::int64_t peak_ = 0;
};

}  // namespace strata
