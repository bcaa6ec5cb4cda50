#include "cli/fit_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace strata::cli {
namespace {

/// A parameter as the options name it: where its bounds go, and whether it is searched.
struct Parameter {
  const char* name;
  std::optional<Bounds> FitOptions::*bounds;
};
constexpr std::array kParameters{
    Parameter{"range", &FitOptions::range_bounds},
    Parameter{"smoothness", &FitOptions::smoothness_bounds},
    Parameter{"noise-ratio", &FitOptions::noise_ratio_bounds},
    Parameter{"time-range", &FitOptions::time_range_bounds},
    Parameter{"time-smoothness", &FitOptions::time_smoothness_bounds},
    Parameter{"interaction", &FitOptions::interaction_bounds},
    Parameter{"anisotropy-ratio", &FitOptions::anisotropy_ratio_bounds},
    Parameter{"anisotropy-angle", nullptr}};

bool is_searched(const FitOptions& options, std::size_t parameter) {
  const SeparationEstimates& e = options.estimate;
  const std::array searched{!options.range.has_value(),
                            !options.smoothness.has_value(),
                            !(options.nugget && *options.nugget == 0),
                            e.time_scale,
                            e.time_smoothness,
                            e.interaction,
                            e.anisotropy_ratio,
                            e.anisotropy_angle};
  return searched[parameter];
}

double number_in(const std::string& text, const char* option, const std::string& part) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  require(status == std::errc{} && rest == end && std::isfinite(value), ErrorKind::misuse,
          "options", "{} '{}': '{}' is not a finite number", option, part, text);
  return value;
}

/// NAME=TEXT,… as pairs of a searched parameter and its text.
std::vector<std::pair<std::size_t, std::string>> parts_of(const std::string& list,
                                                          const char* option,
                                                          const FitOptions& options) {
  std::vector<std::pair<std::size_t, std::string>> out;
  if (list.empty()) return out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    const auto known = std::find_if(kParameters.begin(), kParameters.end(),
                                    [&](const Parameter& p) { return name == p.name; });
    std::vector<std::string> names;
    for (std::size_t k = 0; k < kParameters.size(); ++k)
      if (is_searched(options, k)) names.emplace_back(kParameters[k].name);
    const auto place = static_cast<std::size_t>(known - kParameters.begin());
    require(known != kParameters.end() && equals < part.size() && is_searched(options, place),
            ErrorKind::misuse, "options", "{} '{}': use NAME=…; this fit estimates {}", option,
            part, names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")));
    out.emplace_back(place, part.substr(equals + 1));
  }
  return out;
}

void apply_bounds(const std::string& list, FitOptions& options) {
  for (const auto& [place, text] : parts_of(list, "--bounds", options)) {
    const std::size_t colon = text.find(':');
    require(colon != std::string::npos && kParameters[place].bounds != nullptr, ErrorKind::misuse,
            "options", "--bounds '{}={}': {}", kParameters[place].name, text,
            colon == std::string::npos ? "use NAME=LOWER:UPPER" : "an angle has no bounds");
    options.*kParameters[place].bounds =
        Bounds{number_in(text.substr(0, colon), "--bounds", text),
               number_in(text.substr(colon + 1), "--bounds", text)};
  }
}

/// A start has all that is searched.
void apply_start(const std::string& list, FitOptions& options) {
  if (list.empty()) return;
  std::array<std::optional<double>, kParameters.size()> given;
  for (const auto& [place, text] : parts_of(list, "--start", options))
    given[place] = number_in(text, "--start", text);
  for (std::size_t k = 0; k < given.size(); ++k) {
    require(given[k] || !is_searched(options, k), ErrorKind::misuse, "options",
            "--start '{}': it has no {}, which is estimated too", list, kParameters[k].name);
  }
  MaternParameters p;
  p.range = given[0].value_or(options.range.value_or(1));
  p.smoothness = given[1].value_or(options.smoothness.value_or(p.smoothness));
  p.nugget = given[2].value_or(0);  // of a variance of 1
  p.separation = options.separation;
  Separation& s = p.separation;
  if (s.time) {
    s.time->smoothness = given[4].value_or(s.time->smoothness);
    if (given[3]) s.time->scale = std::pow(*given[3], -2 * s.time->smoothness);
    s.time->interaction = given[5].value_or(s.time->interaction);
  }
  s.anisotropy_ratio = given[6].value_or(s.anisotropy_ratio);
  s.anisotropy_angle = given[7].value_or(s.anisotropy_angle);
  options.start = p;
}

/// Differences of a log-likelihood of 1 are what standard errors are about.
bool is_noise(const FitResult& result) { return !(result.noise < 0.1); }

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

}  // namespace

void SearchArguments::add_to(Command& app) {
  app.add_option("--range", range, "hold the range at this").check(positive_number());
  app.add_option("--smoothness", smoothness, "hold the smoothness at this")
      .check(positive_number());
  app.add_option("--nugget", nugget, "hold the nugget at this; 0 for none")
      .check(nonnegative_number());
  app.add_option("--start", start,
                 "NAME=VALUE,…: begin there, with all that is estimated: range, smoothness, "
                 "noise-ratio (nugget/variance), time-range (after which half of the covariance is "
                 "left), time-smoothness, interaction, anisotropy-ratio, anisotropy-angle");
  app.add_option("--bounds", bounds,
                 "NAME=LOWER:UPPER,…: search there (default: range from 1/20 of the least distance "
                 "to 10 times the extent; smoothness 0.05:5, with great-circle distance 0.05:0.5; "
                 "noise-ratio 0:10000; time-range from 1/1000 of the spacing to 1000 times the "
                 "extent of the times; time-smoothness 0.05:1; interaction 0:1; anisotropy-ratio "
                 "0.02:1)");
  app.add_option("--max-evaluations", evaluations,
                 "of the likelihood on all points, at most; those on samples before and those for "
                 "standard errors do not count (default: 50, and 50 for each parameter that is "
                 "estimated)")
      .check(positive_number());
}

void SearchArguments::apply(FitOptions& options) const {
  options.max_evaluations = evaluations;
  options.range = range;
  options.smoothness = smoothness;
  options.nugget = nugget;
  apply_bounds(bounds, options);
  apply_start(start, options);
}

std::string distrust_of(const FitResult& result) {
  if (!is_noise(result)) return "";
  return distrust_of_likelihood(result.noise, result.mixed.has_value());
}

std::vector<std::string> remarks_of(const FitResult& result, const FitOptions& options) {
  std::vector<std::string> out;
  if (!result.converged) {
    out.push_back(
        fmt::format("NOT CONVERGED: the search ran out of its {}, and the maximum is elsewhere "
                    "(--max-evaluations)",
                    counted(result.evaluations, "evaluation")));
  }
  if (is_noise(result)) out.push_back("NOT TO BE TRUSTED: " + distrust_of(result));
  for (const FitBound& b : result.at_bounds) {
    if (b.natural) continue;
    // With a nugget that is held the variance is searched by its ratio to it.
    const std::string name = b.parameter == "variance" ? "noise-ratio" : dashed(b.parameter);
    const auto known = std::find_if(kParameters.begin(), kParameters.end(),
                                    [&](const Parameter& p) { return name == p.name; });
    const bool given = known != kParameters.end() && (options.*(known->bounds)).has_value();
    out.push_back(fmt::format(
        "the {} is at the {} bound of its search, {:.6g}{}: the likelihood may be larger beyond, "
        "and "
        "the standard errors of the others take it as known (--bounds {}=…)",
        b.parameter, b.upper ? "upper" : "lower", b.bound, given ? "" : " by default", name));
  }
  return out;
}

std::string bound_text(const FitResult& result, const std::string& parameter) {
  for (const FitBound& b : result.at_bounds) {
    if (dashed(b.parameter) != parameter) continue;
    if (b.natural) return "at the end of its domain";
    return fmt::format("at the {} bound of its search", b.upper ? "upper" : "lower");
  }
  return "";
}

void add_search_json(Json& object, const FitResult& result, const FitOptions& options) {
  object["evaluations"] = result.evaluations;
  object["converged"] = result.converged;
  object["log_likelihood_noise"] = number(result.noise);
  object["at_bounds"] = Json::array();
  for (const FitBound& b : result.at_bounds) {
    object["at_bounds"].push_back({{"parameter", dashed(b.parameter)},
                                   {"bound", b.upper ? "upper" : "lower"},
                                   {"value", b.bound},
                                   {"end_of_domain", b.natural}});
  }
  object["remarks"] = remarks_of(result, options);
}

int status_of(const FitResult& result) {
  return result.converged && !is_noise(result) ? kDone : kNumbersSaidNo;
}

}  // namespace strata::cli
