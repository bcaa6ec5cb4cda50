// Rates of a machine as JSON. See strata/calibrate.hpp.

#include <cmath>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"
#include "base/output_file.hpp"
#include "schedule/operation.hpp"
#include "strata/calibrate.hpp"

namespace strata {
namespace {

Json to_json(const LinkRate& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}};
}

/// A rate of 0 is none.
Json link_or_null(const LinkRate& link) {
  return link.bytes_per_second > 0 ? to_json(link) : Json(nullptr);
}

/// simulate() divides by rates and adds times up: neither ends if they are not numbers.
double number_from(const Json& j, const char* key, bool positive) {
  const auto value = j.at(key).get<double>();
  require(std::isfinite(value) && (positive ? value > 0 : value >= 0), ErrorKind::input, "machine",
          "{} is {}", key, value);
  return value;
}

LinkRate link_from(const Json& j) {
  return {number_from(j, "bytes_per_second", true), number_from(j, "latency_seconds", false)};
}

Element element_from(const std::string& name) {
  for (int e = 0; e < kElements; ++e) {
    if (to_string(static_cast<Element>(e)) == name) return static_cast<Element>(e);
  }
  fail(ErrorKind::input, "machine", "'{}' is no element", name);
}

DeviceModel device_from(const Json& j) {
  DeviceModel device;
  device.name = j.at("name").get<std::string>();
  device.kind = j.at("kind") == "cpu" ? DeviceKind::cpu : DeviceKind::gpu;
  device.memory_bytes = j.at("memory_bytes").get<std::int64_t>();
  device.compute_queues = j.at("compute_queues").get<int>();
  device.host_to_device = link_from(j.at("host_to_device"));
  device.device_to_host = link_from(j.at("device_to_host"));
  if (j.contains("staging") && !j.at("staging").is_null())
    device.staging = link_from(j.at("staging"));
  if (j.contains("bounce_buffers")) {
    device.bounce_buffers = j.at("bounce_buffers").get<int>();
    device.bounce_buffer_bytes = j.at("bounce_buffer_bytes").get<std::int64_t>();
    require(device.bounce_buffers > 0 && device.bounce_buffer_bytes > 0, ErrorKind::input,
            "machine", "{} bounce buffers of {} bytes", device.bounce_buffers,
            device.bounce_buffer_bytes);
  }
  for (const auto& [name, rate] : j.at("flops_per_second").items())
    device.rate(element_from(name)) = number_from(j.at("flops_per_second"), name.c_str(), false);
  for (const Json& k : j.at("kernels")) {
    KernelRate rate{k.at("operation").get<std::string>(),
                    {},
                    number_from(k, "flops", true),
                    number_from(k, "seconds", true),
                    k.contains("share") ? number_from(k, "share", false) : 0.0};
    for (const Json& name : k.at("elements"))
      rate.elements.push_back(element_from(name.get<std::string>()));
    require(!rate.elements.empty() && rate.elements.size() <= kOperandsMax, ErrorKind::input,
            "machine", "{} has {} operands", rate.operation, rate.elements.size());
    device.kernels.push_back(std::move(rate));
  }
  return device;
}

Json elements_of_rate(const KernelRate& rate) {
  Json names = Json::array();
  for (const Element element : rate.elements) names.push_back(to_string(element));
  return names;
}

Json rates_of(const DeviceModel& device) {
  Json rates = Json::object();
  for (int e = 0; e < kElements; ++e) {
    const auto element = static_cast<Element>(e);
    if (device.rate(element) > 0) rates[std::string(to_string(element))] = device.rate(element);
  }
  return rates;
}

}  // namespace

void write_machine(const std::string& path, const Machine& machine) {
  Json devices = Json::array();
  for (const DeviceModel& device : machine.devices) {
    Json kernels = Json::array();
    for (const KernelRate& k : device.kernels) {
      kernels.push_back({{"operation", k.operation},
                         {"elements", elements_of_rate(k)},
                         {"flops", k.flops},
                         {"seconds", k.seconds},
                         {"share", k.share}});
    }
    devices.push_back({{"name", device.name},
                       {"kind", device.kind == DeviceKind::cpu ? "cpu" : "gpu"},
                       {"memory_bytes", device.memory_bytes},
                       {"compute_queues", device.compute_queues},
                       {"host_to_device", to_json(device.host_to_device)},
                       {"device_to_host", to_json(device.device_to_host)},
                       {"staging", link_or_null(device.staging)},
                       {"bounce_buffers", device.bounce_buffers},
                       {"bounce_buffer_bytes", device.bounce_buffer_bytes},
                       {"flops_per_second", rates_of(device)},
                       {"kernels", kernels}});
  }
  const Json file = {{"format", "strata machine 2"},
                     {"host_memory_bytes", machine.host_memory_bytes},
                     {"device_to_device", link_or_null(machine.device_to_device)},
                     {"pinning_bytes_per_second", machine.pinning_bytes_per_second},
                     {"devices", devices},
                     {"storage", machine.storage ? Json{{"read", to_json(machine.storage->read)},
                                                        {"write", to_json(machine.storage->write)}}
                                                 : Json(nullptr)}};
  replace_file(path, [&](std::ostream& out) { out << file.dump(1) << '\n'; });
}

Machine read_machine(const std::string& path) {
  const std::string text = InputFile(path, "machine").read_all();
  try {
    const Json file = Json::parse(text);
    require(file.at("format") == "strata machine 2", ErrorKind::input, "machine",
            "is not a file of rates");
    Machine machine;
    machine.host_memory_bytes = file.at("host_memory_bytes").get<std::int64_t>();
    if (file.contains("device_to_device") && !file.at("device_to_device").is_null())
      machine.device_to_device = link_from(file.at("device_to_device"));
    if (file.contains("pinning_bytes_per_second"))
      machine.pinning_bytes_per_second = number_from(file, "pinning_bytes_per_second", false);
    if (file.contains("storage") && !file.at("storage").is_null()) {
      const Json& storage = file.at("storage");
      machine.storage = {link_from(storage.at("read")), link_from(storage.at("write")), 0};
    }
    for (const Json& j : file.at("devices")) machine.devices.push_back(device_from(j));
    return machine;
  } catch (const JsonError&) {
    fail(ErrorKind::input, "machine", "{}: is not a file of rates", path);
  } catch (const Error& error) {
    fail(ErrorKind::input, "machine", "{}: {}", path, error.what());
  }
}

}  // namespace strata
