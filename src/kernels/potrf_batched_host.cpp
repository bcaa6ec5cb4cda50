// potrf of a batch by LAPACK: the matrices one after another, in one piece of work of the queue, so
// that many small ones do not pay for many submissions.

#include "kernels/potrf_batched.hpp"
#include "kernels/potrf_one.hpp"

namespace strata {

template <class T>
void potrf_batched_host(Queue& queue, const BatchArguments& arguments) {
  queue.submit([arguments] {
    for (std::int64_t b = 0; b < arguments.count; ++b) {
      const BatchEntry& a = arguments.entries[b];
      arguments.statuses[b] = factor_host(MatrixView<T>{static_cast<T*>(a.data), a.n, a.n, a.ld});
    }
  });
}

template void potrf_batched_host<double>(Queue&, const BatchArguments&);
template void potrf_batched_host<float>(Queue&, const BatchArguments&);

}  // namespace strata
