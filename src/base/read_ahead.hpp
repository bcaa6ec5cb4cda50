#pragma once
// ReadAhead: asks for parts of a mapped file before they are read.
//
// Contract: a column-major array, perhaps a mapped file, is read in blocks of rows, by any threads
// and in any order. reach() tells that rows from one on are about to be read. Rows behind them, a
// window at a time, are then asked for, each window once. What is in memory already is left alone.
//
// Why: the system reads ahead of one place in a file. A block of rows is read from as many places
// as there are columns, which it takes for random.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace strata {

class ReadAhead {
 public:
  using Ask = std::function<void(const std::byte* first, std::int64_t bytes)>;

  /// Nothing to read.
  ReadAhead() = default;
  /// rows × cols elements of so many bytes, `ld` elements from column to column. `ask` brings a
  /// range of memory and may be called by several threads at once.
  ReadAhead(const void* data, std::int64_t rows, std::int64_t cols, std::int64_t ld,
            std::int64_t element_bytes, Ask ask = ask_system);

  void reach(std::int64_t row);

  /// Asks the system for the pages of a range unless its last page is there.
  static void ask_system(const std::byte* first, std::int64_t bytes);

 private:
  const std::byte* data_ = nullptr;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t ld_bytes_ = 0;
  std::int64_t row_bytes_ = 0;
  std::int64_t window_ = 0;  ///< rows
  std::int64_t windows_ = 0;
  std::unique_ptr<std::atomic<bool>[]> asked_;
  Ask ask_;
};

}  // namespace strata
