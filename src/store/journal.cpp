// Journal: see journal.hpp.
//
// Method: a record begins at a multiple of 8 bytes with a fixed header. A record that does not
// check is the torn last one unless a whole one with a later number follows anywhere: then the
// file was damaged.

#include "store/journal.hpp"

#include <array>
#include <cstring>
#include <optional>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::uint32_t kMark = 0x4a545253;  // "SRTJ"
constexpr std::int64_t kAlignment = 8;
constexpr std::int64_t kRecordMax = std::int64_t{1} << 30;

struct Header {
  std::uint32_t mark = kMark;
  std::uint32_t bytes = 0;
  std::uint64_t number = 0;
  std::uint64_t hash_before = 0;
};
static_assert(sizeof(Header) == 24);

std::int64_t padded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
std::int64_t length_of(std::int64_t bytes) {
  return std::int64_t{sizeof(Header)} + padded(bytes) + std::int64_t{sizeof(std::uint64_t)};
}

struct Found {
  Header header;
  std::string_view record;
  std::uint64_t hash = 0;
};

/// A whole record at a place of a file, whatever its number.
std::optional<Found> record_at(std::string_view all, std::int64_t at) {
  const auto size = std::ssize(all);
  Found found;
  if (at + std::int64_t{sizeof(Header)} > size) return std::nullopt;
  std::memcpy(&found.header, all.data() + at, sizeof(Header));
  const std::int64_t bytes = found.header.bytes;
  if (found.header.mark != kMark || bytes > kRecordMax || at + length_of(bytes) > size)
    return std::nullopt;
  const auto hashed = static_cast<std::size_t>(std::int64_t{sizeof(Header)} + padded(bytes));
  std::memcpy(&found.hash, all.data() + at + hashed, sizeof found.hash);
  if (XXH3_64bits(all.data() + at, hashed) != found.hash) return std::nullopt;
  found.record =
      all.substr(static_cast<std::size_t>(at) + sizeof(Header), static_cast<std::size_t>(bytes));
  return found;
}

}  // namespace

Journal Journal::create(FileSystem& files, const std::string& path) {
  return Journal(files.create(path, FileUse::buffered));
}

Journal Journal::open(FileSystem& files, const std::string& path) {
  Journal journal(files.open(path, FileUse::buffered));
  journal.read_records();
  return journal;
}

Journal Journal::open_to_read(FileSystem& files, const std::string& path) {
  Journal journal(files.open_to_read(path, FileUse::buffered));
  journal.read_records();
  return journal;
}

void Journal::read_records() {
  std::string all(static_cast<std::size_t>(file_->bytes()), '\0');
  file_->read(0, reinterpret_cast<std::byte*>(all.data()), std::ssize(all));
  for (;;) {
    const std::optional<Found> found = record_at(all, end_);
    if (!found || found->header.number != number_ || found->header.hash_before != last_hash_) break;
    records_.emplace_back(found->record);
    end_ += length_of(found->header.bytes);
    last_hash_ = found->hash;
    ++number_;
  }
  for (std::int64_t at = end_; at < std::ssize(all); at += kAlignment) {
    const std::optional<Found> later = record_at(all, at);
    require(!later || later->header.number < number_, ErrorKind::storage, "storage",
            "{}: the journal is damaged at byte {}: record {} does not check, though others follow",
            file_->path(), end_, number_);
  }
}

void Journal::append(std::string_view record) {
  require(!failed_, ErrorKind::storage, "storage",
          "{}: nothing can be added to the journal after a failure", file_->path());
  require(std::ssize(record) <= kRecordMax, ErrorKind::misuse, "storage",
          "a record of {} bytes is too long", record.size());
  std::string whole(static_cast<std::size_t>(length_of(std::ssize(record))), '\0');
  const Header header{kMark, static_cast<std::uint32_t>(record.size()), number_, last_hash_};
  std::memcpy(whole.data(), &header, sizeof header);
  std::memcpy(whole.data() + sizeof header, record.data(), record.size());
  const std::size_t hashed = whole.size() - sizeof(std::uint64_t);
  const std::uint64_t hash = XXH3_64bits(whole.data(), hashed);
  std::memcpy(whole.data() + hashed, &hash, sizeof hash);
  failed_ = true;  // until it is durable
  file_->write(end_, reinterpret_cast<const std::byte*>(whole.data()), std::ssize(whole));
  file_->sync();
  failed_ = false;
  end_ += std::ssize(whole);
  last_hash_ = hash;
  ++number_;
}

}  // namespace strata
