// What the verbs say: JSON, text, the files of --trace and --report, and whether they can be
// written.

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/precision.hpp"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

Json traffic_json(const Traffic& traffic) {
  return {{"host_to_device_bytes", traffic.host_to_device_bytes},
          {"device_to_host_bytes", traffic.device_to_host_bytes},
          {"device_to_device_bytes", traffic.device_to_device_bytes},
          {"storage_read_bytes", traffic.storage_read_bytes},
          {"storage_write_bytes", traffic.storage_write_bytes}};
}

void print_json(const Json& object) { fmt::print("{}\n", object.dump(2)); }

void write_page(const CommonOptions& common, ReportData data) {
  data.command = common.command;
  data.date = fmt::format(
      "{:%Y-%m-%d %H:%M}",
      fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  if (!common.device_memory.empty())
    data.device_memory_bytes = parse_bytes(common.device_memory, "--device-memory");
  write_report(common.report, data);
}

/// Files are renamed into place, so what counts is the folder; a pipe or a device is written as it
/// is.
void check_writable(const OutputPath& output) {
  const auto check = [&output](bool fine, int error) {
    require(fine, ErrorKind::storage, "cli", "{}: cannot write '{}': {}", output.option,
            output.path, std::strerror(error));
  };
  require(output.path != "-", ErrorKind::misuse, "cli",
          "{} '-': results go to files, which appear when they are whole; a file of this name is "
          "./-, and a pipe or device such as /dev/stdout is written as it is",
          output.option);
  struct stat status {};
  const bool exists = ::stat(output.path.c_str(), &status) == 0;
  check(exists || errno == ENOENT, errno);
  check(!exists || !S_ISDIR(status.st_mode), EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    check(::access(output.path.c_str(), W_OK) == 0, errno);
    return;
  }
  fs::path folder = fs::path(output.path).parent_path();
  if (folder.empty()) folder = ".";
  check(::access(folder.c_str(), W_OK | X_OK) == 0, errno);
}

/// A result was asked for where standard output goes. A null device is read by nobody.
bool results_on_standard_output = false;

bool is_standard_output(const std::string& path) {
  struct stat out {};
  struct stat file {};
  if (::fstat(STDOUT_FILENO, &out) != 0 || ::stat(path.c_str(), &file) != 0) return false;
  struct stat null {};
  const bool discards =
      S_ISCHR(out.st_mode) && ::stat("/dev/null", &null) == 0 && out.st_rdev == null.st_rdev;
  return !discards && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

/// Text on standard error: behind results on standard output it would be taken for some of them.
/// Where there is no standard error, it is left out.
void print_beside_results(const std::function<void()>& print_text) {
  std::fflush(stdout);
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return;
  print_text();
  std::fflush(stdout);  // before what a verb says on standard error
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return fs::is_regular_file(a, error);
  return fs::absolute(a, error).lexically_normal() == fs::absolute(b, error).lexically_normal() &&
         !fs::exists(a, error);
}

}  // namespace

bool is_called(const std::string& path, std::string_view suffix) {
  std::string_view stem = path;
  if (stem.ends_with(".gz")) stem.remove_suffix(3);
  return stem.ends_with(suffix);
}

void check_outputs(const CommonOptions& common, std::vector<OutputPath> outputs,
                   const std::vector<std::string>& inputs) {
  outputs.push_back({"--trace", common.trace});
  outputs.push_back({"--report", common.report});
  std::erase_if(outputs, [](const OutputPath& output) { return output.path.empty(); });
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const std::string& input : inputs) {
      require(!same_file(outputs[i].path, input), ErrorKind::misuse, "cli",
              "{} would replace the input '{}'", outputs[i].option, input);
    }
    for (std::size_t j = 0; j < i; ++j) {
      require(!same_file(outputs[i].path, outputs[j].path), ErrorKind::misuse, "cli",
              "{} and {} are the same file '{}'", outputs[j].option, outputs[i].option,
              outputs[i].path);
    }
    check_writable(outputs[i]);
    if (!is_standard_output(outputs[i].path)) continue;
    require(!common.json, ErrorKind::misuse, "cli",
            "{} '{}' is standard output, where the object of --json goes: one of them has to go "
            "elsewhere",
            outputs[i].option, outputs[i].path);
    results_on_standard_output = true;
  }
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const FactorInfo& info) {
  Json j = {{"ok", info.ok},
            {"first_bad_pivot", info.first_bad_pivot},
            {"log_determinant", info.ok ? number(info.log_determinant) : Json(nullptr)}};
  if (!info.ok) j["bad_pivot"] = number(info.bad_pivot);
  return j;
}

Json to_json(const Certificate& certificate) {
  return {{"backward_error", number(certificate.backward_error)},
          {"componentwise_backward_error", number(certificate.componentwise_backward_error)},
          {"scaled_condition", number(certificate.scaled_condition)},
          {"forward_error", number(certificate.forward_error)},
          {"refinement_steps", certificate.refinement_steps},
          {"precision", to_string(certificate.precision)},
          {"bytes_moved", certificate.bytes_moved},
          {"seconds", certificate.seconds}};
}

Json to_json(const MaternParameters& parameters) {
  Json object = {{"variance", number(parameters.variance)},
                 {"range", number(parameters.range)},
                 {"smoothness", number(parameters.smoothness)},
                 {"nugget", number(parameters.nugget)}};
  const Separation& s = parameters.separation;
  if (s.distance == Distance::great_circle) object["distance"] = "great-circle";
  if (s.anisotropy_ratio != 1) {
    object["anisotropy"] = {{"ratio", s.anisotropy_ratio}, {"angle", s.anisotropy_angle}};
  }
  if (s.time) {
    object["time"] = {{"scale", s.time->scale},
                      {"smoothness", s.time->smoothness},
                      {"interaction", s.time->interaction}};
  }
  return object;
}

Json to_json(const Scores& scores, std::int64_t observations) {
  return {{"observations", observations},
          {"rmse", number(scores.rmse)},
          {"mae", number(scores.mae)},
          {"crps", number(scores.crps)},
          {"coverage95", number(scores.coverage95)}};
}

Json to_json(const RunReport& report) {
  Json planned = traffic_json(report.planned_traffic);
  planned["floor_bytes"] = report.planned_traffic.floor_bytes;
  const double seconds = report.seconds > 0 ? report.seconds : report.predicted_seconds.value_or(0);
  Json object{{"n", report.n},
              {"tile", report.tile},
              {"path", report.path},
              {"policy", report.policy},
              {"devices", report.devices},
              {"compute_queues", report.compute_queues},
              {"tuning", report.tuning},
              {"seconds", report.seconds},
              {"plan_seconds", report.plan_seconds},
              {"pinning_seconds", report.pinning_seconds},
              {"pinned_bytes", report.pinned_bytes},
              {"flops", report.flops},
              {"flops_per_second", seconds > 0 ? report.flops / seconds : 0.0},
              {"tasks", report.tasks},
              {"peak_device_bytes", report.peak_device_bytes},
              {"host_bytes", report.host_bytes},
              {"traffic", traffic_json(report.traffic)},
              {"planned_traffic", planned}};
  if (!report.storage.empty()) object["storage_io"] = report.storage;
  if (report.mixed) object["mixed"] = to_json(*report.mixed);
  if (report.predicted_seconds) object["predicted_seconds"] = *report.predicted_seconds;
  return object;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

double rounded_up(double value, int digits) {
  if (!(value > 0) || !std::isfinite(value)) return value;
  // Near the ends of the range a decimal number is 0 or infinite, which std::stod throws for.
  const auto number_of = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  const double nearest = number_of(text);
  if (nearest >= value) return nearest;
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  const double step = number_of(fmt::format("1e{}", exponent - digits + 1));
  return number_of(fmt::format("{:.{}e}", nearest + step, digits - 1));
}

void print_traffic(const RunReport& report, bool ran) {
  const auto row = [&](const char* link, std::int64_t planned, std::int64_t measured) {
    if (planned == 0 && measured == 0) return;
    if (!ran) return fmt::print("  {:18}{:>14}\n", link, format_bytes(planned));
    fmt::print(
        "  {:18}{:>14}{:>14}   {}\n", link, format_bytes(planned), format_bytes(measured),
        planned == measured ? "equal" : fmt::format("DIFFER by {} bytes", measured - planned));
  };
  const PlannedTraffic& planned = report.planned_traffic;
  const Traffic& measured = report.traffic;
  fmt::print("  {:18}{:>14}{}\n", "link", "planned", ran ? fmt::format("{:>14}", "measured") : "");
  row("host to device", planned.host_to_device_bytes, measured.host_to_device_bytes);
  row("device to host", planned.device_to_host_bytes, measured.device_to_host_bytes);
  row("device to device", planned.device_to_device_bytes, measured.device_to_device_bytes);
  row("storage to host", planned.storage_read_bytes, measured.storage_read_bytes);
  row("host to storage", planned.storage_write_bytes, measured.storage_write_bytes);
  row("total", planned.total(), measured.total());
  if (planned.floor_bytes > 0) {
    const double ratio =
        static_cast<double>(planned.total()) / static_cast<double>(planned.floor_bytes);
    fmt::print("  {:18}{:>14}   bytes over the floor: {:.2f}\n", "floor",
               format_bytes(planned.floor_bytes), ratio);
  }
  if (!report.storage.empty()) fmt::print("  {:18}{}\n", "storage", report.storage);
  if (report.pinned_bytes > 0) {
    fmt::print("  {:18}{:>14}   of host memory, in {:.3g} s\n", "pinned",
               format_bytes(report.pinned_bytes), report.pinning_seconds);
  }
}

int finish(const CommonOptions& common, ReportData data, const Json& object,
           const std::function<void()>& print_text) {
  continue_output();
  const bool trace = !common.trace.empty() && data.run;
  if (trace) write_chrome_trace(data.run->trace, common.trace);
  if (!common.report.empty()) write_page(common, std::move(data));
  if (common.json) {
    print_json(object);
    return kDone;
  }
  const auto print_all = [&] {
    print_text();
    if (trace) fmt::print("trace written to {}\n", common.trace);
    if (!common.report.empty()) fmt::print("report written to {}\n", common.report);
  };
  results_on_standard_output ? print_beside_results(print_all) : print_all();
  return kDone;
}

int report_failure(const CommonOptions& common, const std::string& why, const Json& object) {
  end_progress();
  if (common.json) print_json(object);
  fmt::print(stderr, "strata: {}\n", why);
  return kNumbersSaidNo;
}

std::string not_definite(const FactorInfo& info, const FailedPlace& place) {
  const double u = element_of_parts(place.precision) == Element::fp32 ? 0x1p-24 : 0x1p-53;
  // Elements are rounded to that precision first, and n products are taken off the last pivot.
  const double rounding = static_cast<double>(place.n + 2) * u * place.diagonal;
  return std::abs(info.bad_pivot) <= rounding ? "not positive definite to rounding"
                                              : "not positive definite";
}

int report_failed_factor(const CommonOptions& common, const FactorInfo& info, const Json& object,
                         const FailedPlace& place) {
  const bool no_number = std::isnan(info.bad_pivot);
  return report_failure(
      common,
      no_number ? fmt::format("the matrix holds or produced a NaN: pivot {} is NaN, counted from 0",
                              info.first_bad_pivot)
                : fmt::format("the matrix is {}: pivot {} is {:.6g}, counted from 0",
                              not_definite(info, place), info.first_bad_pivot, info.bad_pivot),
      object);
}

}  // namespace strata::cli
