// Rates of a machine as JSON. See strata/calibrate.hpp.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/check.hpp"
#include "base/output_file.hpp"
#include "strata/calibrate.hpp"

namespace strata {
namespace {

using nlohmann::json;

json to_json(const LinkRate& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}};
}

/// simulate() divides by rates and adds times up: neither ends if they are not numbers.
double number_from(const json& j, const char* key, bool positive) {
  const auto value = j.at(key).get<double>();
  require(std::isfinite(value) && (positive ? value > 0 : value >= 0), ErrorKind::input, "machine",
          "{} is {}", key, value);
  return value;
}

LinkRate link_from(const json& j) {
  return {number_from(j, "bytes_per_second", true), number_from(j, "latency_seconds", false)};
}

DeviceModel device_from(const json& j) {
  DeviceModel device;
  device.name = j.at("name").get<std::string>();
  device.memory_bytes = j.at("memory_bytes").get<std::int64_t>();
  device.compute_queues = j.at("compute_queues").get<int>();
  device.host_to_device = link_from(j.at("host_to_device"));
  device.device_to_host = link_from(j.at("device_to_host"));
  device.flops_per_second_fp64 = number_from(j, "flops_per_second_fp64", false);
  device.flops_per_second_fp32 = number_from(j, "flops_per_second_fp32", false);
  for (const json& k : j.at("kernels")) {
    const bool single = k.at("precision").get<std::string>() == "fp32";
    device.kernels.push_back({k.at("operation").get<std::string>(),
                              single ? Precision::fp32 : Precision::fp64,
                              number_from(k, "flops", true), number_from(k, "seconds", true),
                              k.contains("share") ? number_from(k, "share", false) : 0.0});
  }
  return device;
}

}  // namespace

void write_machine(const std::string& path, const Machine& machine) {
  json devices = json::array();
  for (const DeviceModel& device : machine.devices) {
    json kernels = json::array();
    for (const KernelRate& k : device.kernels) {
      kernels.push_back({{"operation", k.operation},
                         {"precision", to_string(k.precision)},
                         {"flops", k.flops},
                         {"seconds", k.seconds},
                         {"share", k.share}});
    }
    devices.push_back({{"name", device.name},
                       {"memory_bytes", device.memory_bytes},
                       {"compute_queues", device.compute_queues},
                       {"host_to_device", to_json(device.host_to_device)},
                       {"device_to_host", to_json(device.device_to_host)},
                       {"flops_per_second_fp64", device.flops_per_second_fp64},
                       {"flops_per_second_fp32", device.flops_per_second_fp32},
                       {"kernels", kernels}});
  }
  const json file = {{"format", "strata machine 1"},
                     {"host_memory_bytes", machine.host_memory_bytes},
                     {"device_to_device", machine.device_to_device.bytes_per_second > 0
                                              ? to_json(machine.device_to_device)
                                              : json(nullptr)},
                     {"devices", devices}};
  replace_file(path, [&](std::ostream& out) { out << file.dump(1) << '\n'; });
}

Machine read_machine(const std::string& path) {
  std::ifstream in(path);
  require(in.good(), ErrorKind::input, "machine", "{}: cannot be read", path);
  std::ostringstream text;
  text << in.rdbuf();  // a directory opens, but reads as nothing
  try {
    const json file = json::parse(text.str());
    require(file.at("format") == "strata machine 1", ErrorKind::input, "machine",
            "is not a file of rates");
    Machine machine;
    machine.host_memory_bytes = file.at("host_memory_bytes").get<std::int64_t>();
    if (file.contains("device_to_device") && !file.at("device_to_device").is_null())
      machine.device_to_device = link_from(file.at("device_to_device"));
    for (const json& j : file.at("devices")) machine.devices.push_back(device_from(j));
    return machine;
  } catch (const json::exception&) {
    fail(ErrorKind::input, "machine", "{}: is not a file of rates", path);
  } catch (const Error& error) {
    fail(ErrorKind::input, "machine", "{}: {}", path, error.what());
  }
}

}  // namespace strata
