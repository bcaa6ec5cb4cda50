// Options that the verbs share, progress and interrupts.

#include "cli/app.hpp"

#include <fmt/core.h>

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <set>
#include <string_view>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/pending_path.hpp"
#include "cholesky/planning.hpp"
#include "run/host_pinner.hpp"
#include "run/potrf_tuning.hpp"
#include "session/policy.hpp"

namespace strata::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;
volatile std::sig_atomic_t writing = 0;
volatile std::sig_atomic_t written = 0;
volatile std::sig_atomic_t progress_shown = 0;
volatile std::sig_atomic_t told = 0;

/// How long an orderly end may take, of work and of writing files.
constexpr long kPatienceMicroseconds = 999'999;
constexpr long kPatienceOfWritingMicroseconds = 300'000;

void end_at_once() {
  remove_pending_paths();
  constexpr std::string_view kWipe = "\r\033[K";
  constexpr std::string_view kText = "strata: cancelled\n";
  ssize_t ignored = 0;
  if (progress_shown != 0) ignored = ::write(STDERR_FILENO, kWipe.data(), kWipe.size());
  if (told == 0) ignored += ::write(STDERR_FILENO, kText.data(), kText.size());
  static_cast<void>(ignored);
  _exit(kCancelled);
}

extern "C" void on_interrupt(int) {
  if (interrupted != 0) end_at_once();
  interrupted = 1;
  if (written != 0) return;
  itimerval timer{};
  timer.it_value.tv_usec = writing != 0 ? kPatienceOfWritingMicroseconds : kPatienceMicroseconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

extern "C" void on_alarm(int) { end_at_once(); }

Check number_validator(bool zero_allowed) {
  return Check(
      [zero_allowed](std::string& text) {
        double value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, status] = std::from_chars(text.data(), end, value);
        const bool fine = status == std::errc{} && rest == end && std::isfinite(value) &&
                          (value > 0 || (zero_allowed && value == 0));
        return fine ? std::string()
                    : fmt::format("'{}' is not a number {} 0", text,
                                  zero_allowed ? "of at least" : "above");
      },
      zero_allowed ? ">= 0" : "> 0");
}

/// "auto" is 0 to the library.
Check tile_order() {
  return Check(
      [](std::string& text) {
        if (text != "auto") return positive_number()(text);
        text = "0";
        return std::string();
      },
      "auto or > 0");
}

void show_progress(const Progress& progress) {
  static std::chrono::steady_clock::time_point last;
  const auto now = std::chrono::steady_clock::now();
  if (now - last < std::chrono::milliseconds(200) || progress.total <= 0 || progress.seconds < 0.5)
    return;
  last = now;
  const double share = std::min(1.0, progress.done / progress.total);
  constexpr int kWidth = 30;
  const auto filled = static_cast<std::size_t>(share * kWidth);
  const std::string_view what(progress.what);
  const std::string rate =
      what == "fit"       ? fmt::format("{:.0f} evaluations", progress.done)
      : what == "predict" ? fmt::format("{:.0f} targets/s", progress.done / progress.seconds)
                          : fmt::format("{:.1f} GFLOP/s", progress.done / progress.seconds / 1e9);
  const double left = share > 0 ? progress.seconds * (1 - share) / share : 0;
  const std::string eta = what != "fit" ? fmt::format(", {:.0f} s left", left) : "";
  fmt::print(stderr, "\r\033[K{:9} [{}{}] {:3.0f} %  {}{}", progress.what, std::string(filled, '='),
             std::string(kWidth - filled, ' '), 100 * share, rate, eta);
  std::fflush(stderr);
  progress_shown = 1;
}

}  // namespace

Check positive_number() { return number_validator(false); }
Check nonnegative_number() { return number_validator(true); }

void add_examples(Command& verb, const std::vector<std::string>& commands) {
  std::string text = "Examples:";
  for (const std::string& command : commands) text += "\n  " + command;
  verb.footer(text);
}

std::string first_given(const std::vector<Option>& options) {
  const auto given = std::find_if(options.begin(), options.end(),
                                  [](const Option& option) { return option.given(); });
  return given == options.end() ? "" : given->name();
}

Element element_named(const std::string& name) {
  for (const Element element : {Element::fp32, Element::complex128, Element::complex64})
    if (name == to_string(element)) return element;
  return Element::fp64;
}

std::vector<std::string> storage_directories(const std::vector<std::string>& names) {
  std::set<std::filesystem::path> places;
  for (const std::string& name : names) {
    require(!name.empty(), ErrorKind::misuse, "options", "--storage: a directory has no name");
    std::error_code error;
    // What does not exist yet stays relative in a canonical path.
    std::filesystem::path place = std::filesystem::absolute(name, error);
    if (!error) place = std::filesystem::weakly_canonical(place, error);
    if (error) place = std::filesystem::path(name).lexically_normal();
    if (!place.has_filename()) place = place.parent_path();
    require(places.insert(place).second, ErrorKind::misuse, "options",
            "--storage: '{}' is a directory that is named twice", name);
  }
  return names;
}

void refuse_given(const std::vector<Option>& options, const std::string& what) {
  const std::string given = first_given(options);
  require(given.empty(), ErrorKind::misuse, "options", "{} {}", given, what);
}

void watch_interrupt() {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  for (const int signal : {SIGTERM, SIGHUP}) {  // which nohup ignores
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  }
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of writing
  stop_writing_when([] { return interrupted != 0; });
}

void note_told() { told = 1; }

void check_interrupt() {
  if (interrupted != 0) throw Error(ErrorKind::cancelled, "cli", "cancelled");
}

void begin_output() {
  writing = 1;
  end_progress();
  check_interrupt();
}

void continue_output() {
  if (writing == 0) return begin_output();
  written = 1;
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  interrupted = 0;
}

void end_progress() {
  if (progress_shown != 0) fmt::print(stderr, "\r\033[K");
  progress_shown = 0;
}

void CommonOptions::add_device_options(Command& app) {
  app.add_option("--devices", devices, "auto, host:N (N bounded CPU devices) or cuda:I,J")
      .capture_default_str();
  app.add_option("--device-memory", device_memory,
                 "budget of each device, e.g. 512MiB (default: what is free)");
  app.add_option("--threads", threads, "compute queues of a device (default: as predicted fastest)")
      .check(in_range(1, 16));
  app.add_flag("--json", json, "print one JSON object");
}

void CommonOptions::add_run_options(Command& app) {
  add_device_options(app);
  app.add_option("--policy", policy,
                 "how device memory is managed: sync, async, v1, v2, v3, opt or idle")
      .capture_default_str();
  app.add_option("--rates", rates,
                 "rates measured by 'strata info --calibrate -o', for predictions");
  app.add_option("--trace", trace, "write the timeline in Chrome's trace format");
  app.add_option("--report", report, "write a self-contained HTML page");
  app.add_option("--seed", seed, "of every random choice")
      .check(nonnegative_number())
      .capture_default_str();
}

void CommonOptions::add_factor_options(Command& app) {
  add_run_options(app);
  const auto keep = [this](Option option) { of_factors.push_back(option); };
  keep(app.add_option(
      "--host-memory", host_memory,
      "bound on what a run holds in host memory, e.g. 64GiB (default: what is free)"));
  keep(app.add_option("--tile", tile,
                      "order of a tile, or auto: the one that is predicted to be fastest")
           .transform(tile_order())
           .default_str("auto"));
  keep(app.add_option("--host-pinning", host_pinning,
                      "when the factor's host memory is pinned for GPUs: auto, ahead (of the run), "
                      "background or never")
           .capture_default_str());
}

void CommonOptions::add_to(Command& app) {
  add_factor_options(app);
  const auto keep = [this](Option option) { of_dense_factors.push_back(option); };
  keep(app.add_option("--path", path,
                      "auto, in-core (the whole matrix on one device, or an error) or planned")
           .capture_default_str());
  keep(app.add_option("--variant", variant,
                      "of the factorization on a GPU: auto, fused, left or right")
           .capture_default_str());
  keep(app.add_flag(
      "--reproducible", reproducible,
      "the planned path, its tile by n and the kind of device, no tuning file: the same "
      "bits whatever the memory, the number of devices and the rates"));
}

RunOptions CommonOptions::run_options() const {
  RunOptions options;
  options.devices = devices;
  if (!device_memory.empty())
    options.device_memory_bytes = parse_bytes(device_memory, "--device-memory");
  if (!host_memory.empty()) options.host_memory_bytes = parse_bytes(host_memory, "--host-memory");
  options.policy = parse_policy(policy);
  options.host_pinning = parse_host_pinning(host_pinning);
  options.compute_queues = threads;
  if (!rates.empty()) options.rates = read_machine(rates);
  options.progress = [terminal = isatty(STDERR_FILENO) != 0](const Progress& progress) {
    if (terminal) show_progress(progress);
    return interrupted == 0;
  };
  return options;
}

CholeskyOptions CommonOptions::cholesky_options() const {
  CholeskyOptions options{.run = run_options(), .tile = tile, .path = parse_path(path)};
  if (reproducible) {
    require(options.path != CholeskyPath::in_core, ErrorKind::misuse, "cli",
            "--reproducible is the planned path: it excludes --path {}", path);
    options.path = CholeskyPath::planned;
  }
  options.blocking.variant = parse_variant(variant);
  return options;
}

LuOptions lu_options_of(const CholeskyOptions& options) {
  require(options.path != CholeskyPath::in_core, ErrorKind::misuse, "options",
          "LU has no in-core path: it is for Cholesky factors");
  return {.run = options.run,
          .panel = options.tile,
          .reproducible = options.path == CholeskyPath::planned};
}

}  // namespace strata::cli
