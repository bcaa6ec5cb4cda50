// The fingerprint of the data is a hash of the bits of all coordinates, values and covariates, in
// order, by the mixing function of base/random.hpp; options are written out, so that a refusal can
// name them.

#include "geostat/fit_journal.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/output_file.hpp"
#include "base/random.hpp"

namespace strata {
namespace {

constexpr const char* kFitJournalWhere = "journal";
constexpr std::string_view kName = "strata fit journal ";
constexpr const char* kFormat = "strata fit journal 5";

std::string text_of(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::hex).ptr;
  return {buffer, end};
}

std::string text_of(const std::optional<double>& value) {
  return value ? text_of(*value) : "estimated";
}

std::string text_of(const std::optional<Bounds>& bounds) {
  return bounds ? fmt::format("{} {}", text_of(bounds->lower), text_of(bounds->upper))
                : "automatic";
}

std::uint64_t hash_of(std::uint64_t hash, std::span<const double> values) {
  for (const double value : values) hash = random_bits(hash, std::bit_cast<std::uint64_t>(value));
  return hash;
}

std::string text_of(const Separation& s) {
  std::string text = fmt::format("{} {} {}", static_cast<int>(s.distance),
                                 text_of(s.anisotropy_ratio), text_of(s.anisotropy_angle));
  if (s.time) {
    text += fmt::format(" {} {} {}", text_of(s.time->scale), text_of(s.time->smoothness),
                        text_of(s.time->interaction));
  }
  return text;
}

std::string text_of(const SeparationEstimates& estimate) {
  std::string text;
  for (const auto& [flag, name] : {std::pair{estimate.time_scale, " time-scale"},
                                   {estimate.time_smoothness, " time-smoothness"},
                                   {estimate.interaction, " interaction"},
                                   {estimate.anisotropy_ratio, " anisotropy-ratio"},
                                   {estimate.anisotropy_angle, " anisotropy-angle"}}) {
    if (flag) text += name;
  }
  return text.empty() ? " nothing" : text;
}

/// What of the options of runs an evaluation depends on beyond rounding in FP64.
std::string text_of(const CovarianceOptions& options) {
  const MixedPrecision& m = options.mixed;
  if (!m.on()) return "fp64";
  std::string text = fmt::format("{} {} {}", text_of(m.accuracy), static_cast<int>(m.rule),
                                 static_cast<int>(m.product));
  for (const bool flag : {m.allowed[1], m.allowed[2], m.allowed[3], m.keep_all, m.guard})
    text += flag ? " 1" : " 0";
  if (options.order) text += fmt::format(" {}", static_cast<int>(*options.order));
  return text;
}

/// The mean with what it is made of beside the coordinates.
std::string text_of(Mean mean, const Points& points) {
  std::string text = fmt::format("{}", static_cast<int>(mean));
  if (points.covariates.empty()) return text;
  std::uint64_t hash = 3;
  for (const std::vector<double>& covariate : points.covariates) hash = hash_of(hash, covariate);
  return text + fmt::format(" covariates {} {:016x}", points.covariates.size(), hash);
}

std::vector<std::string> header_of(const Points& points, std::span<const double> values,
                                   const FitOptions& options) {
  const auto& start = options.start;
  std::string from = "automatic";
  if (start) {
    from =
        fmt::format("{} {} {} {} {}", text_of(start->variance), text_of(start->range),
                    text_of(start->smoothness), text_of(start->nugget), text_of(start->separation));
  }
  return {kFormat,
          fmt::format("version {}", STRATA_VERSION),
          fmt::format("points {} {:016x}", points.size(), hash_of(1, coordinate_matrix(points))),
          fmt::format("values {:016x}", hash_of(2, values)),
          fmt::format("mean {}", text_of(options.mean, points)),
          fmt::format("separation {}", text_of(held_separation(options))),
          fmt::format("estimated of it{}", text_of(options.estimate)),
          fmt::format("range {}", text_of(options.range)),
          fmt::format("smoothness {}", text_of(options.smoothness)),
          fmt::format("nugget {}", text_of(options.nugget)),
          fmt::format("start {}", from),
          fmt::format("range bounds {}", text_of(options.range_bounds)),
          fmt::format("smoothness bounds {}", text_of(options.smoothness_bounds)),
          fmt::format("noise ratio bounds {}", text_of(options.noise_ratio_bounds)),
          fmt::format("time range bounds {}", text_of(options.time_range_bounds)),
          fmt::format("time smoothness bounds {}", text_of(options.time_smoothness_bounds)),
          fmt::format("interaction bounds {}", text_of(options.interaction_bounds)),
          fmt::format("anisotropy ratio bounds {}", text_of(options.anisotropy_ratio_bounds)),
          fmt::format("tolerance {}", text_of(options.relative_tolerance)),
          fmt::format("precision {}", text_of(options)),
          fmt::format("seed {}", options.seed)};
}

std::string line_of(const JournalEntry& entry) {
  const FactorInfo& factor = entry.evaluation.factor;
  const double quadratic_form = entry.evaluation.quadratic_form;
  const std::vector<double>& coefficients = entry.evaluation.mean_coefficients;
  std::string line = fmt::format("evaluation {}", entry.stage);
  for (const double v : entry.at) line += fmt::format(" {}", text_of(v));
  line += fmt::format(" {} {}", factor.ok ? 1 : 0, factor.first_bad_pivot);
  for (const double v : {factor.bad_pivot, factor.log_determinant, quadratic_form, entry.seconds})
    line += fmt::format(" {}", text_of(v));
  line += fmt::format(" {} {}", entry.lower_failed ? 1 : 0, coefficients.size());
  for (const double c : coefficients) line += fmt::format(" {}", text_of(c));
  return line;
}

/// Takes words off a line.
class Words {
 public:
  explicit Words(const std::string& line) : stream_(line) {}
  [[nodiscard]] bool is(const char* expected) {
    std::string word;
    return (stream_ >> word) && word == expected;
  }
  bool take(double& value) {
    std::string word;
    if (!(stream_ >> word)) return false;
    const char* end = word.data() + word.size();
    const auto [rest, status] = std::from_chars(word.data(), end, value, std::chars_format::hex);
    return status == std::errc{} && rest == end;
  }
  bool take(std::int64_t& value) { return static_cast<bool>(stream_ >> value); }
  [[nodiscard]] bool ended() {
    std::string word;
    return !(stream_ >> word);
  }

 private:
  std::istringstream stream_;
};

}  // namespace

FitJournal::FitJournal(std::string path, const Points& points, std::span<const double> values,
                       const FitOptions& options)
    : path_(std::move(path)), header_(header_of(points, values, options)) {
  read();
}

void FitJournal::read() {
  require_regular_or_absent(path_, kFitJournalWhere);
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) {
    OutputFile probe(path_);  // a place that cannot be written is noticed before the work
    return;
  }
  std::istringstream in(InputFile(path_, kFitJournalWhere).read_all());
  std::string line;
  for (const std::string& expected : header_) {
    const bool there = static_cast<bool>(std::getline(in, line));
    require(there && (&expected != header_.data() || line.starts_with(kName)), ErrorKind::input,
            kFitJournalWhere, "{}: is not the journal of a fit", path_);
    require(line == expected, ErrorKind::input, kFitJournalWhere,
            "{}: is the journal of another fit: it has '{}', this one '{}'", path_, line, expected);
  }
  while (std::getline(in, line)) {
    (void)parse(line);
    lines_.push_back(line);
  }
}

JournalEntry FitJournal::parse(const std::string& line) const {
  Words words(line);
  JournalEntry entry;
  FactorInfo& factor = entry.evaluation.factor;
  double& quadratic_form = entry.evaluation.quadratic_form;
  std::vector<double>& coefficients = entry.evaluation.mean_coefficients;
  std::int64_t stage = 0;
  std::int64_t ok = 0;
  std::int64_t lower_failed = 0;
  std::int64_t count = 0;
  bool fine = words.is("evaluation") && words.take(stage);
  for (double& v : entry.at) fine = fine && words.take(v);
  fine = fine && words.take(ok) && words.take(factor.first_bad_pivot) &&
         words.take(factor.bad_pivot) && words.take(factor.log_determinant) &&
         words.take(quadratic_form) && words.take(entry.seconds) && words.take(lower_failed) &&
         words.take(count) && count >= 0;
  for (std::int64_t k = 0; fine && k < count; ++k) {
    coefficients.push_back(0);
    fine = words.take(coefficients.back());
  }
  require(fine && words.ended(), ErrorKind::input, kFitJournalWhere,
          "{}: holds '{}', which is no evaluation", path_, line);
  entry.stage = static_cast<int>(stage);
  factor.ok = ok != 0;
  entry.lower_failed = lower_failed != 0;
  return entry;
}

bool FitJournal::replay(JournalEntry& entry) {
  if (replayed_ == lines_.size()) return false;
  JournalEntry next = parse(lines_[replayed_]);
  require(next.stage == entry.stage && next.at == entry.at, ErrorKind::input, kFitJournalWhere,
          "{}: evaluation {} (counting from 0) was made elsewhere than this fit makes it", path_,
          replayed_);
  entry = std::move(next);
  ++replayed_;
  return true;
}

void FitJournal::add(const JournalEntry& entry) {
  lines_.push_back(line_of(entry));
  replayed_ = lines_.size();
  replace_file(path_, [&](std::ostream& out) {
    for (const std::string& line : header_) out << line << '\n';
    for (const std::string& line : lines_) out << line << '\n';
  });
}

}  // namespace strata
