#pragma once
// The options of mixed precision, and how what became of them is told.
//
// Contract: as app.hpp has it for verbs.

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"

namespace strata::cli {

struct PrecisionArguments {
  double accuracy = 0;
  std::string rule = "factor";
  std::string product = "target";
  std::string precisions = "fp64,fp32,fp16,fp8";
  std::string order;
  std::vector<std::string> storage;
  bool keep_all = false;
  bool no_guard = false;
  int probes = 32;
  bool no_certificate = false;

  void add_to(Command& app);
  /// The options of probes, for verbs that estimate a log-determinant: how many, or
  /// --no-certificate.
  void add_probes_to(Command& app, bool certificate);
  /// The options of `common` with these; the seed of the probes is --seed. Throws Error{misuse} for
  /// names and an accuracy that do not exist, and for options that say nothing without --accuracy.
  [[nodiscard]] CovarianceOptions to_options(const CommonOptions& common) const;
};

[[nodiscard]] Json to_json(const MixedReport& mixed);
/// Share of the products of tiles that are not done, 0 to 1.
[[nodiscard]] double share_left_out(const MixedReport& mixed);
/// The certificate of a likelihood that has one.
[[nodiscard]] Json certificate_json(const Likelihood& likelihood);
[[nodiscard]] Json to_json(const PredictionCertificate& certificate);

/// " ± 1.2e-09"; what is not known is said, too.
[[nodiscard]] std::string error_text(double error);

/// Which accuracy was asked for and used, why, and in which precisions tiles and products are.
void print_mixed(const std::optional<MixedReport>& mixed);
void print_certificate(const std::optional<LikelihoodCertificate>& certificate);
/// `relative`: its variance_error is.
void print_certificate(const std::optional<PredictionCertificate>& certificate,
                       bool relative = false);

/// Draws the precisions of L.
void add_precision_map(ReportData& report, const std::optional<MixedReport>& mixed,
                       std::string title = "L");

}  // namespace strata::cli
