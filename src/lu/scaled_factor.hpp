#pragma once
// ScaledFactor: L·U of a system whose rows and columns are scaled, in its precision or in fp32.
//
// Contract: W is double or std::complex<double>, what systems and solutions are in; N is W or the
// same of float. What is factored is D·A·C in N, D and C powers of two by which no element of a row
// or a column is much above 1: what falls below the range of N is far below all that counts of its
// row. With FactorScales::none it is A itself, in the middle of the range. A is scaled while its
// panels are loaded, so that no copy of it exists beside the factor, or on devices that hold it
// beside the factor, where residuals are then made (products()). A factor that was saved is the
// same wherever it is opened, to the bit.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "dense/dense_block.hpp"
#include "lu/lu_panels.hpp"
#include "lu/matrix_products.hpp"
#include "lu/scaled_system.hpp"
#include "scalar/complex.hpp"
#include "store/stored_place.hpp"
#include "strata/lu.hpp"

namespace strata {

/// What the file of a factor begins with.
struct SavedFactor {
  Element element = Element::fp64;
  std::int64_t n = 0;
  std::int64_t panel = 1;
  LuInfo info{};
  bool transposed = false;  ///< A was given by rows: what is kept is of its transpose
  std::vector<int> row_exponent{};
  std::vector<int> column_exponent{};
  /// As a certificate with A found them; NaN: none was made.
  double scaled_condition = std::numeric_limits<double>::quiet_NaN();
  double log_determinant_error = std::numeric_limits<double>::quiet_NaN();
};

class ChecksumReader;
class ChecksumWriter;

enum class FactorScales : std::uint8_t { balanced, none };

template <class N, class W>
class ScaledFactor {
 public:
  /// Factors. `system` need not outlive it. A is W or the same of float.
  template <class A>
  ScaledFactor(const ScaledSystem<A>& system, const LuOptions& options,
               FactorScales scales = FactorScales::balanced, MatrixPlace place = MatrixPlace::gpus);
  /// What is saved behind `header`, whose element is N's. Throws Error{input} for what no factor
  /// can be; the caller finishes the reader.
  ScaledFactor(SavedFactor header, ChecksumReader& reader, const RunOptions& options);
  /// What rests in storage, in `options.storage`. Throws Error{storage} unless it is whole.
  ScaledFactor(SavedFactor header, const StoredPlace& place, const RunOptions& options);

  /// As of LuPanels, with the determinant of A as it was given.
  [[nodiscard]] const LuInfo& info() const noexcept { return header_.info; }
  [[nodiscard]] const RunReport& report() const noexcept { return panels_.report(); }
  [[nodiscard]] std::int64_t n() const noexcept { return header_.n; }
  /// In storage the header alone.
  void save(ChecksumWriter& writer);
  [[nodiscard]] bool in_storage() const noexcept { return panels_.in_storage(); }
  /// Where it rests in storage, but for the directories; panels that were found, and of how many.
  [[nodiscard]] StoredPlace place() const { return {known_.matrix, {}}; }
  [[nodiscard]] StoredParts stored() const;
  [[nodiscard]] const SavedFactor& header() const noexcept { return header_; }
  void note(double scaled_condition, double log_determinant_error) {
    header_.scaled_condition = scaled_condition;
    header_.log_determinant_error = log_determinant_error;
  }

  /// Products with A of the system, whole in host memory, by the devices of the factor; null where
  /// they do not hold both, or it is not worth it. `same`: it is the matrix that was factored; else
  /// it comes to the devices anew. Either copy is compared (require_same_matrix()). The system, the
  /// factor and `report`, to which what they do is added, outlive them.
  template <class A>
  [[nodiscard]] std::shared_ptr<MatrixProducts<A>> products(const ScaledSystem<A>& system,
                                                            bool same, RunReport& report);

  /// 2^e·M⁻¹·B or 2^e·M⁻ᴴ·B with M = D⁻¹·P⁻¹·L·U·C⁻¹ near A as it was given, e = `exponent`; what
  /// it did is added to `report`.
  [[nodiscard]] DenseBlockOf<W> solve(MatrixView<const W> b, bool adjoint, int exponent,
                                      RunReport& report);
  /// With a narrow N the same with all but the factors in fp64, on the host: the same M to rounding
  /// in fp64, where that in fp32 times the condition of M is much of the solution.
  [[nodiscard]] DenseBlockOf<W> solve_wide(MatrixView<const W> b, bool adjoint, int exponent);

 private:
  [[nodiscard]] DenseBlockOf<W> scaled(MatrixView<const W> b, bool adjoint, int exponent) const;
  void scale_back(DenseBlockOf<W>& x, bool adjoint, int exponent) const;
  /// What has to be known of what is stored before it is factored.
  struct Known {
    std::uint64_t matrix = 0;  ///< tells it from others, where it rests in storage
    double largest = 0;        ///< of its elements, scaled
    /// By stored column, where it rests in storage: it is read again, and may have changed.
    std::vector<std::uint64_t> columns{};
  };
  /// A column of what is stored of A times 2 to `exponent`, scaled; `to` may be where it lies.
  template <class A>
  void scale_column(const A* from, std::int64_t j, std::int64_t first, std::int64_t count,
                    int exponent, N* to) const;
  template <class A>
  [[nodiscard]] Known look_at(const SlabbedMatrix<A>& a, int exponent,
                              const LuOptions& options) const;
  template <class A>
  void factor(const SlabbedMatrix<A>& a, int exponent);
  template <class A>
  [[nodiscard]] LuInfo factor_loaded(const SlabbedMatrix<A>& a, int exponent);
  /// Whether a column is what it was when it was looked at.
  template <class A>
  [[nodiscard]] bool is_as_it_was(std::int64_t j, const A* column) const;
  template <class Solve>
  [[nodiscard]] DenseBlockOf<W> by_stored(MatrixView<const W> b, bool adjoint,
                                          const Solve& solve) const;
  [[nodiscard]] DenseBlockOf<W> solve_stored(MatrixView<const W> b, bool adjoint, int exponent,
                                             RunReport& report);
  [[nodiscard]] DenseBlockOf<W> solve_stored_wide(MatrixView<const W> b, bool adjoint,
                                                  int exponent) const;

  SavedFactor header_;
  Known known_;
  MatrixPlace place_ = MatrixPlace::gpus;
  LuPanels panels_;
};

/// Before the panels in a file; reads no more than the file holds, and throws Error{input}.
void save_header(const SavedFactor& header, ChecksumWriter& writer);
[[nodiscard]] SavedFactor read_header(ChecksumReader& reader, const std::string& path);
/// The same of a factor in storage, and where that is.
[[nodiscard]] SavedFactor read_stored_header(ChecksumReader& reader, const std::string& path,
                                             StoredPlace& place);

}  // namespace strata
