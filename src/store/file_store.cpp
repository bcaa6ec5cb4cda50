// FileStore: see file_store.hpp.
//
// Method: a block is read and written by requests for all of its segments at once. Where files are
// direct and the caller's memory or the end of the block is not aligned, a segment goes through an
// aligned buffer. A value that is the last is made durable in order: its segments, the files that
// hold them, then a record with its hashes; so whatever the journal knows is there.

#include "store/file_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"

namespace strata {
namespace {

constexpr int kFormat = 3;
constexpr const char* kAbout = "about ";
constexpr const char* kMatrix = "matrix ";
constexpr const char* kDirectory = "directory ";

/// How many of these bytes a file takes from, or puts to, where they are: whole pages, or all, or
/// none where memory is not aligned.
std::int64_t bytes_in_place(const File& file, const std::byte* data, std::int64_t bytes) {
  const std::int64_t alignment = file.alignment();
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(alignment) != 0)
    return 0;
  return bytes / alignment * alignment;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/', path.find_last_not_of('/'));
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A file that is whole or absent, whatever happens.
void write_whole(FileSystem& files, const std::string& path, const std::string& content) {
  const std::string temporary = path + ".new";
  {
    const auto file = files.create(temporary, FileUse::buffered);
    file->write(0, reinterpret_cast<const std::byte*>(content.data()), std::ssize(content));
    file->sync();
  }
  files.rename(temporary, path);
}

std::string read_whole(FileSystem& files, const std::string& path) {
  const auto file = files.open_to_read(path, FileUse::buffered);
  std::string content(static_cast<std::size_t>(file->bytes()), '\0');
  file->read(0, reinterpret_cast<std::byte*>(content.data()), std::ssize(content));
  return content;
}

/// The rest of the line of a header that begins with a word.
std::string behind(const std::string& word, const std::string& text) {
  const std::size_t line = text.find('\n' + word);
  if (line == std::string::npos) return {};
  const std::size_t begin = line + 1 + word.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// What tells a directory whose header is `found` from the one of which it should be `wanted`.
std::string difference(const std::string& found, const std::string& wanted) {
  const std::string version = wanted.substr(0, wanted.find('\n'));
  if (found.substr(0, found.find('\n')) != version)
    return fmt::format("the directory has another version of the format than '{}'", version);
  const auto differs = [&](const char* word) {
    return behind(word, found) != behind(word, wanted);
  };
  if (differs(kAbout))
    return fmt::format("the directory is of another factorization than this, {}",
                       behind(kAbout, wanted));
  if (differs(kMatrix))
    return fmt::format(
        "the directory is of another matrix: the hash of its numbers is {}, and {} of those given",
        behind(kMatrix, found), behind(kMatrix, wanted));
  if (differs(kDirectory))
    return fmt::format("it was directory {} of its factor, and is named as {}",
                       behind(kDirectory, found), behind(kDirectory, wanted));
  return "the directory is of the same factorization, with blocks of other sizes";
}

}  // namespace

FileStore::FileStore(Unopened, BlockTable blocks, StorageOptions options)
    : blocks_(std::move(blocks)),
      options_(std::move(options)),
      files_(options_.files != nullptr ? *options_.files : system_files()),
      sources_(static_cast<std::size_t>(blocks_.families())),
      states_(static_cast<std::size_t>(blocks_.count())),
      kept_(static_cast<std::size_t>(blocks_.count())) {
  require(!options_.directories.empty(), ErrorKind::misuse, "storage",
          "storage needs a directory at least");
  require(options_.segment_bytes >= kPageBytes && options_.segment_bytes % kPageBytes == 0,
          ErrorKind::misuse, "storage", "segments of {} bytes are not a multiple of {}",
          options_.segment_bytes, kPageBytes);
  const std::set<std::string> distinct(options_.directories.begin(), options_.directories.end());
  require(distinct.size() == options_.directories.size(), ErrorKind::misuse, "storage",
          "a directory is named twice");
  if (!options_.io) options_.io = make_file_io();
  for (int f = 0; f < blocks_.families(); ++f) {
    const std::int64_t capacity = blocks_.capacity_bytes(f);
    Family family;
    family.in_journal = capacity <= options_.journal_bytes;
    // Blocks of many sizes leave half a segment each: small ones then.
    constexpr std::int64_t kSegmentsOfListed = 16;
    const std::int64_t whole =
        blocks_.family(f).listed.empty() ? capacity : capacity / kSegmentsOfListed;
    family.segment_bytes =
        std::min(options_.segment_bytes, in_pages(std::max<std::int64_t>(whole, 1)));
    families_.push_back(family);
    std::int64_t& segments = families_.back().segments;
    blocks_.for_each(f, [&](BlockId id) {
      first_segments_.push_back(segments);
      segments += segments_of(id);
    });
    // Those alone have files of their own.
    const bool in_files = blocks_.family(f).in_storage && !family.in_journal;
    hashes_.emplace_back(in_files ? static_cast<std::size_t>(segments) : 0, 0);
  }
  for (const std::string& path : options_.directories) {
    directories_.emplace_back();
    directories_.back().path = path;
  }
}

std::string FileStore::file_of(std::size_t directory, int family) const {
  return fmt::format("{}/{}.blocks", directories_[directory].path, family);
}

/// Bytes of a family in each directory, the fullest.
std::int64_t FileStore::file_bytes(int f) const {
  const Family& family = families_[static_cast<std::size_t>(f)];
  const auto directories = static_cast<std::int64_t>(directories_.size());
  return (family.segments + directories - 1) / directories * family.segment_bytes;
}

/// What tells that a directory is of these blocks, as text: equal, or refused.
std::string FileStore::header_of(std::size_t directory) const {
  std::string text = fmt::format("strata storage {}\n{}{}\n{}{:016x}\n{}{} of {}\n", kFormat,
                                 kAbout, options_.about, kMatrix, options_.matrix, kDirectory,
                                 directory + 1, directories_.size());
  for (int f = 0; f < blocks_.families(); ++f) {
    const BlockFamily& family = blocks_.family(f);
    if (!family.in_storage) continue;
    const Family& layout = families_[static_cast<std::size_t>(f)];
    text += fmt::format("family {} {} {} by {} in tiles of {} by {} {} {} {} blocks {}\n", f,
                        family.name, family.rows, family.cols, family.tile_rows, family.tile_cols,
                        family.shape == Shape::lower ? "lower" : "rectangle",
                        to_string(family.element), blocks_.count(f),
                        layout.in_journal
                            ? "in the journal"
                            : fmt::format("in segments of {} bytes", layout.segment_bytes));
  }
  return text;
}

bool FileStore::is_at(const std::string& directory, FileSystem& files) {
  return files.exists(directory + "/storage");
}

std::string FileStore::about(const std::string& directory, FileSystem& files) {
  return behind(kAbout, read_whole(files, directory + "/storage"));
}

std::uint64_t FileStore::matrix(const std::string& directory, FileSystem& files) {
  const std::string text = behind(kMatrix, read_whole(files, directory + "/storage"));
  std::uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

std::int64_t FileStore::number_behind(const std::string& word, const std::string& about) {
  const std::size_t found = about.find(word);
  std::int64_t number = 0;
  if (found != std::string::npos)
    (void)std::from_chars(about.data() + found + word.size(), about.data() + about.size(), number);
  return number;
}

void FileStore::lock_directories() {
  for (Directory& directory : directories_) {
    const std::string path = directory.path + "/lock";
    directory.lock = options_.to_read ? files_.lock_to_read(path) : files_.lock(path);
  }
}

std::unique_ptr<FileStore> FileStore::create(BlockTable blocks, StorageOptions options) {
  auto store = std::make_unique<FileStore>(Unopened(), std::move(blocks), std::move(options));
  FileSystem& files = store->files_;
  std::int64_t each = 0;
  for (int f = 0; f < store->blocks_.families() && store->options_.reserves; ++f)
    if (store->in_files(f)) each += store->file_bytes(f);
  for (std::size_t d = 0; d < store->directories_.size(); ++d) {
    const Directory& directory = store->directories_[d];
    // What makes the first one storage comes last: the others may be left of a creation that did
    // not end.
    const bool temporary = store->options_.temporary;
    const bool left_over = d > 0 && is_at(directory.path, files) &&
                           read_whole(files, directory.path + "/storage") == store->header_of(d);
    require(temporary || left_over || !is_at(directory.path, files), ErrorKind::storage, "storage",
            "{}: the directory holds blocks already; what is to go on with them resumes (--resume)",
            directory.path);
    const std::string there =
        files.exists(directory.path) ? directory.path : parent_of(directory.path);
    const std::int64_t left = files.free_bytes(there);
    require(each <= left, ErrorKind::storage, "storage",
            "{}: {} are needed there, {} are free: {} bytes", directory.path, format_bytes(each),
            format_bytes(left), each);
  }
  for (const Directory& directory : store->directories_) {
    files.make_directory(directory.path);
    if (!store->options_.temporary) files.sync_directory(parent_of(directory.path));
  }
  if (store->options_.temporary) {
    store->make_temporary_files();
    return store;
  }
  store->lock_directories();
  store->remove_files();  // of a creation that did not end
  try {
    store->make_files();
  } catch (...) {
    store->remove_files();
    throw;
  }
  return store;
}

void FileStore::make_temporary_files() {
  static std::atomic<int> count = 0;
  const int number = count++;
  for (std::size_t d = 0; d < directories_.size(); ++d) {
    for (int f = 0; f < blocks_.families(); ++f) {
      std::unique_ptr<File>& file = directories_[d].files.emplace_back();
      if (!in_files(f)) continue;
      const std::string name =
          fmt::format("{}/temporary.{}.{}.{}", directories_[d].path, ::getpid(), number, f);
      file = files_.create(name, FileUse::direct);
      files_.remove(name);
      if (options_.reserves) file->reserve(file_bytes(f));
    }
  }
}

void FileStore::make_files() {
  for (std::size_t d = 0; d < directories_.size(); ++d) {
    Directory& directory = directories_[d];
    for (int f = 0; f < blocks_.families(); ++f) {
      std::unique_ptr<File>& file = directory.files.emplace_back();
      if (!in_files(f)) continue;
      file = files_.create(file_of(d, f), FileUse::direct);
      file->reserve(file_bytes(f));
      file->sync();
    }
  }
  journal_ = std::make_unique<Journal>(Journal::create(files_, directories_[0].path + "/journal"));
  for (const Directory& directory : directories_) files_.sync_directory(directory.path);
  // What makes it storage comes when all else is durable, in the first directory last.
  for (std::size_t d = directories_.size(); d-- > 0;) {
    const std::string& path = directories_[d].path;
    write_whole(files_, path + "/storage", header_of(d));
    files_.sync_directory(path);
  }
}

void FileStore::remove_files() noexcept {
  const auto remove = [&](const std::string& path) {
    try {
      files_.remove(path);
    } catch (const Error&) {  // what stays is removed, or refused, by whoever comes next
    }
  };
  for (std::size_t d = 0; d < directories_.size(); ++d) {
    remove(directories_[d].path + "/storage");
    remove(directories_[d].path + "/storage.new");
    directories_[d].files.clear();
    for (int f = 0; f < blocks_.families(); ++f) remove(file_of(d, f));
    remove(directories_[d].path + "/journal");
  }
}

std::unique_ptr<FileStore> FileStore::open(BlockTable blocks, StorageOptions options) {
  auto store = std::make_unique<FileStore>(Unopened(), std::move(blocks), std::move(options));
  FileSystem& files = store->files_;
  for (std::size_t d = 0; d < store->directories_.size(); ++d) {
    const std::string& path = store->directories_[d].path;
    require(is_at(path, files), ErrorKind::storage, "storage", "{}: there are no blocks in it",
            path);
    const std::string found = read_whole(files, path + "/storage");
    const std::string wanted = store->header_of(d);
    require(found == wanted, ErrorKind::storage, "storage", "{}/storage: {}", path,
            difference(found, wanted));
  }
  store->lock_directories();
  for (std::size_t d = 0; d < store->directories_.size(); ++d) {
    for (int f = 0; f < store->blocks_.families(); ++f) {
      std::unique_ptr<File> file;
      if (store->in_files(f)) {
        const std::string name = store->file_of(d, f);
        file = store->options_.to_read ? files.open_to_read(name, FileUse::direct)
                                       : files.open(name, FileUse::direct);
        require(file->bytes() >= store->file_bytes(f), ErrorKind::storage, "storage",
                "{}: the file ends at byte {} of {}", file->path(), file->bytes(),
                store->file_bytes(f));
      }
      store->directories_[d].files.push_back(std::move(file));
    }
  }
  const std::string journal = store->directories_[0].path + "/journal";
  store->journal_ =
      std::make_unique<Journal>(store->options_.to_read ? Journal::open_to_read(files, journal)
                                                        : Journal::open(files, journal));
  store->read_journal();
  return store;
}

void FileStore::set_source(int family, BlockSource source) {
  sources_[static_cast<std::size_t>(family)] = std::move(source);
}

bool FileStore::is_last(BlockId id) const {
  return states_[static_cast<std::size_t>(blocks_.index(id))].last;
}

void FileStore::forget(BlockId id) { state(id) = {}; }

std::int64_t FileStore::segments_of(BlockId id) const {
  const std::int64_t each = layout(id).segment_bytes;
  return (blocks_.bytes(id) + each - 1) / each;
}

FileStore::Segment FileStore::segment(BlockId id, std::int64_t part) const {
  const Family& family = layout(id);
  const std::int64_t number = first_segments_[static_cast<std::size_t>(blocks_.index(id))] + part;
  const auto directories = static_cast<std::int64_t>(directories_.size());
  Segment segment;
  segment.file = directories_[static_cast<std::size_t>(number % directories)]
                     .files[static_cast<std::size_t>(id.family())]
                     .get();
  segment.offset = number / directories * family.segment_bytes;
  segment.begin = part * family.segment_bytes;
  segment.bytes =
      std::clamp<std::int64_t>(blocks_.bytes(id) - segment.begin, 0, family.segment_bytes);
  return segment;
}

std::uint64_t* FileStore::hashes(BlockId id) {
  return hashes_[static_cast<std::size_t>(id.family())].data() +
         first_segments_[static_cast<std::size_t>(blocks_.index(id))];
}

std::uint64_t FileStore::hash(BlockId id, std::uint32_t version, std::int64_t part,
                              const std::byte* data, std::int64_t bytes) const {
  const std::array<std::uint64_t, 5> identity{options_.matrix, id.bits, version,
                                              static_cast<std::uint64_t>(part),
                                              static_cast<std::uint64_t>(bytes)};
  const std::uint64_t seed = XXH3_64bits(identity.data(), sizeof identity);
  return XXH3_64bits_withSeed(data, static_cast<std::size_t>(bytes), seed);
}

/// All segments of a block, and their hashes, which are made while others are under way.
void FileStore::carry_out(BlockId id, std::byte* data, bool writes, std::uint32_t version,
                          std::uint64_t* made) {
  struct Buffered {
    AlignedBuffer buffer;
    std::byte* data = nullptr;  // the caller's
    std::int64_t bytes = 0;
  };
  struct Part {
    std::int64_t number = 0;
    std::int64_t buffered = -1;  // of this request
  };
  const std::int64_t segments = segments_of(id);
  std::vector<FileRequest> requests;
  std::vector<Buffered> buffered;
  std::vector<Part> parts;  // of requests
  std::vector<std::atomic<int>> left(static_cast<std::size_t>(segments));
  for (std::int64_t number = 0; number < segments; ++number) {
    const Segment s = segment(id, number);
    std::byte* here = data + s.begin;
    const std::int64_t in_place = bytes_in_place(*s.file, here, s.bytes);
    const std::int64_t rest = s.bytes - in_place;
    if (in_place > 0) {
      requests.push_back({s.file, s.offset, here, in_place, writes});
      parts.push_back({number, -1});
    }
    if (rest > 0) {
      buffered.push_back({buffers_.take(in_pages(rest)), here + in_place, rest});
      const Buffered& b = buffered.back();
      if (writes) {
        std::memcpy(b.buffer.data(), b.data, static_cast<std::size_t>(rest));
        std::memset(b.buffer.data() + rest, 0, static_cast<std::size_t>(in_pages(rest) - rest));
      }
      requests.push_back({s.file, s.offset + in_place, b.buffer.data(), in_pages(rest), writes});
      parts.push_back({number, std::ssize(buffered) - 1});
    }
    left[static_cast<std::size_t>(number)] = (in_place > 0 ? 1 : 0) + (rest > 0 ? 1 : 0);
  }
  options_.io->carry_out(requests, [&](std::size_t request) {
    const Part& part = parts[request];
    if (!writes && part.buffered >= 0) {
      const Buffered& b = buffered[static_cast<std::size_t>(part.buffered)];
      std::memcpy(b.data, b.buffer.data(), static_cast<std::size_t>(b.bytes));
    }
    if (--left[static_cast<std::size_t>(part.number)] > 0) return;
    const Segment s = segment(id, part.number);
    made[part.number] = hash(id, version, part.number, data + s.begin, s.bytes);
  });
  for (Buffered& b : buffered) buffers_.give_back(std::move(b.buffer));
}

void FileStore::check(BlockId id) const {
  const bool known = blocks_.contains(id);
  require(known && blocks_.family(id.family()).in_storage, ErrorKind::storage, "storage",
          "there is no place for block {}", known ? blocks_.name(id) : "?");
}

void FileStore::read(BlockId id, std::byte* to) {
  check(id);
  const State now = state(id);
  const std::int64_t bytes = blocks_.bytes(id);
  if (bytes == 0) return;
  if (now.version == 0) {
    const BlockSource& source = sources_[static_cast<std::size_t>(id.family())];
    require(source != nullptr, ErrorKind::storage, "storage", "block {} was never written",
            blocks_.name(id));
    return source(blocks_.extent(id), to);
  }
  if (layout(id).in_journal) {
    const std::vector<std::byte>& kept = kept_[static_cast<std::size_t>(blocks_.index(id))];
    std::copy(kept.begin(), kept.end(), to);
    return;
  }
  std::vector<std::uint64_t> found(static_cast<std::size_t>(segments_of(id)));
  carry_out(id, to, false, now.version, found.data());
  for (std::int64_t part = 0; part < std::ssize(found); ++part) {
    const Segment s = segment(id, part);
    require(found[static_cast<std::size_t>(part)] == hashes(id)[part], ErrorKind::storage,
            "storage", "{}: {} is not what was written, at byte {}", s.file->path(),
            blocks_.name(id), s.offset);
  }
}

void FileStore::write(BlockId id, const std::byte* from) {
  check(id);
  require(!options_.to_read, ErrorKind::misuse, "storage", "{}: opened to be read alone",
          directories_[0].path);
  const std::int64_t bytes = blocks_.bytes(id);
  State next = state(id);
  ++next.version;
  next.last = false;
  if (layout(id).in_journal) {
    kept_[static_cast<std::size_t>(blocks_.index(id))].assign(from, from + bytes);
  } else {
    // Requests that write only read it.
    carry_out(id, const_cast<std::byte*>(from), true, next.version, hashes(id));
  }
  state(id) = next;
}

std::string FileStore::how() const {
  std::string why;
  bool direct = false;
  for (const Directory& directory : directories_) {
    for (const auto& file : directory.files) {
      if (file == nullptr) continue;
      direct = direct || file->alignment() > 1;
      if (why.empty() && !file->why_buffered().empty())
        why = fmt::format("{}: {}", directory.path, file->why_buffered());
    }
  }
  return fmt::format(
      "{}: {}, {}", fmt::join(options_.directories, ", "), options_.io->how(),
      why.empty() ? (direct ? "O_DIRECT" : "buffered") : fmt::format("without O_DIRECT ({})", why));
}

}  // namespace strata
