// strata plan cholesky, lu and qr (strata plan sparse: sparse.cpp): what a run would do,
// before anything is allocated.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/stripe_options.hpp"
#include "schedule/machine_model.hpp"

namespace strata::cli {
namespace {

constexpr std::string_view kEmulated = "emulated:";

struct PlanArguments {
  std::int64_t n = 0;
  std::string precision = "fp64";
  bool generated = false;
  std::vector<std::string> storage;
  StripeArguments stripes;
};

/// A dense factorization that can be planned.
struct DensePlan {
  const char* name;   ///< the verb
  const char* title;  ///< "a Cholesky"
  const char* tile;   ///< what a tile is called
  RunReport (*simulate)(const PlanArguments& arguments, const Machine& machine,
                        const CholeskyOptions& options, Element element);
};
constexpr DensePlan kCholeskyPlan{"cholesky", "a Cholesky", "tile",
                                  [](const PlanArguments& arguments, const Machine& machine,
                                     const CholeskyOptions& options, Element element) {
                                    return simulate_cholesky(arguments.n, machine, options, element,
                                                             arguments.generated);
                                  }};
constexpr DensePlan kLuPlan{"lu", "an LU", "panel",
                            [](const PlanArguments& arguments, const Machine& machine,
                               const CholeskyOptions& options, Element element) {
                              if (auto stripes = arguments.stripes.options()) {
                                stripes->run = options.run;
                                return simulate_stripes(arguments.n, machine, *stripes, element);
                              }
                              return simulate_lu(arguments.n, machine, lu_options_of(options),
                                                 element);
                            }};

/// N equal devices with round, made-up rates, and all the host memory that is wanted unless
/// --host-memory says less.
Machine emulated_machine(const std::string& devices, const RunOptions& options) {
  const std::string count = devices.substr(kEmulated.size());
  const bool is_number = !count.empty() && count.size() <= 2 &&
                         count.find_first_not_of("0123456789") == std::string::npos;
  const int number = is_number ? std::stoi(count) : 0;
  require(number >= 1 && number <= 64, ErrorKind::misuse, "devices",
          "'{}': emulated:N takes 1 to 64 devices", devices);
  require(options.device_memory_bytes > 0, ErrorKind::misuse, "devices",
          "'{}' needs --device-memory", devices);
  Machine machine = Machine::emulated(number, options.device_memory_bytes);
  require(!options.storage.used() || options.host_memory_bytes > 0, ErrorKind::misuse, "devices",
          "'{}' beside storage needs --host-memory", devices);
  if (options.host_memory_bytes == 0)
    machine.host_memory_bytes = std::numeric_limits<std::int64_t>::max();
  return machine;
}

/// `tile`: what a tile is called.
void print_plan(const RunReport& report, const char* name, const char* tile, bool measured_rates) {
  fmt::print("{} of order {}, {} ({}) of {}, {}, {} {}, policy {}\n", name, report.n,
             counted(std::ssize(report.devices), "device"), fmt::join(report.devices, ", "),
             counted(report.compute_queues, "queue"), report.path, tile, report.tile,
             report.policy);
  print_traffic(report, false);
  fmt::print("  {:18}{:>14} on each device\n", "peak memory",
             format_bytes(report.peak_device_bytes));
  fmt::print("  {:18}{:>14} for the factor\n", "host memory", format_bytes(report.host_bytes));
  fmt::print("  {:18}{:>14.3g} in {} tasks\n", "flops", report.flops, report.tasks);
  if (report.predicted_seconds) {
    const double seconds = *report.predicted_seconds;
    fmt::print("  {:18}{:>12.3g} s ({:.1f} GFLOP/s{})\n", "predicted", seconds,
               seconds > 0 ? report.flops / seconds / 1e9 : 0,
               measured_rates ? "" : "; nominal rates, see strata info --calibrate");
  }
  fmt::print("  {:18}{:>12.3g} s\n", "planning took", report.plan_seconds);
}

int run_plan(const PlanArguments& arguments, const DensePlan& what, const CommonOptions& common) {
  CholeskyOptions options = common.cholesky_options();
  options.run.storage.directories = storage_directories(arguments.storage);
  check_outputs(common, {}, {common.rates});
  const Element element = element_named(arguments.precision);
  const RunReport report =
      what.simulate(arguments, machine_of(common, options.run), options, element);
  const char* tile = arguments.stripes.order.empty() ? what.tile : "stripe";
  ReportData data;
  data.title = fmt::format("Plan of {} factorization of order {}", what.title, report.n);
  data.subtitle = fmt::format("{}, {} {}, policy {}", counted(std::ssize(report.devices), "device"),
                              tile, report.tile, report.policy);
  data.run = report;
  data.simulated = true;
  return finish(common, std::move(data), to_json(report),
                [&] { print_plan(report, what.name, tile, options.run.rates.has_value()); });
}

struct PlanQrArguments {
  double m = 0;
  std::int64_t n = 0;
  double condition = 1;
  bool r_only = false;
  std::string precision = "fp64";
};

void print_qr_plan(const QrPlan& plan, std::int64_t m, bool measured_rates) {
  const RunReport& report = plan.report;
  fmt::print("qr of {} by {}, {} ({}), blocks of {} rows, policy {}\n", m, report.n,
             counted(std::ssize(report.devices), "device"), fmt::join(report.devices, ", "),
             report.tile, report.policy);
  print_traffic(report, false);
  fmt::print("  {:18}{:>14} on each device\n", "peak memory",
             format_bytes(report.peak_device_bytes));
  fmt::print("  {:18}{:>14.3g} in {} tasks\n", "flops", report.flops, report.tasks);
  if (report.predicted_seconds)
    fmt::print("  {:18}{:>12.3g} s{}\n", "predicted", *report.predicted_seconds,
               measured_rates ? "" : " (nominal rates, see strata info --calibrate)");
  for (std::size_t i = 0; i < plan.passes.size(); ++i) {
    const QrPass& pass = plan.passes[i];
    fmt::print("  {:18}{}: {} to devices, {} back, {:.3g} s\n", fmt::format("pass {}", i + 1),
               pass.what, format_bytes(pass.traffic.host_to_device_bytes),
               format_bytes(pass.traffic.device_to_host_bytes), pass.predicted_seconds);
  }
  fmt::print("  {:18}{:>12.3g} s\n", "planning took", report.plan_seconds);
}

int run_plan_qr(const PlanQrArguments& arguments, const CommonOptions& common) {
  QrOptions options;
  options.run = common.run_options();
  check_outputs(common, {}, {common.rates});
  require(arguments.m >= 1 && arguments.m <= 1e15 && arguments.m == std::floor(arguments.m),
          ErrorKind::misuse, "options", "--m {} is not a number of rows", arguments.m);
  const auto m = static_cast<std::int64_t>(arguments.m);
  const Element element = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  const auto simulate = arguments.r_only ? simulate_qr_r : simulate_qr;
  const QrPlan plan = simulate(m, arguments.n, machine_of(common, options.run), options, element,
                               arguments.condition);
  const RunReport& report = plan.report;
  ReportData data;
  data.title = fmt::format("Plan of a QR factorization of a {} by {} matrix", m, report.n);
  data.subtitle =
      fmt::format("{}, policy {}", counted(std::ssize(report.devices), "device"), report.policy);
  data.run = report;
  data.simulated = true;
  Json object = to_json(report);
  object["rows"] = m;
  object["cols"] = arguments.n;
  object["method"] = to_string(QrMethod::automatic);
  for (const QrPass& pass : plan.passes)
    object["passes"].push_back({{"what", pass.what},
                                {"host_to_device_bytes", pass.traffic.host_to_device_bytes},
                                {"device_to_host_bytes", pass.traffic.device_to_host_bytes},
                                {"predicted_seconds", pass.predicted_seconds}});
  return finish(common, std::move(data), object,
                [&] { print_qr_plan(plan, m, options.run.rates.has_value()); });
}

void add_plan_qr(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand("qr", "QR of a tall matrix, by the automatic method");
  auto arguments = std::make_shared<PlanQrArguments>();
  common.add_run_options(algorithm);
  add_examples(algorithm,
               {"strata plan qr --m 1e8 --n 30 --devices emulated:1 --device-memory 64GiB"});
  algorithm.get_option("--devices")
      .description("auto, host:N, cuda:I,J, or emulated:N for N GPUs that need not exist");
  algorithm.add_option("--m", arguments->m, "rows, e.g. 1e8").required();
  algorithm.add_option("--n", arguments->n, "columns").required().check(nonnegative_number());
  algorithm.add_flag("--r-only", arguments->r_only, "of strata qr --r-only");
  algorithm
      .add_option("--condition", arguments->condition,
                  "of V with columns of length 1: says how many passes there are")
      .capture_default_str();
  algorithm.add_option("--precision", arguments->precision, "fp64 or fp32")
      .check(one_of({"fp64", "fp32"}));
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_plan_qr(*arguments, common); };
  });
}

/// Options of a plan of a dense factorization.
void add_dense_plan(Command& algorithm, const DensePlan& what, CommonOptions& common,
                    const std::shared_ptr<PlanArguments>& arguments, Run& run) {
  common.add_to(algorithm);
  algorithm.get_option("--devices")
      .description("auto, host:N, cuda:I,J, or emulated:N for N GPUs that need not exist");
  algorithm.add_option("--n", arguments->n, "order of the matrix")
      .required()
      .check(nonnegative_number());
  algorithm.add_list(
      "--storage", arguments->storage,
      "of a factor that rests in files: directories, separated by commas, which need "
      "not exist; a disk each, unless --rates knows");
  algorithm.callback([&run, &common, &what, arguments] {
    run = [&common, &what, arguments] { return run_plan(*arguments, what, common); };
  });
}

void add_precision(Command& algorithm, PlanArguments& arguments, const char* help) {
  algorithm.add_option("--precision", arguments.precision, help)
      .check(one_of({"fp64", "fp32", "complex128", "complex64"}));
}

void add_plan_lu(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand("lu", "dense LU with partial pivoting, by panels");
  add_examples(algorithm, {"strata plan lu --n 100000 --devices host:2 --device-memory 16GiB",
                           "strata plan lu --n 100000 --devices host:2 --device-memory 4GiB "
                           "--host-memory 32GiB --storage /disk --order meta-zigzag:2"});
  auto arguments = std::make_shared<PlanArguments>();
  add_dense_plan(algorithm, kLuPlan, common, arguments, run);
  add_precision(algorithm, *arguments, "fp64, fp32, complex128 or complex64");
  arguments->stripes.add_to(algorithm);
}

}  // namespace

Machine machine_of(const CommonOptions& common, const RunOptions& options) {
  const bool emulated = common.devices.rfind(kEmulated, 0) == 0;
  Machine machine = emulated ? emulated_machine(common.devices, options)
                             : detect_machine(common.devices, options.device_memory_bytes);
  if (options.rates && options.rates->device_to_device.bytes_per_second > 0)
    machine.device_to_device = options.rates->device_to_device;
  for (std::size_t d = 0; d < machine.devices.size(); ++d) {
    DeviceModel& device = machine.devices[d];
    if (options.compute_queues > 0) device.compute_queues = options.compute_queues;
    if (!options.rates || options.rates->devices.empty()) continue;
    // Devices that need not exist are like those that were measured, in turn.
    const DeviceModel* of_name = emulated ? nullptr : measured_model(*options.rates, device);
    DeviceModel measured =
        of_name != nullptr ? *of_name : options.rates->devices[d % options.rates->devices.size()];
    measured.name = device.name;
    measured.memory_bytes = device.memory_bytes;
    if (emulated || options.compute_queues > 0) measured.compute_queues = device.compute_queues;
    device = std::move(measured);
  }
  if (options.storage.used()) add_storage(machine, options);
  return machine;
}

void add_plan(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("plan", "what a run would do: bytes, floor, memory, seconds");
  verb.require_subcommand();
  add_examples(verb, {"strata plan cholesky --n 1000000 --devices emulated:4 --device-memory 64GiB",
                      "strata plan sparse A.mtx", "strata plan qr --m 1e8 --n 30"});
  Command algorithm = verb.add_subcommand("cholesky", "dense tile Cholesky");
  add_examples(
      algorithm,
      {"strata plan cholesky --n 1000000 --tile 8192 --devices emulated:4 --device-memory 64GiB"});
  auto arguments = std::make_shared<PlanArguments>();
  add_dense_plan(algorithm, kCholeskyPlan, common, arguments, run);
  add_precision(algorithm, *arguments, "fp64, fp32, complex128 or complex64 (a Hermitian matrix)");
  algorithm.add_flag("--generated", arguments->generated,
                     "the matrix is a covariance, generated on the devices");
  add_plan_lu(verb, common, run);
  add_plan_qr(verb, common, run);
  add_plan_sparse(verb, common, run);
}

}  // namespace strata::cli
