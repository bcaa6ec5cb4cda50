// The tuning table as JSON: see potrf_tuning.hpp.

#include "run/potrf_tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/output_file.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "strata potrf 1";
constexpr std::int64_t kPanelUnit = 128;
constexpr std::array<std::pair<CholeskyVariant, const char*>, 4> kVariants{
    {{CholeskyVariant::automatic, "auto"},
     {CholeskyVariant::fused, "fused"},
     {CholeskyVariant::left, "left"},
     {CholeskyVariant::right, "right"}}};

Json to_json(const PotrfTuning::Entry& entry) {
  const CholeskyBlocking& blocking = entry.blocking;
  return {{"precision", to_string(entry.precision)},
          {"n", entry.n},
          {"variant", to_string(blocking.variant)},
          {"recnb", blocking.recnb},
          {"nb", blocking.nb}};
}

PotrfTuning::Entry entry_from(const Json& j) {
  PotrfTuning::Entry entry;
  const auto precision = j.at("precision").get<std::string>();
  require(precision == "fp64" || precision == "fp32", ErrorKind::input, "tuning",
          "'{}' is no precision", precision);
  entry.precision = precision == "fp32" ? Element::fp32 : Element::fp64;
  entry.n = j.at("n").get<std::int64_t>();
  require(entry.n >= 1, ErrorKind::input, "tuning", "a matrix cannot be of order {}", entry.n);
  const auto variant = j.at("variant").get<std::string>();
  entry.blocking.variant =
      variant == "exclusive" ? CholeskyVariant::fused : parse_variant(variant);  // of old files
  entry.blocking.recnb = j.at("recnb").get<int>();
  entry.blocking.nb = j.at("nb").get<int>();
  check_blocking(entry.blocking);
  return entry;
}

/// Every table of a file, with where it comes from; none if there is no file.
std::vector<PotrfTuning> read_tables(const std::string& path, std::string& source) {
  source = "none";
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return {};
  const std::string text = InputFile(path, "tuning").read_all();
  source = path + " " + tuning_checksum(text);
  try {
    const Json file = Json::parse(text);
    require(file.at("format") == kFormat, ErrorKind::input, "tuning", "is not a tuning table");
    std::vector<PotrfTuning> tables;
    for (const Json& table : file.at("tables")) {
      PotrfTuning& tuning = tables.emplace_back();
      tuning.model = table.at("model").get<std::string>();
      for (const Json& entry : table.at("entries")) tuning.entries.push_back(entry_from(entry));
    }
    return tables;
  } catch (const JsonError&) {
    fail(ErrorKind::input, "tuning", "{}: is not a tuning table", path);
  } catch (const Error& problem) {
    fail(ErrorKind::input, "tuning", "{}: {}", path, problem.what());
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

CholeskyBlocking PotrfTuning::blocking_for(Element precision, std::int64_t n) const {
  const auto distance = [n](const Entry& entry) {
    return std::abs(
        std::log(static_cast<double>(std::max<std::int64_t>(n, 1)) / static_cast<double>(entry.n)));
  };
  const Entry* best = nullptr;
  for (const Entry& entry : entries) {
    if (entry.precision != precision) continue;
    const bool nearer = best == nullptr || distance(entry) < distance(*best) ||
                        (distance(entry) == distance(*best) && entry.n < best->n);
    if (nearer) best = &entry;
  }
  return best == nullptr ? CholeskyBlocking{} : best->blocking;
}

std::string potrf_tuning_path() {
  const std::string file = environment("STRATA_TUNING");
  if (!file.empty()) return file;
  std::string folder = environment("XDG_CONFIG_HOME");
  if (folder.empty()) {
    const std::string home = environment("HOME");
    if (home.empty()) return "";
    folder = home + "/.config";
  }
  return folder + "/strata/potrf.json";
}

PotrfTuning read_potrf_tuning(const std::string& path, const std::string& model) {
  PotrfTuning tuning{model, {}};
  for (PotrfTuning& table : read_tables(path, tuning.source)) {
    if (table.model != model) continue;
    tuning.entries = std::move(table.entries);
    break;
  }
  return tuning;
}

std::string tuning_checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

void write_potrf_tuning(const std::string& path, const PotrfTuning& tuning) {
  std::string source;
  std::vector<PotrfTuning> tables = read_tables(path, source);
  auto table = std::find_if(tables.begin(), tables.end(),
                            [&](const PotrfTuning& t) { return t.model == tuning.model; });
  if (table == tables.end()) table = tables.insert(table, {tuning.model, {}});
  for (const PotrfTuning::Entry& entry : tuning.entries) {
    std::erase_if(table->entries, [&](const PotrfTuning::Entry& old) {
      return old.precision == entry.precision && old.n == entry.n;
    });
    table->entries.push_back(entry);
  }
  Json list = Json::array();
  for (const PotrfTuning& t : tables) {
    Json entries = Json::array();
    for (const PotrfTuning::Entry& entry : t.entries) entries.push_back(to_json(entry));
    list.push_back({{"model", t.model}, {"entries", entries}});
  }
  const Json file = {{"format", kFormat}, {"tables", list}};
  std::error_code error;  // what cannot be made is told by replace_file
  fs::create_directories(fs::path(path).parent_path(), error);
  replace_file(path, [&](std::ostream& out) { out << file.dump(1) << '\n'; });
}

PotrfTuning potrf_tuning_of(const Backend& backend, int index) {
  if (backend.on_host()) return {};
  const std::vector<DeviceDescription> devices = backend.devices();
  const auto i = static_cast<std::size_t>(index);
  if (i >= devices.size()) return {};
  return read_potrf_tuning(potrf_tuning_path(), devices[i].model);
}

PotrfTuning potrf_tuning_for(CholeskyPath path, const Backend& backend, int index) {
  if (path != CholeskyPath::planned || backend.on_host()) return potrf_tuning_of(backend, index);
  PotrfTuning none;
  none.source = "ignored";
  return none;
}

CholeskyBlocking with_tuning(const CholeskyBlocking& asked, const CholeskyBlocking& tuned) {
  if (asked.variant != CholeskyVariant::automatic && asked.variant != tuned.variant) return asked;
  const auto filled = [](int value, int other) { return value != 0 ? value : other; };
  return {.variant = tuned.variant,
          .recnb = filled(asked.recnb, tuned.recnb),
          .nb = filled(asked.nb, tuned.nb)};
}

void check_blocking(const CholeskyBlocking& blocking) {
  const auto [variant, recnb, nb] = blocking;
  require(std::any_of(kVariants.begin(), kVariants.end(),
                      [v = variant](const auto& known) { return known.first == v; }),
          ErrorKind::misuse, "options", "{} is no variant", static_cast<int>(variant));
  require(recnb == 0 || recnb == 64 || recnb == 128, ErrorKind::misuse, "options",
          "recnb is {}: use 64 or 128", recnb);
  require(nb >= 0 && nb % kPanelUnit == 0, ErrorKind::misuse, "options",
          "nb is {}: use a multiple of {}", nb, kPanelUnit);
}

const char* to_string(CholeskyVariant variant) noexcept {
  for (const auto& [value, name] : kVariants) {
    if (value == variant) return name;
  }
  return "?";
}

CholeskyVariant parse_variant(const std::string& name) {
  for (const auto& [value, known] : kVariants) {
    if (name == known) return value;
  }
  fail(ErrorKind::misuse, "options", "'{}' is no variant: use auto, fused, left or right", name);
}

}  // namespace strata
