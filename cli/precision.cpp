#include "cli/precision.hpp"

#include <fmt/core.h>

#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "geostat/point_order.hpp"

namespace strata::cli {
namespace {

constexpr TilePrecision kPrecisions[] = {TilePrecision::fp64, TilePrecision::fp32,
                                         TilePrecision::fp16, TilePrecision::fp8,
                                         TilePrecision::none};

/// By name; `none` is what is left out.
template <class Counts>
Json by_precision(const Counts& counts) {
  Json object;
  for (const TilePrecision p : kPrecisions)
    object[p == TilePrecision::none ? "left_out" : to_string(p)] =
        counts[static_cast<std::size_t>(p)];
  return object;
}

template <class Counts>
std::string share_text(const Counts& counts) {
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0.0));
  std::string text;
  for (const TilePrecision p : kPrecisions) {
    const double share = static_cast<double>(counts[static_cast<std::size_t>(p)]) / all;
    if (!(share > 0)) continue;
    text += fmt::format("{}{} {:.3g} %", text.empty() ? "" : ", ",
                        p == TilePrecision::none ? "left out" : to_string(p), 100 * share);
  }
  return text.empty() ? "none" : text;
}

Element element_of_tile(TilePrecision precision) {
  switch (precision) {
    case TilePrecision::fp64: return Element::fp64;
    case TilePrecision::fp32: return Element::fp32;
    case TilePrecision::fp16: return Element::fp16;
    case TilePrecision::fp8: return Element::fp8;
    case TilePrecision::none: return Element::none;
  }
  return Element::none;
}

}  // namespace

double share_left_out(const MixedReport& mixed) {
  const double all = std::accumulate(mixed.products.begin(), mixed.products.end(), 0.0);
  return all > 0 ? mixed.products[static_cast<std::size_t>(TilePrecision::none)] / all : 0;
}

void PrecisionArguments::add_to(Command& app) {
  app.add_option("--accuracy", accuracy,
                 "factor the covariance in several precisions, to this error relative to its norm: "
                 "1e-12 to 1e-3; 0: in FP64")
      .check(nonnegative_number())
      .capture_default_str();
  app.add_option("--precision-rule", rule,
                 "what decides the precision of a tile: factor (the norms of L's, by a pilot) or "
                 "paper (those of the covariance's)")
      .check(one_of({"factor", "paper"}))
      .capture_default_str();
  app.add_option("--product-rule", product,
                 "rule paper: a product is in the precision of its target, or the lower or the "
                 "higher of its factors'")
      .check(one_of({"target", "lower", "higher"}))
      .capture_default_str();
  app.add_option("--precisions", precisions, "which may be used; fp64 always is")
      .capture_default_str();
  app.add_flag("--keep-all", keep_all, "rule factor: leave out no tile and no product");
  app.add_flag(
      "--no-guard", no_guard,
      "do not make the accuracy finer where the smallest pivot needs it, nor where a probe "
      "of the factor finds too much, nor take FP64 where it is predicted to be as fast");
  app.add_option("--order", order,
                 "of the points in the covariance: none, hilbert, kd or coarse (default: kd with "
                 "--accuracy, or coarse where that is predicted to be faster; else none)")
      .check(one_of({"none", "hilbert", "kd", "coarse"}));
  app.add_list("--storage", storage,
               "directories, separated by commas, best on as many disks, in whose files the factor "
               "rests where host memory (--host-memory) does not hold it; gone with the command");
}

void PrecisionArguments::add_probes_to(Command& app, bool certificate) {
  app.add_option("--probes", probes, "random vectors that estimate what the log-determinant lacks")
      .check(in_range(2, 4096))
      .capture_default_str();
  if (certificate) app.add_flag("--no-certificate", no_certificate, "do not estimate that: faster");
}

CovarianceOptions PrecisionArguments::to_options(const CommonOptions& common) const {
  const PrecisionArguments plain;
  require(accuracy > 0 ||
              (rule == plain.rule && product == plain.product && precisions == plain.precisions &&
               !keep_all && !no_guard && probes == plain.probes && !no_certificate),
          ErrorKind::misuse, "options",
          "--precision-rule, --product-rule, --precisions, --keep-all, --no-guard, --probes and "
          "--no-certificate need --accuracy");
  CovarianceOptions options{common.cholesky_options()};
  MixedPrecision& mixed = options.mixed;
  mixed.accuracy = accuracy;
  mixed.rule = rule == "paper" ? PrecisionRule::paper : PrecisionRule::factor;
  mixed.product = product == "lower"    ? ProductRule::lower
                  : product == "higher" ? ProductRule::higher
                                        : ProductRule::target;
  mixed.allowed = parse_precisions(precisions);
  mixed.keep_all = keep_all;
  mixed.guard = !no_guard;
  check_mixed_precision(mixed);
  options.run.storage.directories = storage_directories(storage);
  if (!order.empty()) options.order = parse_point_order(order);
  options.probing = {no_certificate ? 0 : probes, common.seed};
  return options;
}

Json to_json(const MixedReport& mixed) {
  return {{"accuracy_asked", mixed.accuracy_asked},
          {"accuracy", mixed.accuracy},
          {"note", mixed.note},
          {"tiles", by_precision(mixed.tiles)},
          {"products", by_precision(mixed.products)},
          {"share_left_out", share_left_out(mixed)},
          {"raised_tiles", mixed.raised_tiles},
          {"retries", mixed.retries},
          {"pilot_seconds", mixed.pilot_seconds},
          {"probe", number(mixed.probe)},
          {"probe_seconds", mixed.probe_seconds}};
}

Json certificate_json(const Likelihood& likelihood) {
  const LikelihoodCertificate& c = likelihood.certificate.value();
  const LikelihoodError error = likelihood.error();
  return {{"log_likelihood_error", number(error.log_likelihood())},
          {"log_determinant_difference", number(c.log_determinant_difference)},
          {"log_determinant_error", number(error.log_determinant)},
          {"log_determinant_remainder", number(c.log_determinant_remainder)},
          {"corrected", c.corrected},
          {"quadratic_form_error", number(error.quadratic_form)},
          {"quadratic_form_remainder", number(c.quadratic_form_remainder)},
          {"rounding", number(likelihood.rounding.log_likelihood())},
          {"backward_error", number(c.backward_error)},
          {"refinement_steps", c.refinement_steps},
          {"probes", c.probes},
          {"lanczos_steps", c.lanczos_steps},
          {"divergence", number(c.divergence)},
          {"divergence_error", number(c.divergence_error)},
          {"seconds", c.seconds}};
}

Json to_json(const PredictionCertificate& c) {
  return {{"backward_error", number(c.backward_error)},
          {"refinement_steps", c.refinement_steps},
          {"mean_error", number(c.mean_error)},
          {"variance_error", number(c.variance_error)}};
}

std::string error_text(double error) {
  return std::isfinite(error) ? fmt::format(" ± {:.2g}", rounded_up(error))
                              : std::string(" ± unknown");
}

void print_mixed(const std::optional<MixedReport>& mixed) {
  if (!mixed) return;
  const std::string used = mixed->accuracy > 0 ? fmt::format("{:.2g}", mixed->accuracy) : "FP64";
  fmt::print("  accuracy {:.2g} asked for, {} used{}{}\n", mixed->accuracy_asked, used,
             mixed->note.empty() ? "" : ": ", mixed->note);
  if (mixed->accuracy == 0) return;
  fmt::print("  tiles below the diagonal: {}\n", share_text(mixed->tiles));
  fmt::print("  products: {} (pilot {:.2g} s", share_text(mixed->products), mixed->pilot_seconds);
  if (mixed->raised_tiles > 0) fmt::print(", {} tiles raised", mixed->raised_tiles);
  if (mixed->retries > 0) fmt::print(", {} times again", mixed->retries);
  fmt::print(")\n  a probe of A - LL^T finds {:.2g} of the accuracy ({:.2g} s)\n", mixed->probe,
             mixed->probe_seconds);
}

void print_certificate(const std::optional<LikelihoodCertificate>& certificate) {
  if (!certificate) return;
  const LikelihoodCertificate& c = *certificate;
  fmt::print("  quadratic form refined in {}, backward error {:.1e}\n",
             counted(c.refinement_steps, "step"), rounded_up(c.backward_error));
  if (std::isnan(c.log_determinant_remainder)) {
    fmt::print("  log determinant of the factor; how far it is off is not known\n");
    return;
  }
  fmt::print("  log determinant {} by {}\n",
             c.corrected ? fmt::format("corrected by {:.4g}", c.log_determinant_difference)
                         : "of the factor, certified",
             counted(c.probes, "probe"));
  fmt::print("  Kullback-Leibler divergence from FP64 {:.3g} ± {:.1g}\n", c.divergence,
             rounded_up(c.divergence_error, 1));
}

void print_certificate(const std::optional<PredictionCertificate>& certificate, bool relative) {
  if (!certificate) return;
  fmt::print(
      "  means refined in {}, backward error {:.1e}: within about {:.2g}; variances within "
      "about {:.2g}{}\n",
      counted(certificate->refinement_steps, "step"), rounded_up(certificate->backward_error),
      rounded_up(certificate->mean_error),
      rounded_up(relative ? 100 * certificate->variance_error : certificate->variance_error),
      relative ? " %" : "");
}

void add_precision_map(ReportData& report, const std::optional<MixedReport>& mixed,
                       std::string title) {
  if (!mixed || mixed->map.empty()) return;
  ReportPrecisionMap map;
  map.title = std::move(title);
  map.tiles = mixed->rows;
  for (const TilePrecision precision : mixed->map)
    map.elements.push_back(element_of_tile(precision));
  report.precision_maps.push_back(std::move(map));
}

}  // namespace strata::cli
