#pragma once
// gzip, both ways, in memory.
//
// Contract: gunzip joins all members of a file, ignores zero padding after the last, and throws
// Error{input} on anything that is truncated, corrupt or not gzip. The size it unpacks to is
// bounded by memory only. Source of the format: RFC 1952, through zlib.

#include <memory>
#include <string>
#include <string_view>

namespace strata {

/// True if the bytes start as a gzip member does.
[[nodiscard]] bool is_gzip(std::string_view bytes) noexcept;

/// Throws Error{input} that names `name`, Error{memory} if the content does not fit in memory.
[[nodiscard]] std::string gunzip(std::string_view bytes, const std::string& name);

/// Compresses a stream into one gzip member.
class GzipEncoder {
 public:
  /// Throws Error{memory}.
  GzipEncoder();
  GzipEncoder(const GzipEncoder&) = delete;  // owns a zlib stream
  GzipEncoder& operator=(const GzipEncoder&) = delete;
  ~GzipEncoder();

  /// The compressed bytes that are ready after `bytes` (at the end: all that are left).
  [[nodiscard]] std::string encode(std::string_view bytes, bool last);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace strata
