#pragma once
// PassExecutor: who carries out the passes over one tall matrix, where it lies.
//
// Contract: a pass is a RowProblem of which the executor chooses what changes no bit: devices,
// blocks, identities, groups. V is left as the tasks of row_pass() define it. Passes follow one
// another; V need not be with its caller between them, and is there when a pass that writes it does
// not say that V stays. Throws as qr() does.

#include <functional>
#include <vector>

#include "qr/row_passes.hpp"
#include "qr/row_store.hpp"
#include "strata/qr.hpp"

namespace strata {

/// What a pass takes beside V, packed, and where the host wants what it computes; null where the
/// pass has none. The triangles of TSQR stay with the executor, from RowPass::triangles, whose sum
/// is the last of them, to RowPass::orthogonal, whose factor is what Q is multiplied by.
template <class T>
struct PassData {
  const double* scales = nullptr;
  const std::byte* factor = nullptr;
  std::byte* sum = nullptr;
  double* maxima = nullptr;  ///< at first 0; the largest magnitude in each column, NaN where one is
  const double* coefficients = nullptr;  ///< C, …
  /// … and Y, of passes with an implicit Q; of those that form Q, nothing says that it goes where
  /// other passes write V, and is V from then on.
  TallColumns<T> beside{};
  /// What the host has to do that does not depend on the pass: called once, while the devices are
  /// at it where the executor can, else before.
  std::function<void()> meanwhile{};
};
/// largest_j ← the larger of the two, NaN if one is.
void keep_larger(const std::vector<double>& of_block, double* largest);

template <class T>
class PassExecutor {
 public:
  PassExecutor() = default;
  PassExecutor(const PassExecutor&) = delete;
  PassExecutor& operator=(const PassExecutor&) = delete;
  virtual ~PassExecutor() = default;

  [[nodiscard]] virtual std::int64_t rows() const = 0;
  [[nodiscard]] virtual std::int64_t cols() const = 0;
  [[nodiscard]] virtual RunReport run(RowProblem problem, const PassData<T>& data) = 0;
  /// Whether two solves in the element of V are better carried out together, V stored once, and the
  /// Gram matrix between them is formed without storing anything.
  [[nodiscard]] virtual bool joins_solves() const { return false; }
  /// Rows first … first + count − 1 of V as no pass has written it yet, column-major, packed.
  virtual void read(std::int64_t first, std::int64_t count, T* packed) = 0;
};

/// How sums of products of doubles are formed in dd (RowProblem::wide_sums) of n columns: where
/// nothing else is asked for by digits on GPUs alone, which take less by them from 20 columns on
/// (docs/benchmarks.md), and CPUs many times as long.
[[nodiscard]] std::uint32_t wide_sums_of(WideSums asked, std::int64_t n, bool gpus);
[[nodiscard]] std::uint32_t wide_sums_of(WideSums asked, std::int64_t n, const Machine& machine);

/// Blocks of V of about so many elements, where nothing but speed has a say. GPUs want blocks of
/// 64 MiB, so that launches are few beside the bytes that they read, as far as each device has
/// eight, its memory holds sixteen and a column of one fits a bounce buffer; CPUs 2 MiB, which
/// their caches hold.
[[nodiscard]] std::int64_t pass_block_elements(std::int64_t m, std::int64_t n, Element element,
                                               const Machine& machine);

}  // namespace strata
