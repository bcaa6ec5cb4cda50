// subtract_columns on the CPU, by the loops of subtract_columns_host.hpp.

#include "kernels/dense/subtract_columns_host.hpp"

#include "kernels/backend/operand.hpp"
#include "kernels/tall/subtract_columns.hpp"

namespace strata {

void subtract_columns_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  if (calls.count() > 0 && calls[0][0].element == Element::fp32)
    return subtract_columns_reference(queue, calls, parameters);
  require_variant(subtract_columns, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    run_fused<SubtractColumns>(matrix_of<double>(x[0]), matrix_of<const double>(x[1]),
                               matrix_of<const double>(x[2]));
  });
}

}  // namespace strata
