// Method: zlib's inflate and deflate with the gzip wrapper (window bits 15 + 16), so the checksum
// and length that end every member are verified by zlib. Members follow each other without any
// mark, so after each one the next two bytes decide whether another begins.

#include "io/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr std::size_t kChunkBytes = 1 << 16;

// zlib counts in 32 bits: hand it at most this much at a time.
constexpr std::size_t kInputBytesMax = std::numeric_limits<uInt>::max() / 2;

// zlib's interface predates const; it never writes through next_in.
Bytef* input_of(std::string_view bytes) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

// Releases the inflate state on every way out.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }

  z_stream stream{};
};

// Unpacks one member from the front of `bytes`, appends it to `out` and returns what follows it.
std::string_view unpack_member(z_stream& stream, std::string_view bytes, std::string& out,
                               const std::string& name) {
  inflateReset(&stream);
  std::size_t filled = out.size();
  for (;;) {
    if (out.size() - filled < kChunkBytes) out.resize(std::max(2 * out.size(), 4 * kChunkBytes));
    stream.next_in = input_of(bytes);
    stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kInputBytesMax));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - filled, kInputBytesMax));
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    const std::size_t consumed = in_before - stream.avail_in;
    const std::size_t produced = out_before - stream.avail_out;
    bytes.remove_prefix(consumed);
    filled += produced;
    if (status == Z_STREAM_END) break;
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    require(status == Z_OK || status == Z_BUF_ERROR, ErrorKind::input, "gzip",
            "{}: the gzip data are corrupt ({})", name,
            stream.msg != nullptr ? stream.msg : "bad stream");
    require(consumed + produced > 0, ErrorKind::input, "gzip", "{}: the gzip data are truncated",
            name);
  }
  out.resize(filled);
  return bytes;
}

}  // namespace

bool is_gzip(std::string_view bytes) noexcept {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gunzip(std::string_view bytes, const std::string& name) try {
  Inflater inflater;
  std::string out;
  do {
    bytes = unpack_member(inflater.stream, bytes, out, name);
  } while (is_gzip(bytes));
  require(bytes.find_first_not_of('\0') == std::string_view::npos, ErrorKind::input, "gzip",
          "{}: {} bytes that are not gzip follow the compressed data", name, bytes.size());
  return out;
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "gzip", "{}: the unpacked data do not fit in memory", name);
} catch (const std::length_error&) {
  fail(ErrorKind::memory, "gzip", "{}: the unpacked data do not fit in memory", name);
}

struct GzipEncoder::Stream {
  z_stream z{};
};

GzipEncoder::GzipEncoder() : stream_(std::make_unique<Stream>()) {
  const int status = deflateInit2(&stream_->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                                  Z_DEFAULT_STRATEGY);
  require(status == Z_OK, ErrorKind::memory, "gzip", "no memory to compress with");
}

GzipEncoder::~GzipEncoder() { deflateEnd(&stream_->z); }

std::string GzipEncoder::encode(std::string_view bytes, bool last) {
  z_stream& z = stream_->z;
  std::string out;
  std::string chunk(kChunkBytes, '\0');
  do {
    const std::size_t now = std::min(bytes.size(), kInputBytesMax);
    z.next_in = input_of(bytes);
    z.avail_in = static_cast<uInt>(now);
    bytes.remove_prefix(now);
    do {
      z.next_out = reinterpret_cast<Bytef*>(chunk.data());
      z.avail_out = static_cast<uInt>(chunk.size());
      deflate(&z, last && bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
      out.append(chunk, 0, chunk.size() - z.avail_out);
    } while (z.avail_out == 0);
  } while (!bytes.empty());
  return out;
}

}  // namespace strata
