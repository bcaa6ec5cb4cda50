// Method: native elements are used where they lie, in the mapped file or in the unpacked bytes.
// Bytes in the other order, or elements that are not aligned (a hand-made header), are copied once
// into memory of our own; so are integers, as fp64. A row-major array becomes column-major by
// blocks that fit in cache.

#include "io/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "io/memory.hpp"
#include "matrix/array_columns.hpp"
#include "matrix/sparse_passes.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"

namespace strata {

struct NpyFile::State {
  explicit State(FileBytes bytes) : file(std::move(bytes)) {}

  FileBytes file;
  NpyHeader header;
  std::unique_ptr<std::byte[]> converted;  // null if the elements are used where they lie
  const void* elements = nullptr;
};

namespace {

constexpr std::int64_t kTransposeBlock = 64;

// Calls f with the elements of `file` as const T*, T being their type.
template <class F>
decltype(auto) with_elements(const NpyFile& file, F&& f) {
  return dispatch_blas(file.precision(), [&]<class T>(std::type_identity<T>) -> decltype(auto) {
    return f(static_cast<const T*>(file.elements()));
  });
}

// out(i, j) = in[i · cols + j]
template <class T, class Out>
void transpose_into(const T* in, MatrixView<Out> out) {
  for (std::int64_t i0 = 0; i0 < out.rows; i0 += kTransposeBlock) {
    const std::int64_t i1 = std::min(i0 + kTransposeBlock, out.rows);
    for (std::int64_t j0 = 0; j0 < out.cols; j0 += kTransposeBlock) {
      const std::int64_t j1 = std::min(j0 + kTransposeBlock, out.cols);
      for (std::int64_t j = j0; j < j1; ++j) {
        for (std::int64_t i = i0; i < i1; ++i) out(i, j) = static_cast<Out>(in[i * out.cols + j]);
      }
    }
  }
}

// Copies elements of `size` bytes each into native byte order.
std::unique_ptr<std::byte[]> copy_native(const char* data, std::int64_t bytes, std::int64_t size,
                                         bool swap) {
  auto copy = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
  if (bytes > 0) std::memcpy(copy.get(), data, static_cast<std::size_t>(bytes));
  if (swap) {
    for (std::int64_t at = 0; at < bytes; at += size) {
      std::reverse(copy.get() + at, copy.get() + at + size);
    }
  }
  return copy;
}

/// Where element `k` of those in the file stands, for messages.
std::pair<std::int64_t, std::int64_t> place_of(const NpyHeader& header, std::int64_t k) {
  if (header.fortran_order) {
    const std::int64_t lead = std::max<std::int64_t>(1, header.rows);
    return {k % lead, k / lead};
  }
  const std::int64_t lead = std::max<std::int64_t>(1, header.cols);
  return {k / lead, k % lead};
}

/// Integers as fp64, each of which it holds exactly.
template <class T>
void widen_integers(const char* data, const NpyHeader& header, bool swap, const std::string& name,
                    double* out) {
  const std::int64_t count = header.data_bytes / std::int64_t{sizeof(T)};
  for (std::int64_t k = 0; k < count; ++k) {
    std::array<char, sizeof(T)> bytes;
    std::memcpy(bytes.data(), data + k * std::int64_t{sizeof(T)}, sizeof(T));
    if (swap) std::reverse(bytes.begin(), bytes.end());
    const T value = std::bit_cast<T>(bytes);
    const auto wide = static_cast<double>(value);
    if constexpr (sizeof(T) == 8) {
      // 2^63 and 2^64, which a double may have been rounded to, are beyond T.
      constexpr double kEnd = std::is_signed_v<T> ? 0x1p63 : 0x1p64;
      if (wide >= kEnd || static_cast<T>(wide) != value) {
        const auto [i, j] = place_of(header, k);
        fail(ErrorKind::input, "npy",
             "{}: element ({}, {}), counted from 0, is {}, which fp64 cannot hold exactly", name, i,
             j, value);
      }
    }
    out[k] = wide;
  }
}

/// The same of the integers that a header tells of; truth values are 0 and 1.
std::unique_ptr<std::byte[]> widened(const char* data, const NpyHeader& header, bool swap,
                                     const std::string& name) {
  const std::int64_t count = header.data_bytes / header.element_bytes;
  auto copy = std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * sizeof(double));
  auto* out = reinterpret_cast<double*>(copy.get());
  const auto widen = [&]<class T>(T) { widen_integers<T>(data, header, swap, name, out); };
  const bool is_signed = header.kind == 'i';
  switch (header.element_bytes) {
    case 1: is_signed ? widen(std::int8_t{}) : widen(std::uint8_t{}); break;
    case 2: is_signed ? widen(std::int16_t{}) : widen(std::uint16_t{}); break;
    case 4: is_signed ? widen(std::int32_t{}) : widen(std::uint32_t{}); break;
    default: is_signed ? widen(std::int64_t{}) : widen(std::uint64_t{}); break;
  }
  return copy;
}

}  // namespace

NpyFile parse_npy(FileBytes file) {
  auto state = std::make_unique<NpyFile::State>(std::move(file));
  const std::string& name = state->file.name();
  state->header = parse_npy_header(state->file.bytes(), name);
  const NpyHeader& header = state->header;
  const char* data = state->file.bytes().data() + header.data_offset;
  const bool as_it_is = header.kind == 'f' || header.kind == 'c';
  // Complex numbers are turned round part by part.
  const std::int64_t size = header.kind == 'c' ? header.element_bytes / 2 : header.element_bytes;
  const bool swap = header.big_endian != (std::endian::native == std::endian::big);
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % static_cast<std::size_t>(size) == 0;
  if (swap || !aligned || !as_it_is) {
    try {
      state->converted = as_it_is ? copy_native(data, header.data_bytes, size, swap)
                                  : widened(data, header, swap, name);
    } catch (const std::bad_alloc&) {
      fail(ErrorKind::memory, "npy", "{}: no memory for a copy of {} bytes", name,
           header.data_bytes);
    }
  }
  state->elements = state->converted ? static_cast<const void*>(state->converted.get()) : data;
  return NpyFile(std::move(state));
}

NpyFile::NpyFile(const std::string& path) : NpyFile(parse_npy(FileBytes::map(path))) {}
NpyFile::NpyFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
NpyFile::NpyFile(NpyFile&&) noexcept = default;
NpyFile& NpyFile::operator=(NpyFile&&) noexcept = default;
NpyFile::~NpyFile() = default;

int NpyFile::dimensions() const noexcept { return state_->header.dimensions; }
std::int64_t NpyFile::rows() const noexcept { return state_->header.rows; }
std::int64_t NpyFile::cols() const noexcept { return state_->header.cols; }
Element NpyFile::precision() const noexcept { return state_->header.precision; }
bool NpyFile::fortran_order() const noexcept { return state_->header.fortran_order; }
bool NpyFile::row_major() const noexcept { return !fortran_order() && rows() > 1 && cols() > 1; }
bool NpyFile::mapped() const noexcept { return state_->file.mapped() && !state_->converted; }
const void* NpyFile::elements() const noexcept { return state_->elements; }
const std::string& NpyFile::name() const noexcept { return state_->file.name(); }

template <class T>
MatrixView<const T> NpyFile::view() const {
  require(precision() == element_of<T>, ErrorKind::misuse, "npy", "{}: asked for {}, it holds {}",
          name(), to_string(element_of<T>), to_string(precision()));
  require(!row_major(), ErrorKind::misuse, "npy", "{}: asked for columns, it is row-major", name());
  return {static_cast<const T*>(elements()), rows(), cols(), std::max<std::int64_t>(1, rows())};
}

template <class T>
MatrixView<const T> NpyFile::transposed_view() const {
  require(precision() == element_of<T>, ErrorKind::misuse, "npy", "{}: asked for {}, it holds {}",
          name(), to_string(element_of<T>), to_string(precision()));
  require(row_major(), ErrorKind::misuse, "npy", "{}: asked for rows, it is column-major", name());
  return {static_cast<const T*>(elements()), cols(), rows(), cols()};
}

template MatrixView<const double> NpyFile::view<double>() const;
template MatrixView<const float> NpyFile::view<float>() const;
template MatrixView<const std::complex<double>> NpyFile::view<std::complex<double>>() const;
template MatrixView<const std::complex<float>> NpyFile::view<std::complex<float>>() const;
template MatrixView<const double> NpyFile::transposed_view<double>() const;
template MatrixView<const float> NpyFile::transposed_view<float>() const;
template MatrixView<const std::complex<double>> NpyFile::transposed_view<std::complex<double>>()
    const;
template MatrixView<const std::complex<float>> NpyFile::transposed_view<std::complex<float>>()
    const;

void NpyFile::require_finite() const {
  const std::int64_t count = rows() * cols();
  constexpr std::int64_t kFew = std::int64_t{1} << 20;  // no work for several threads
  WorkCrew crew(
      count < kFew ? 0 : static_cast<int>(std::max(1U, std::thread::hardware_concurrency())) - 1);
  // Blocks in their order, so that a file that is not in memory is read as one is.
  const std::int64_t bad = with_elements(*this, [&](const auto* x) {
    return reduce_blocks(
        crew, count, count,
        [&](std::int64_t begin, std::int64_t end) {
          const auto* found =
              std::find_if(x + begin, x + end, [](auto v) { return !is_finite(v); });
          return found == x + end ? count : found - x;
        },
        [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  });
  if (bad == count) return;
  const auto [i, j] = place_of(state_->header, bad);
  const std::string value = with_elements(*this, [bad](const auto* x) {
    std::string text = fmt::format("{}", real_part(x[bad]));
    if (is_complex_v<std::decay_t<decltype(*x)>>)
      text += fmt::format("{:+}i", imaginary_part(x[bad]));
    return text;
  });
  fail(ErrorKind::input, "npy", "{}: element ({}, {}), counted from 0, is {}", name(), i, j, value);
}

namespace {

/// A copy of the file's elements of type From in Out, column by column.
template <class From, class Out>
DenseMatrix<Out> dense_copy(const NpyFile& file, const From* x) try {
  DenseMatrix<Out> dense;
  dense.rows = file.rows();
  dense.cols = file.cols();
  dense.dimensions = file.dimensions();
  const std::int64_t count =
      checked_elements(file.rows(), file.cols(), sizeof(Out), "npy", file.name());
  if (file.row_major()) {
    dense.values.resize(static_cast<std::size_t>(count));
    transpose_into(x, dense.view());
  } else {
    dense.values.assign(x, x + count);
  }
  return dense;
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "npy", "{}: no memory for {} × {} elements", file.name(), file.rows(),
       file.cols());
}

}  // namespace

DenseMatrix<double> NpyFile::to_dense() const {
  require(!is_complex(precision()), ErrorKind::input, "npy",
          "{}: holds complex numbers ({}), and real ones are needed here", name(),
          to_string(precision()));
  return dispatch_native(precision(), [&]<class T>(std::type_identity<T>) {
    return dense_copy<T, double>(*this, static_cast<const T*>(elements()));
  });
}

DenseMatrix<std::complex<double>> NpyFile::to_dense_complex() const {
  return with_elements(
      *this, [&]<class T>(const T* x) { return dense_copy<T, std::complex<double>>(*this, x); });
}

DenseMatrix<double> read_npy(const std::string& path) {
  const NpyFile file(path);
  file.require_finite();
  return file.to_dense();
}

namespace {

std::string shape_of(std::int64_t n) { return fmt::format("({},)", n); }
std::string shape_of(std::int64_t rows, std::int64_t cols) {
  return fmt::format("({}, {})", rows, cols);
}

/// All bytes before the elements, which begin at a multiple of 64, so that a mapped file is
/// aligned.
std::string header_of(Element element, const std::string& shape, std::size_t least = 0) {
  constexpr std::size_t kPrefix = 10;
  const char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string text = fmt::format("{{'descr': '{}{}{}', 'fortran_order': True, 'shape': {}, }}",
                                 order, is_complex(element) ? 'c' : 'f', bytes_of(element), shape);
  const std::size_t bytes = std::max((kPrefix + text.size() + 1 + 63) / 64 * 64, least);
  text.resize(bytes - kPrefix - 1, ' ');
  text += '\n';
  const std::array<char, 2> length{static_cast<char>(text.size() & 0xff),
                                   static_cast<char>(text.size() >> 8)};
  std::string header("\x93NUMPY\x01\x00", 8);
  header.append(length.data(), length.size());
  return header + text;
}

template <class T>
void write_array(const std::string& path, const std::string& shape, MatrixView<const T> data) {
  OutputFile file = open_output(path);
  file.write(header_of(element_of<T>, shape));
  const std::size_t column_bytes = static_cast<std::size_t>(data.rows) * sizeof(T);
  for (std::int64_t j = 0; j < data.cols && column_bytes > 0; ++j) {
    file.write({reinterpret_cast<const char*>(data.column(j)), column_bytes});
  }
  file.commit();
}

template <class T>
void write_vector(const std::string& path, std::span<const T> vector) {
  const auto n = static_cast<std::int64_t>(vector.size());
  write_array(path, shape_of(n), MatrixView<const T>{vector.data(), n, 1, n > 0 ? n : 1});
}

}  // namespace

void write_npy(const std::string& path, ConstArrayRef matrix) {
  with_columns(matrix, "npy", [&](auto columns) {
    write_array(path, shape_of(columns.rows, columns.cols), columns);
  });
}
void write_npy(const std::string& path, std::span<const double> vector) {
  write_vector(path, vector);
}
void write_npy(const std::string& path, std::span<const float> vector) {
  write_vector(path, vector);
}
void write_npy(const std::string& path, std::span<const std::complex<double>> vector) {
  write_vector(path, vector);
}
void write_npy(const std::string& path, std::span<const std::complex<float>> vector) {
  write_vector(path, vector);
}

// ---- in place

struct NpyOutput::State {
  State(const std::string& path, Element element, std::int64_t m, std::int64_t n)
      : file(path),
        precision(element),
        rows(m),
        cols(n),
        header_bytes(header_of(precision, shape_of(rows, cols)).size()),
        data(file.map(bytes_with(cols))) {}

  [[nodiscard]] std::size_t bytes_with(std::int64_t columns) const {
    return header_bytes + static_cast<std::size_t>(rows * columns * bytes_of(precision));
  }

  OutputFile file;
  Element precision;
  std::int64_t rows;
  std::int64_t cols;
  std::size_t header_bytes;  ///< the same whatever columns are kept
  std::byte* data;
};

NpyOutput::NpyOutput(const std::string& path, Element precision, std::int64_t rows,
                     std::int64_t cols) {
  require(precision == Element::fp64 || precision == Element::fp32, ErrorKind::misuse, "npy",
          "{}: elements are fp64 or fp32", path);
  require(!path.ends_with(".gz"), ErrorKind::misuse, "npy",
          "{}: a compressed file cannot be filled where it lies", path);
  require(rows >= 0 && cols >= 0, ErrorKind::misuse, "npy", "{}: an array cannot be {} by {}", path,
          rows, cols);
  require(static_cast<double>(rows) * static_cast<double>(cols) < 0x1p59, ErrorKind::misuse, "npy",
          "{}: {} by {} elements are past what a file can hold", path, rows, cols);
  state_ = std::make_unique<State>(path, precision, rows, cols);
}
NpyOutput::NpyOutput(NpyOutput&&) noexcept = default;
NpyOutput& NpyOutput::operator=(NpyOutput&&) noexcept = default;
NpyOutput::~NpyOutput() = default;

template <class T>
MatrixView<T> NpyOutput::view() const {
  require(element_of<T> == state_->precision, ErrorKind::misuse, "npy",
          "an array of {} is not one of {}", to_string(state_->precision),
          to_string(element_of<T>));
  return {reinterpret_cast<T*>(state_->data + state_->header_bytes), state_->rows, state_->cols,
          std::max<std::int64_t>(state_->rows, 1)};
}
template MatrixView<double> NpyOutput::view<double>() const;
template MatrixView<float> NpyOutput::view<float>() const;

void NpyOutput::close(std::int64_t cols) {
  require(cols >= 0 && cols <= state_->cols, ErrorKind::misuse, "npy",
          "{} columns of an array that has {}", cols, state_->cols);
  const std::string header =
      header_of(state_->precision, shape_of(state_->rows, cols), state_->header_bytes);
  std::memcpy(state_->data, header.data(), header.size());
  state_->file.commit_mapped(state_->bytes_with(cols));
}

}  // namespace strata
