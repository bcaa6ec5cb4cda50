// The file of an analysis: a line of text that names the format, then the numbers of the machine
// that wrote it (a word tells the byte order), then XXH3 (64 bits) of all before. Arrays are
// preceded by their lengths, which are checked against the length of the file before anything is
// allocated; what was read is then checked as analyze() would have made it.

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "base/output_file.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "analysis";
constexpr std::string_view kName = "strata analysis ";
constexpr std::string_view kFormat = "strata analysis 1\n";
constexpr std::uint64_t kByteOrder = 0x0102030405060708;

/// Visits everything that is saved, in its order; `Self` is constant or not.
template <class Self, class Visit>
void visit_all(Self& a, const Visit& visit) {
  visit(a.fingerprint.order);
  visit(a.fingerprint.entries);
  visit(a.fingerprint.hash);
  visit(a.ordering);
  visit(a.seed);
  auto& c = a.counts;
  visit(c.flops);
  visit(c.factor_entries);
  visit(c.stored_flops);
  visit(c.stored_entries);
  visit(c.panel_bytes);
  visit(c.fundamental_supernodes);
  visit(c.widest);
  visit(c.largest_panel_bytes);
  visit(c.largest_update_bytes);
  visit(c.stack_bytes);
  visit(c.product_bytes);
  visit(c.height);
  visit(c.critical_flops);
  visit(c.empty_diagonals);
  visit(c.first_empty_diagonal);
  visit(a.order);
  visit(a.first);
  visit(a.parent);
  visit(a.row_start);
  visit(a.row);
  visit(a.branch);
  visit(a.level);
}

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(path) {
    XXH3_64bits_reset(&hash_);
    write(kFormat);
    add(kByteOrder);
  }
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write({reinterpret_cast<const char*>(&value), sizeof value});
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(static_cast<std::uint64_t>(values.size()));
    write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  }
  void finish() {
    add(static_cast<std::uint64_t>(XXH3_64bits_digest(&hash_)));
    file_.commit();
  }

 private:
  void write(std::string_view bytes) {
    XXH3_64bits_update(&hash_, bytes.data(), bytes.size());
    file_.write(bytes);
  }
  OutputFile file_;
  XXH3_state_t hash_{};
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    require(file_.good() && std::filesystem::is_regular_file(path), ErrorKind::input, kWhere,
            "cannot read '{}'", path);
    left_ = static_cast<std::int64_t>(std::filesystem::file_size(path));
    XXH3_64bits_reset(&hash_);
    std::string format(kFormat.size(), '\0');
    if (left_ >= std::ssize(format)) take(format.data(), format.size());
    require(format.starts_with(kName), ErrorKind::input, kWhere, "'{}' is no analysis", path);
    require(format == kFormat, ErrorKind::input, kWhere,
            "'{}' is an analysis of another version: analyze again", path);
    std::uint64_t order = 0;
    read(order);
    require(order == kByteOrder, ErrorKind::input, kWhere,
            "'{}' was written by a machine with another byte order", path);
  }
  template <class T>
  void read(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(reinterpret_cast<char*>(&value), sizeof value);
  }
  template <class T>
  void read(std::vector<T>& values) {
    std::uint64_t count = 0;
    read(count);
    require(count <= static_cast<std::uint64_t>(left_) / sizeof(T), ErrorKind::input, kWhere,
            "'{}' is truncated: {} numbers announced, {} bytes left", path_, count, left_);
    values.resize(count);
    take(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
  }
  void finish() {
    const std::uint64_t computed = XXH3_64bits_digest(&hash_);
    std::uint64_t stored = 0;
    read(stored);
    require(stored == computed && left_ == 0, ErrorKind::input, kWhere,
            "'{}' is damaged: its checksum is {:016x}, that of its content {:016x}", path_, stored,
            computed);
  }

 private:
  void take(char* to, std::size_t bytes) {
    const bool enough = static_cast<std::int64_t>(bytes) <= left_;
    if (enough) file_.read(to, static_cast<std::streamsize>(bytes));
    require(enough && file_.good(), ErrorKind::input, kWhere, "'{}' is truncated", path_);
    left_ -= static_cast<std::int64_t>(bytes);
    XXH3_64bits_update(&hash_, to, bytes);
  }
  const std::string& path_;
  std::ifstream file_;
  std::int64_t left_ = 0;
  XXH3_state_t hash_{};
};

}  // namespace

void save_analysis(const SparseAnalysis& analysis, const std::string& path) {
  require_well_formed(analysis);
  Writer writer(path);
  visit_all(analysis, [&](const auto& value) { writer.add(value); });
  writer.finish();
}

SparseAnalysis load_analysis(const std::string& path) {
  Reader reader(path);
  SparseAnalysis analysis;
  visit_all(analysis, [&](auto& value) { reader.read(value); });
  reader.finish();
  try {
    require_well_formed(analysis);
  } catch (const Error& error) {
    fail(ErrorKind::input, kWhere, "'{}' is no analysis: {}", path, error.what());
  }
  return analysis;
}

}  // namespace strata
