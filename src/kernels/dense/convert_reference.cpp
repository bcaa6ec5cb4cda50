// Reference convert, element by element.

#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_reference.hpp"

namespace strata {

void convert_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(convert, parameters.variant, 0);
  submit_each(queue, calls, [scales = scales_of(parameters)](const BlockView* x) {
    for (std::int64_t j = 0; j < x[0].cols; ++j) {
      for (std::int64_t i = 0; i < x[0].rows; ++i)
        set_element(x[0], scales, i, j, element_at(x[1], scales, i, j));
    }
  });
}

}  // namespace strata
