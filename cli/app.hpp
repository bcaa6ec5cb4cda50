#pragma once
// What the verbs of the command line share: common options, progress, JSON, exit statuses.
//
// Contract: verbs parse, call the public API and print. Exit status: 0 done, 1 the numbers said no,
// 2 usage, 3 environment or input, 130 cancelled. With --json one object goes to standard output
// and nothing else does; nor does text where a result goes there (-o /dev/stdout).

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "cli/command.hpp"
#include "strata/strata.hpp"

namespace strata::cli {

inline constexpr int kDone = 0;
inline constexpr int kNumbersSaidNo = 1;
inline constexpr int kUsage = 2;
inline constexpr int kEnvironment = 3;
inline constexpr int kCancelled = 130;

/// Options that every verb takes that runs or plans something.
struct CommonOptions {
  std::string devices = "auto";
  std::string device_memory;
  std::string host_memory;
  std::string policy = "opt";
  std::string path = "auto";
  std::string variant = "auto";
  std::string host_pinning = "auto";
  bool reproducible = false;
  std::string rates;
  std::string trace;
  std::string report;
  std::int64_t tile = 0;
  int threads = 0;
  std::uint64_t seed = 1;
  bool json = false;
  std::string command;                   ///< the whole command line, for the report
  std::vector<Option> of_factors;        ///< that only a factor takes, of every verb
  std::vector<Option> of_dense_factors;  ///< and only one of a dense matrix

  /// Which devices, their memory and queues, --json.
  void add_device_options(Command& app);
  /// Those with an effect on every run: devices, policy, rates, --trace, --report, --seed. For QR,
  /// least squares and Krylov methods.
  void add_run_options(Command& app);
  /// Those and what a factor takes: host memory and its pinning, tiles. For sparse factors.
  void add_factor_options(Command& app);
  /// All of them, for a verb that runs or plans a dense factorization.
  void add_to(Command& app);
  /// Library options, with progress on standard error (if that is a terminal) and cancellation by
  /// SIGINT. Throws Error{misuse, input} for what does not parse.
  [[nodiscard]] RunOptions run_options() const;
  [[nodiscard]] CholeskyOptions cholesky_options() const;
};

/// A verb: what runs when it was named on the command line; returns the exit status.
using Run = std::function<int()>;

void add_info(Command& app, CommonOptions& common, Run& run);
void add_plan(Command& app, CommonOptions& common, Run& run);
void add_solve(Command& app, CommonOptions& common, Run& run);
void add_inverse(Command& app, CommonOptions& common, Run& run);
void add_loglik(Command& app, CommonOptions& common, Run& run);
void add_fit(Command& app, CommonOptions& common, Run& run);
void add_predict(Command& app, CommonOptions& common, Run& run);
void add_variogram(Command& app, CommonOptions& common, Run& run);
void add_crossval(Command& app, CommonOptions& common, Run& run);
void add_kl(Command& app, CommonOptions& common, Run& run);
void add_simulate(Command& app, CommonOptions& common, Run& run);
void add_qr(Command& app, CommonOptions& common, Run& run);
void add_lstsq(Command& app, CommonOptions& common, Run& run);
void add_eigs(Command& app, CommonOptions& common, Run& run);
void add_analyze(Command& app, CommonOptions& common, Run& run);
void add_factor(Command& app, CommonOptions& common, Run& run);
void add_logdet(Command& app, CommonOptions& common, Run& run);
void add_schur(Command& app, CommonOptions& common, Run& run);
void add_shift(Command& app, CommonOptions& common, Run& run);
void add_variances(Command& app, CommonOptions& common, Run& run);
/// Names the verb in the help; its words are strata-bench's to read.
void add_bench(Command& app);
/// Whether the command line is that of strata bench.
[[nodiscard]] bool starts_bench(int argc, char** argv);
/// Becomes strata-bench, from the folder of this program or the PATH, with the words behind
/// "bench". Throws Error{input} where it is not installed.
int start_bench(char** argv);

/// strata plan sparse, below the verb `plan`.
void add_plan_sparse(Command& plan, CommonOptions& common, Run& run);

/// What LU takes of them, its panels in the place of tiles. Throws Error{misuse} for the in-core
/// path.
[[nodiscard]] LuOptions lu_options_of(const CholeskyOptions& options);

/// The machine that --devices names, a real one or "emulated:N", with the rates that were given.
[[nodiscard]] Machine machine_of(const CommonOptions& common, const RunOptions& options);

/// Accepts finite numbers above 0, or not below 0; the message names the text.
[[nodiscard]] Check positive_number();
[[nodiscard]] Check nonnegative_number();

/// "fp32", "complex128", "complex64"; else fp64.
[[nodiscard]] Element element_named(const std::string& name);

/// The directories of --storage. Throws Error{misuse} for an empty name, or one directory twice,
/// however it is spelled.
[[nodiscard]] std::vector<std::string> storage_directories(const std::vector<std::string>& names);

/// What the help of a verb ends with: commands that use it.
void add_examples(Command& verb, const std::vector<std::string>& commands);

/// The name of the first of these options that was on the command line; empty: none was.
[[nodiscard]] std::string first_given(const std::vector<Option>& options);
/// Throws Error{misuse} if one of these options was given, which `what` has no use for: "--method
/// tsqr: a method that does not look for …".
void refuse_given(const std::vector<Option>& options, const std::string& what);

// ---- interrupts

/// From here on SIGINT, SIGTERM and SIGHUP ask for an orderly end: the library's progress callback,
/// check_interrupt and files that are being written notice it. What has not ended a second later,
/// or 0.3 s while files are written, is ended, and so it is by a second signal. Either way files
/// are whole or absent.
void watch_interrupt();
/// Throws Error{cancelled} after such a signal; for stretches of work that tell no progress.
void check_interrupt();
/// The message of how the command ended is about to be written: what ends it at once says no more.
void note_told();
/// The last check_interrupt: from here on files are written.
void begin_output();
/// Behind files that were written: they stand, so that a signal that came too late for them changes
/// nothing (a second one still ends the process). begin_output() where there were none.
void continue_output();
/// Wipes the progress line.
void end_progress();

// ---- files

/// A file that was asked for, and the option that asked.
struct OutputPath {
  const char* option = "";
  std::string path;  ///< empty: not asked for
};

/// Throws before any work is done, and leaves nothing behind: Error{storage} if an output, --trace
/// and --report included, cannot be written; Error{misuse} if it would replace an input or another
/// output, or is standard output together with --json. finish() heeds an output that is standard
/// output.
void check_outputs(const CommonOptions& common, std::vector<OutputPath> outputs,
                   const std::vector<std::string>& inputs);
/// Whether a path ends in `suffix`, or in `suffix` and .gz.
[[nodiscard]] bool is_called(const std::string& path, std::string_view suffix);

// ---- JSON, with the field names of the command line contract

/// null if the value is not finite.
[[nodiscard]] Json number(double value);
[[nodiscard]] Json to_json(const FactorInfo& info);
[[nodiscard]] Json to_json(const Certificate& certificate);
/// variance, range, smoothness, nugget; distance, anisotropy and time where they are not the plain
/// ones.
[[nodiscard]] Json to_json(const MaternParameters& parameters);
[[nodiscard]] Json to_json(const Scores& scores, std::int64_t observations);
/// n, tile, path, policy, devices, tuning, seconds, flops, …, traffic, planned_traffic.
[[nodiscard]] Json to_json(const RunReport& report);

// ---- text

/// "1 place", "3 places".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun);
/// The least number of so many significant decimal digits that is not below `value`: an error, a
/// bound or a condition as it is printed holds as the one that was computed does.
[[nodiscard]] double rounded_up(double value, int digits = 2);
/// The table of planned and measured bytes beside the floor; only the plan's column if nothing ran.
void print_traffic(const RunReport& report, bool ran = true);
/// Writes --trace and --report if they were asked for, then prints the results: `object` with
/// --json, else what `print_text` prints and where the files are, on standard error if one of the
/// files is standard output. Returns kDone.
int finish(const CommonOptions& common, ReportData data, const Json& object,
           const std::function<void()>& print_text);

/// One line on standard error, "strata: " and why the numbers said no, and `object` if --json asks
/// for it; the exit status.
int report_failure(const CommonOptions& common, const std::string& why, const Json& object);
/// Where a Cholesky factorization failed.
struct FailedPlace {
  double diagonal = std::numeric_limits<double>::quiet_NaN();  ///< of A in that row; NaN: unknown
  std::int64_t n = 0;
  Element precision = Element::fp64;  ///< in which it was factored
};
/// "not positive definite", and that it is so to rounding where the pivot is no more than that
/// beside its diagonal element: then A may be positive definite all the same.
[[nodiscard]] std::string not_definite(const FactorInfo& info, const FailedPlace& place);
/// The same as report_failure() for a Cholesky factorization that failed.
int report_failed_factor(const CommonOptions& common, const FactorInfo& info, const Json& object,
                         const FailedPlace& place);

}  // namespace strata::cli
