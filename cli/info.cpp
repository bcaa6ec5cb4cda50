// strata info: version, backends, devices, kernel table, calibration.

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"
#include "cli/app.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/backend/blas_table.hpp"
#include "run/numa.hpp"

namespace strata::cli {
namespace {

struct InfoArguments {
  bool calibrate = false;
  std::string output;
  std::vector<std::int64_t> tiles;
  std::vector<std::string> storage;
};

/// The elements for which a backend has each operation, as text, in the order of its table.
std::vector<std::pair<std::string, std::vector<std::string>>> kernels_of(const Backend& backend) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kernels;
  for (const KernelTable::Entry& entry : backend.kernels().entries()) {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& known) {
      return known.first == entry.operation->name;
    });
    auto& of = found != kernels.end() ? *found
                                      : kernels.emplace_back(std::string(entry.operation->name),
                                                             std::vector<std::string>());
    of.second.push_back(to_string(entry.elements));
  }
  return kernels;
}

Json backend_json(const Backend& backend) {
  Json devices = Json::array();
  for (const DeviceDescription& d : backend.devices()) {
    const int node = NumaTopology::machine().node_of_pci(d.pci_bus_id);
    devices.push_back({{"name", d.name},
                       {"model", d.model},
                       {"memory_bytes", d.memory_bytes},
                       {"compute_queues", d.compute_queues},
                       {"numa_node", node == NumaTopology::kUnknown ? Json() : Json(node)}});
  }
  Json kernels = Json::object();
  for (const auto& [operation, elements] : kernels_of(backend)) kernels[operation] = elements;
  return {{"name", backend.name()}, {"devices", devices}, {"kernels", kernels}};
}

void print_backend(const Backend& backend) {
  fmt::print("\nbackend {}\n", backend.name());
  for (const DeviceDescription& d : backend.devices()) {
    const int node = NumaTopology::machine().node_of_pci(d.pci_bus_id);
    fmt::print("  {}: {}, {} free, {} compute queues{}\n", d.name, d.model,
               format_bytes(d.memory_bytes), d.compute_queues,
               node == NumaTopology::kUnknown ? "" : fmt::format(", NUMA node {}", node));
  }
  fmt::print("  kernels\n");
  for (const auto& [operation, elements] : kernels_of(backend))
    fmt::print("    {:22}{}\n", operation, fmt::join(elements, ", "));
}

/// The BLAS of the host, or why there is none.
Json blas_json() {
  try {
    const BlasDescription& about = host_blas().about;
    return {{"file", about.file},
            {"version", about.version},
            {"kernels", about.kernels},
            {"kernels_own", about.kernels_own},
            {"kernels_asked", about.kernels_asked},
            {"asked_by", about.asked_by_user ? "user" : "processor"},
            {"private", about.private_copy},
            {"why_shared", about.why_shared},
            {"threads", about.threads}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

std::string blas_kernels(const BlasDescription& about) {
  if (about.kernels_asked.empty()) return about.kernels + ", its own choice";
  if (about.asked_by_user)
    return fmt::format("{}; OPENBLAS_CORETYPE is {}", about.kernels, about.kernels_asked);
  return fmt::format("{}; {} asked for, by itself it takes {}", about.kernels, about.kernels_asked,
                     about.kernels_own);
}

void print_blas() {
  const auto row = [](const char* name, const std::string& value) {
    if (!value.empty()) fmt::print("    {:22}{}\n", name, value);
  };
  try {
    const BlasDescription& about = host_blas().about;
    fmt::print("  blas\n");
    row("file", about.file);
    row("version", about.version);
    if (!about.kernels.empty()) row("kernels", blas_kernels(about));
    row("instance", about.private_copy ? "private" : "shared with the process");
    row("why shared", about.why_shared);
    if (about.threads > 0) row("threads", fmt::format("{} a call", about.threads));
  } catch (const Error& error) {
    fmt::print("  blas: not available: {}\n", error.what());
  }
}

void print_rates(const Machine& machine) {
  for (const DeviceModel& device : machine.devices) {
    fmt::print("{}: {:.1f} GFLOP/s fp64, host to device {:.1f} GB/s, device to host {:.1f} GB/s\n",
               device.name, device.rate(Element::fp64) / 1e9,
               device.host_to_device.bytes_per_second / 1e9,
               device.device_to_host.bytes_per_second / 1e9);
  }
  if (machine.device_to_device.bytes_per_second > 0) {
    fmt::print("  device to device {:.1f} GB/s\n", machine.device_to_device.bytes_per_second / 1e9);
  }
  fmt::print("  on {}, one at a time\n", machine.devices.at(0).name);
  for (const KernelRate& k : machine.devices.at(0).kernels) {
    fmt::print("  {:22}{:>12.3f} ms{:>10.1f} GFLOP/s", k.operation, 1e3 * k.seconds,
               k.flops / k.seconds / 1e9);
    if (k.share > 0) fmt::print("   takes {:.0f} % of the device", 100 * k.share);
    fmt::print("\n");
  }
}

int run_calibrate(const InfoArguments& arguments, const CommonOptions& common) {
  std::vector<std::int64_t> tiles = arguments.tiles;
  const RunOptions options = common.run_options();
  check_outputs(common, {{"--output", arguments.output}}, {});
  if (tiles.empty()) {
    const Machine machine = detect_machine(common.devices);
    const bool gpu = machine.devices.at(0).kind == DeviceKind::gpu;
    tiles = gpu ? std::vector<std::int64_t>{512, 1024, 2048}
                : std::vector<std::int64_t>{64, 128, 256, 512};
  }
  Machine machine = calibrate(options, tiles);
  std::string how;
  if (!arguments.storage.empty()) machine.storage = calibrate_storage(arguments.storage, &how);
  begin_output();
  if (!arguments.output.empty()) write_machine(arguments.output, machine);
  const DeviceModel& d = machine.devices.at(0);
  Json rates = Json::array();
  for (const DeviceModel& device : machine.devices) rates.push_back(device.rate(Element::fp64));
  Json kernels = Json::array();
  for (const KernelRate& k : d.kernels)
    kernels.push_back({{"operation", k.operation}, {"flops", k.flops}, {"seconds", k.seconds}});
  Json object = {{"devices", common.devices},
                 {"flops_per_second", d.rate(Element::fp64)},
                 {"device_flops_per_second", rates},
                 {"host_to_device_bytes_per_second", d.host_to_device.bytes_per_second},
                 {"device_to_host_bytes_per_second", d.device_to_host.bytes_per_second},
                 {"device_to_device_bytes_per_second", machine.device_to_device.bytes_per_second},
                 {"staging_bytes_per_second", d.staging.bytes_per_second},
                 {"pinning_bytes_per_second", machine.pinning_bytes_per_second},
                 {"kernels", kernels}};
  if (machine.storage) {
    object["storage_read_bytes_per_second"] = machine.storage->read.bytes_per_second;
    object["storage_write_bytes_per_second"] = machine.storage->write.bytes_per_second;
    object["storage_io"] = how;
  }
  return finish(common, {}, object, [&] {
    print_rates(machine);
    if (machine.storage) {
      const StorageModel& storage = *machine.storage;
      fmt::print("storage: read {:.2f} GB/s, {:.0f} us; written {:.2f} GB/s, {:.0f} us\n  {}\n",
                 storage.read.bytes_per_second / 1e9, 1e6 * storage.read.latency_seconds,
                 storage.write.bytes_per_second / 1e9, 1e6 * storage.write.latency_seconds, how);
    }
    if (!arguments.output.empty()) fmt::print("rates written to {}\n", arguments.output);
  });
}

int run_info(const InfoArguments& arguments, const CommonOptions& common) {
  if (arguments.calibrate) return run_calibrate(arguments, common);
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  Json backends = Json::array({backend_json(host_backend())});
  if (cuda != nullptr) backends.push_back(backend_json(*cuda));
  const Json object = {{"version", STRATA_VERSION},
                       {"backends", backends},
                       {"blas", blas_json()},
                       {"cuda", cuda != nullptr ? Json("loaded") : Json(why)}};
  return finish(common, {}, object, [&] {
    fmt::print("strata {}\n", STRATA_VERSION);
    print_backend(host_backend());
    print_blas();
    if (cuda != nullptr) {
      print_backend(*cuda);
    } else {
      fmt::print("\nbackend cuda: not available: {}\n", why);
    }
  });
}

}  // namespace

void add_info(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "info", "version, backends, devices and kernels; --calibrate measures rates");
  add_examples(verb, {"strata info", "strata info --devices cuda:0 --calibrate -o rates.json"});
  auto arguments = std::make_shared<InfoArguments>();
  common.add_device_options(verb);
  Option calibrate =
      verb.add_flag("--calibrate", arguments->calibrate, "measure kernels and links");
  verb.add_option("-o,--output", arguments->output, "write the measured rates, for --rates")
      .needs(calibrate);
  verb.add_list("--tiles", arguments->tiles, "tile orders to measure, separated by commas")
      .check(positive_number())
      .needs(calibrate);
  verb.add_list("--storage", arguments->storage,
                "measure files in these directories, separated by commas, too")
      .needs(calibrate);
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_info(*arguments, common); };
  });
}

}  // namespace strata::cli
