// Matrices in files, read as their columns or rows are asked for.
//
// Method: what is asked for is read in aligned pieces, many at a time, into buffers of its own: a
// file seldom begins with a column at a multiple of 4096. The page at the end of the file, which a
// direct read would find too short, comes through the page cache.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "scalar/complex.hpp"
#include "store/aligned_buffers.hpp"
#include "store/file_io.hpp"
#include "store/files.hpp"
#include "strata/lu.hpp"

namespace strata {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;
constexpr std::int64_t kPiecesAtOnce = 16;

/// Any range of a file.
class RangeReader {
 public:
  explicit RangeReader(const std::string& path)
      : direct_(system_files().open_to_read(path, FileUse::direct)),
        buffered_(system_files().open_to_read(path, FileUse::buffered)),
        io_(make_file_io()) {}

  [[nodiscard]] std::int64_t bytes() const { return buffered_->bytes(); }

  void read(std::int64_t offset, std::int64_t bytes, std::byte* to) const {
    AlignedBuffer buffer = buffers_.take(kPieceBytes * kPiecesAtOnce);
    const std::int64_t whole_pages = this->bytes() / kPageBytes * kPageBytes;
    const std::int64_t end = offset + bytes;
    for (std::int64_t first = offset / kPageBytes * kPageBytes; first < end;
         first += kPieceBytes * kPiecesAtOnce) {
      std::vector<FileRequest> requests;
      for (std::int64_t k = 0; k < kPiecesAtOnce; ++k) {
        const std::int64_t begin = first + k * kPieceBytes;
        const std::int64_t stop = std::min({begin + kPieceBytes, in_pages(end), whole_pages});
        if (begin < stop)
          requests.push_back(
              {direct_.get(), begin, buffer.data() + k * kPieceBytes, stop - begin, false});
        // What is behind the last whole page.
        const std::int64_t rest = std::max(begin, whole_pages);
        const std::int64_t last = std::min(begin + kPieceBytes, end);
        if (rest < last)
          requests.push_back(
              {buffered_.get(), rest, buffer.data() + (rest - first), last - rest, false});
      }
      io_->carry_out(requests);
      const std::int64_t from = std::max(first, offset);
      const std::int64_t until = std::min(first + kPieceBytes * kPiecesAtOnce, end);
      std::memcpy(to + (from - offset), buffer.data() + (from - first),
                  static_cast<std::size_t>(until - from));
    }
    buffers_.give_back(std::move(buffer));
  }

 private:
  std::unique_ptr<File> direct_;
  std::unique_ptr<File> buffered_;
  std::unique_ptr<FileIo> io_;
  mutable AlignedBuffers buffers_;
};

template <class T>
bool finite(const T& x) {
  return std::isfinite(real_part(x)) && std::isfinite(imaginary_part(x));
}

template <class W>
MatrixSource<W> source_in(const MatrixInFile& matrix) {
  const bool narrow = matrix.element == element_of<NarrowOf<W>>;
  require(narrow || matrix.element == element_of<W>, ErrorKind::misuse, "factor",
          "{}: numbers in {} are not read as {} ones", matrix.path, to_string(matrix.element),
          is_complex_v<W> ? "complex" : "real");
  const auto reader = std::make_shared<const RangeReader>(matrix.path);
  const std::int64_t needed = matrix.offset + matrix.n * matrix.n * bytes_of(matrix.element);
  require(matrix.n >= 0 && matrix.offset >= 0 && reader->bytes() >= needed, ErrorKind::storage,
          "factor", "{}: a matrix of order {} in {} ends at byte {}, and the file at {}",
          matrix.path, matrix.n, to_string(matrix.element), needed, reader->bytes());
  const auto fill = [=](std::int64_t first, std::int64_t count, W* to) {
    const std::int64_t n = matrix.n;
    const std::int64_t size = bytes_of(matrix.element);
    const std::int64_t offset = matrix.offset + first * n * size;
    if (narrow) {
      std::vector<NarrowOf<W>> numbers(at(n * count));
      reader->read(offset, n * count * size, reinterpret_cast<std::byte*>(numbers.data()));
      std::copy(numbers.begin(), numbers.end(), to);
    } else {
      reader->read(offset, n * count * size, reinterpret_cast<std::byte*>(to));
    }
    const W* bad = std::find_if_not(to, to + n * count, finite<W>);
    if (bad == to + n * count) return;
    const std::int64_t along = first + (bad - to) / n;
    const std::int64_t across = (bad - to) % n;
    fail(ErrorKind::input, "factor", "{}: element ({}, {}) is not finite, counted from 0",
         matrix.path, matrix.by_rows ? along : across, matrix.by_rows ? across : along);
  };
  return {matrix.n, matrix.by_rows, fill};
}

}  // namespace

MatrixSource<double> source_of(const MatrixInFile& matrix) { return source_in<double>(matrix); }
MatrixSource<std::complex<double>> complex_source_of(const MatrixInFile& matrix) {
  return source_in<std::complex<double>>(matrix);
}

}  // namespace strata
