// Reference potrf of a batch: the matrices one after another.

#include "kernels/potrf_batched.hpp"
#include "kernels/potrf_one.hpp"

namespace strata {

template <class T>
void potrf_batched_reference(Queue& queue, const BatchArguments& arguments) {
  queue.submit([arguments] {
    for (std::int64_t b = 0; b < arguments.count; ++b) {
      const BatchEntry& a = arguments.entries[b];
      arguments.statuses[b] =
          factor_reference(MatrixView<T>{static_cast<T*>(a.data), a.n, a.n, a.ld});
    }
  });
}

template void potrf_batched_reference<double>(Queue&, const BatchArguments&);
template void potrf_batched_reference<float>(Queue&, const BatchArguments&);

}  // namespace strata
