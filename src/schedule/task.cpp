#include "schedule/task.hpp"

namespace strata {

std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::potrf: return "potrf";
    case Operation::trsm: return "trsm";
    case Operation::syrk: return "syrk";
    case Operation::gemm: return "gemm";
    case Operation::trsm_left: return "trsm_left";
    case Operation::trsm_left_transposed: return "trsm_left_transposed";
    case Operation::gemm_left: return "gemm_left";
    case Operation::gemm_left_transposed: return "gemm_left_transposed";
    case Operation::covariance: return "covariance";
  }
  return "?";
}

double flops_of(const BlockTable& blocks, const Task& task) {
  const BlockExtent out = blocks.extent(task.out);
  const auto m = static_cast<double>(out.rows);
  const auto n = static_cast<double>(out.cols);
  // The inner extent of a product: the columns of its first input, or its rows if it enters
  // transposed.
  const auto inner = [&](bool transposed) {
    const BlockExtent a = blocks.extent(task.inputs[0]);
    return static_cast<double>(transposed ? a.rows : a.cols);
  };
  switch (task.operation) {
    case Operation::potrf: return n * n * n / 3 + n * n / 2 + n / 6;
    case Operation::trsm: return m * n * n;
    case Operation::syrk: return n * (n + 1) * inner(false);
    case Operation::gemm:
    case Operation::gemm_left: return 2 * m * n * inner(false);
    case Operation::gemm_left_transposed: return 2 * m * n * inner(true);
    case Operation::trsm_left:
    case Operation::trsm_left_transposed: return m * m * n;
    case Operation::covariance: return m * n;
  }
  return 0;
}

}  // namespace strata
