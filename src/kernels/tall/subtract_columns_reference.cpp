// Reference subtract_columns.

#include "kernels/backend/operand.hpp"
#include "kernels/tall/subtract_columns.hpp"
#include "scalar/dispatch.hpp"
#include "scalar/double_double.hpp"

namespace strata {

void subtract_columns_reference(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters) {
  require_variant(subtract_columns, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    dispatch_native(x[0].element, [&]<class T>(std::type_identity<T>) {
      const auto to = matrix_of<T>(x[0]);
      const auto y = matrix_of<const T>(x[1]);
      const auto s = matrix_of<const double>(x[2]);
      for (std::int64_t k = 0; k < to.cols; ++k) {
        for (std::int64_t r = 0; r < to.rows; ++r) {
          auto value = static_cast<double>(to(r, k));
          for (std::int64_t i = 0; i < y.cols; ++i)
            value = fused(-s(i, k), static_cast<double>(y(r, i)), value);
          to(r, k) = static_cast<T>(value);
        }
      }
    });
  });
}

}  // namespace strata
