#pragma once
// RowStore: a tall matrix where its caller has it, beside small blocks in memory.
//
// Contract: as block_store.hpp. Family rows::kMatrix is read from and written to a column-major
// view in place: its home is the caller's own memory, and nothing of its size is allocated. With a
// second view its columns follow those of the first, as those of [A b]. Family rows::kBeside is in
// another matrix of the caller's in the same way. The other families are in a MemoryStore.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/read_ahead.hpp"
#include "qr/row_passes.hpp"
#include "store/memory_store.hpp"
#include "strata/qr.hpp"

namespace strata {

/// The columns of a matrix that a pass reads and perhaps writes; `to` is null if it may not. What
/// is written is not read again in the same pass unless `to` is `from`.
template <class T>
struct TallColumns {
  TallInput<T> from;
  TallInput<T> beside{};  ///< further columns, of as many rows
  MatrixView<T> to{};
  MatrixView<T> to_beside{};  ///< where further columns are written
  /// For each column that of `to` where it is written and read; −1: nowhere, it is zeros. Empty:
  /// the same.
  std::vector<std::int64_t> places{};

  [[nodiscard]] std::int64_t rows() const noexcept { return from.rows(); }
  [[nodiscard]] std::int64_t cols() const noexcept { return from.cols() + beside.cols(); }
  [[nodiscard]] T* column_to(std::int64_t j) const noexcept {
    if (!places.empty()) {
      const std::int64_t place = places[static_cast<std::size_t>(j)];
      return place < 0 ? nullptr : to.column(place);
    }
    return j < from.cols() ? to.column(j) : to_beside.column(j - from.cols());
  }
  /// Rows first … first + count − 1 of columns j … j + columns − 1, packed.
  void read(std::int64_t first, std::int64_t count, std::int64_t j, std::int64_t columns,
            T* packed) const {
    if (!places.empty()) return read_places(first, count, j, columns, packed);
    const std::int64_t of_from = std::clamp<std::int64_t>(from.cols() - j, 0, columns);
    read_from(from, first, count, j, of_from, packed);
    read_from(beside, first, count, j + of_from - from.cols(), columns - of_from,
              packed + of_from * count);
  }

 private:
  void read_places(std::int64_t first, std::int64_t count, std::int64_t j, std::int64_t columns,
                   T* packed) const {
    for (std::int64_t k = 0; k < columns; ++k) {
      const T* column = column_to(j + k);
      if (column == nullptr) {
        std::fill_n(packed + k * count, count, T(0));
      } else {
        std::copy_n(column + first, count, packed + k * count);
      }
    }
  }
  static void read_from(const TallInput<T>& matrix, std::int64_t first, std::int64_t count,
                        std::int64_t j, std::int64_t columns, T* packed) {
    if (!matrix.by_rows) {
      for (std::int64_t k = 0; k < columns; ++k)
        std::copy_n(matrix.view.column(j + k) + first, count, packed + k * count);
      return;
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const T* row = matrix.view.column(first + r) + j;
      for (std::int64_t k = 0; k < columns; ++k) packed[r + k * count] = row[k];
    }
  }
};

template <class T>
class RowStore final : public BlockStore {
 public:
  RowStore(const BlockTable& blocks, TallColumns<T> matrix,
           std::vector<std::shared_ptr<FamilyMemory>> families, TallColumns<T> beside = {})
      : matrix_(std::move(matrix)),
        beside_(std::move(beside)),
        small_(blocks, std::move(families)) {
    const MatrixView<const T>& from = matrix_.from.view;
    if (!matrix_.from.by_rows && matrix_.places.empty())
      ahead_ = ReadAhead(from.data, from.rows, from.cols, from.ld, sizeof(T));
  }

  [[nodiscard]] const BlockTable& blocks() const override { return small_.blocks(); }
  [[nodiscard]] std::int64_t columns_min(BlockId) const override { return 1; }
  void read(BlockId id, std::byte* to) override {
    read_columns(id, 0, blocks().extent(id).cols, to);
  }
  void write(BlockId id, const std::byte* from) override {
    if (is_small(id)) return small_.write(id, from);
    write_columns(id, 0, blocks().extent(id).cols, from);
  }
  void read_columns(BlockId id, std::int64_t first, std::int64_t count, std::byte* to) override {
    if (is_small(id)) return small_.read_columns(id, first, count, to);
    read_part(id, {.row = 0, .col = first, .rows = blocks().extent(id).rows, .cols = count}, to);
  }
  void write_columns(BlockId id, std::int64_t first, std::int64_t count,
                     const std::byte* from) override {
    if (is_small(id)) return small_.write_columns(id, first, count, from);
    write_part(id, {.row = 0, .col = first, .rows = blocks().extent(id).rows, .cols = count}, from);
  }
  [[nodiscard]] bool divides_columns(BlockId id) const override { return !is_small(id); }
  void read_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                 std::byte* to) override {
    if (is_small(id)) return small_.read_rows(id, column, first, count, to);
    read_part(id, {.row = first, .col = column, .rows = count, .cols = 1}, to);
  }
  void write_rows(BlockId id, std::int64_t column, std::int64_t first, std::int64_t count,
                  const std::byte* from) override {
    if (is_small(id)) return small_.write_rows(id, column, first, count, from);
    write_part(id, {.row = first, .col = column, .rows = count, .cols = 1}, from);
  }
  [[nodiscard]] bool is_constant(BlockId id) const override {
    return !is_small(id) && matrix_of(id).to.data == nullptr &&
           matrix_of(id).to_beside.data == nullptr;
  }
  void commit(BlockId id) override {
    if (is_small(id)) small_.commit(id);
  }
  [[nodiscard]] const std::byte* lend(BlockId id) override {
    return is_small(id) ? small_.lend(id) : nullptr;
  }
  [[nodiscard]] std::byte* lend_for_writing(BlockId id) override {
    return is_small(id) ? small_.lend_for_writing(id) : nullptr;
  }

 private:
  /// `part` counts from the block's first row and column.
  void read_part(BlockId id, const BlockExtent& part, std::byte* to) {
    const std::int64_t row = blocks().extent(id).row;
    if (id.family() == rows::kMatrix) ahead_.reach(row);
    matrix_of(id).read(row + part.row, part.rows, column_of(id) + part.col, part.cols,
                       reinterpret_cast<T*>(to));
  }
  void write_part(BlockId id, const BlockExtent& part, const std::byte* from) {
    const TallColumns<T>& matrix = matrix_of(id);
    require(matrix.to.data != nullptr, ErrorKind::storage, "store",
            "block {} is of a matrix that is only read", blocks().name(id));
    const std::int64_t row = blocks().extent(id).row + part.row;
    const auto* packed = reinterpret_cast<const T*>(from);
    for (std::int64_t j = 0; j < part.cols; ++j) {
      T* column = matrix.column_to(column_of(id) + part.col + j);
      if (column != nullptr) std::copy_n(packed + j * part.rows, part.rows, column + row);
    }
  }
  [[nodiscard]] static bool is_small(BlockId id) {
    return id.family() != rows::kMatrix && id.family() != rows::kBeside;
  }
  [[nodiscard]] const TallColumns<T>& matrix_of(BlockId id) const {
    return id.family() == rows::kBeside ? beside_ : matrix_;
  }
  /// The first column of a block; one of kBeside has all of its rows, wherever its place is.
  [[nodiscard]] std::int64_t column_of(BlockId id) const {
    return id.family() == rows::kBeside ? 0 : blocks().extent(id).col;
  }

  TallColumns<T> matrix_;
  TallColumns<T> beside_;
  ReadAhead ahead_;  // of the matrix, which may be a mapped file
  MemoryStore small_;
};

}  // namespace strata
