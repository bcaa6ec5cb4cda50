#pragma once
// UninitializedVector: a std::vector whose resize() leaves new elements as they are.
//
// Contract: elements are written before they are read. For large arrays that several threads fill:
// zeros would be written by one of them, which would also be the one that touches all pages first.

#include <memory>
#include <utility>
#include <vector>

namespace strata {

template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    std::construct_at(place, std::forward<Args>(args)...);
  }
};

template <class T>
using UninitializedVector = std::vector<T, UninitializedAllocator<T>>;

}  // namespace strata
