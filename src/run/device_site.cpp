#include "run/device_site.hpp"

#include <unistd.h>

#include <algorithm>
#include <complex>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "run/device_set.hpp"

namespace strata {
namespace {

/// What is asked of a driver once. Never destroyed: it may be gone before the destructors of static
/// objects run.
struct Sites {
  std::mutex mutex;
  std::map<const Backend*, int> counts;  // of devices
  std::map<std::pair<const Backend*, int>, DeviceSite> sites;
};

/// Ends the sites of CPUs with the process: a leak checker does not always see what threads hold
/// that run to its very end. A process forked from this one has no such threads to wait for.
class EndOfHostSites {
 public:
  explicit EndOfHostSites(Sites& all) : all_(all) {}
  EndOfHostSites(const EndOfHostSites&) = delete;
  EndOfHostSites& operator=(const EndOfHostSites&) = delete;
  ~EndOfHostSites() {
    if (getpid() != process_) return;
    const std::lock_guard lock(all_.mutex);
    for (auto at = all_.sites.begin(); at != all_.sites.end();)
      at = can_end(at->second) ? all_.sites.erase(at) : std::next(at);
  }

 private:
  [[nodiscard]] static bool can_end(DeviceSite& site) {
    if (site.backend != &host_backend()) return false;
    const std::unique_lock idle(site.mutex, std::try_to_lock);
    return idle.owns_lock();  // else some thread is in a call still
  }

  Sites& all_;
  pid_t process_ = getpid();
};

Sites& all_sites() {
  static Sites& sites = *std::make_unique<Sites>().release();
  static const EndOfHostSites end(sites);
  return sites;
}

int count_of(const Backend& backend) {
  Sites& all = all_sites();
  const std::lock_guard lock(all.mutex);
  const auto [known, fresh] = all.counts.try_emplace(&backend, 0);
  if (fresh) known->second = static_cast<int>(backend.devices().size());
  return known->second;
}

DeviceSite& site_of(const Backend& backend, int index) {
  Sites& all = all_sites();
  const std::lock_guard lock(all.mutex);
  DeviceSite& site = all.sites[{&backend, index}];
  if (site.queue != nullptr) return site;
  site.backend = &backend;
  site.index = index;
  site.device = backend.make_device(index, 0);
  site.tuning = potrf_tuning_of(backend, index);
  site.queue = site.device->make_queue(QueuePriority::normal);
  return site;
}

bool lies_on(const Backend& backend, int index, const PlacedMatrix& a) {
  return a.bytes == 0 || backend.reaches(index, a.data, a.bytes);
}

bool names_devices(const std::string& text) { return text != "auto" && !text.empty(); }

/// The backend that a text names, and the indices of which one has to hold the matrices, or one
/// each of `count` matrices.
std::pair<const Backend*, std::vector<int>> candidates_of(const std::string& text,
                                                          std::size_t count) {
  if (names_devices(text)) {
    DeviceChoice choice = choose_devices(text);
    const Backend& backend = backend_named(choice.backend, text);
    require(choice.indices.size() == count || count > 1, ErrorKind::misuse, "devices",
            "'{}' names {} devices: a matrix lies on one", text, choice.indices.size());
    require(choice.indices.size() == count, ErrorKind::misuse, "devices",
            "'{}' names {} devices for {} parts of a matrix", text, choice.indices.size(), count);
    for (const int index : choice.indices)
      require(backend.kind() == DeviceKind::cpu || index < count_of(backend), ErrorKind::device,
              "devices", "there is no device {}:{}: this machine has {}", choice.backend, index,
              count_of(backend));
    return {&backend, std::move(choice.indices)};
  }
  const Backend* cuda = cuda_backend();
  const Backend& backend = cuda != nullptr ? *cuda : host_backend();
  std::vector<int> indices(static_cast<std::size_t>(count_of(backend)));
  std::iota(indices.begin(), indices.end(), 0);
  return {&backend, std::move(indices)};
}

void require_on(const Backend& backend, int index, const PlacedMatrix& a, const char* what) {
  require(lies_on(backend, index, a), ErrorKind::misuse, what,
          "the matrix of {} by {} at {} is not in memory of {}:{}: a host pointer, or another "
          "device's",
          a.rows, a.cols, a.data, backend.name(), index);
}

}  // namespace

Queue& DeviceSite::queue_at(int i) {
  if (i == 0) return *queue;
  while (std::ssize(further_) < i) further_.push_back(device->make_queue(QueuePriority::normal));
  return *further_[static_cast<std::size_t>(i - 1)];
}

std::byte* DeviceSite::Place::at_least(std::int64_t bytes, const DeviceSite& site) {
  if (buffer.bytes() < bytes) {
    buffer = {};
    lender = site.backend->make_device(site.index, bytes);
    buffer = lender->allocate(bytes);
  }
  return buffer.data();
}

std::byte* DeviceSite::staging(std::int64_t bytes) {
  if (staging_.bytes() < bytes) {
    const std::int64_t more = std::max(bytes, 2 * staging_.bytes());
    staging_ = {};
    staging_ = device->allocate_host(more);
  }
  return staging_.data();
}

template <class T>
PlacedMatrix placed(MatrixView<T> a, const char* what) {
  require(a.ld >= std::max<std::int64_t>(a.rows, 1), ErrorKind::misuse, what,
          "a leading dimension of {} is too small for {} rows", a.ld, a.rows);
  require(a.data != nullptr || a.size() == 0, ErrorKind::misuse, what,
          "the {} by {} matrix has no data", a.rows, a.cols);
  require(reinterpret_cast<std::uintptr_t>(a.data) % sizeof(T) == 0, ErrorKind::misuse, what,
          "the matrix at {} is not aligned to its elements of {} bytes",
          static_cast<const void*>(a.data), sizeof(T));
  constexpr auto kBytesMax = std::numeric_limits<std::int64_t>::max() / 2;
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(T));
  require(a.size() == 0 || a.ld <= kBytesMax / kElement / a.cols, ErrorKind::misuse, what,
          "no memory holds {} columns of {} elements", a.cols, a.ld);
  return {a.data, a.rows, a.cols, a.size() == 0 ? 0 : ((a.cols - 1) * a.ld + a.rows) * kElement};
}

#define STRATA_PLACED(T)                                    \
  template PlacedMatrix placed(MatrixView<T>, const char*); \
  template PlacedMatrix placed(MatrixView<const T>, const char*);
STRATA_PLACED(double)
STRATA_PLACED(float)
STRATA_PLACED(std::complex<double>)
STRATA_PLACED(std::complex<float>)
STRATA_PLACED(std::int64_t)
#undef STRATA_PLACED

KernelFunction kernel_of(const Backend& backend, const Operation& operation,
                         const Elements& elements, const char* what) {
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  require(kernel != nullptr, ErrorKind::device, what, "{} has no {} in {}", backend.name(),
          operation.name, to_string(elements[0]));
  return kernel;
}

DeviceSite& choose_site(const std::string& text, std::span<const PlacedMatrix> matrices,
                        const char* what) {
  const auto [backend, indices] = candidates_of(text, 1);
  const auto first = std::find_if(matrices.begin(), matrices.end(),
                                  [](const PlacedMatrix& a) { return a.bytes > 0; });
  int index = indices[0];
  for (const int i : indices) {
    if (first == matrices.end() || !lies_on(*backend, i, *first)) continue;
    index = i;
    break;
  }
  for (const PlacedMatrix& a : matrices) require_on(*backend, index, a, what);
  return site_of(*backend, index);
}

std::vector<DeviceSite*> choose_sites(const std::string& text,
                                      std::span<const PlacedMatrix> matrices, const char* what) {
  const auto candidates = candidates_of(text, matrices.size());
  const Backend* backend = candidates.first;
  const std::vector<int>& indices = candidates.second;
  const auto is_taken = [](const std::vector<int>& chosen, int index) {
    return std::find(chosen.begin(), chosen.end(), index) != chosen.end();
  };
  std::vector<int> chosen;
  for (std::size_t i = 0; i < matrices.size() && names_devices(text); ++i) {
    require_on(*backend, indices[i], matrices[i], what);
    require(!is_taken(chosen, indices[i]), ErrorKind::misuse, what,
            "'{}' names {}:{} twice: parts of a matrix are on a device each", text, backend->name(),
            indices[i]);
    chosen.push_back(indices[i]);
  }
  if (!names_devices(text)) {
    chosen.assign(matrices.size(), -1);
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      if (matrices[i].bytes == 0) continue;
      const auto holds = [&](int index) { return lies_on(*backend, index, matrices[i]); };
      const auto at = std::find_if(indices.begin(), indices.end(), holds);
      require_on(*backend, at == indices.end() ? indices[0] : *at, matrices[i], what);
      require(!is_taken(chosen, *at), ErrorKind::misuse, what,
              "two parts of a matrix are in the memory of {}:{}: each has to be on a device of its "
              "own",
              backend->name(), *at);
      chosen[i] = *at;
    }
    for (int& index : chosen) {  // of parts without elements
      const auto idle = [&](int i) { return !is_taken(chosen, i); };
      if (index >= 0) continue;
      const auto at = std::find_if(indices.begin(), indices.end(), idle);
      require(at != indices.end(), ErrorKind::misuse, what, "{} parts for {} devices",
              matrices.size(), indices.size());
      index = *at;
    }
  }
  std::vector<DeviceSite*> sites;
  for (const int index : chosen) sites.push_back(&site_of(*backend, index));
  return sites;
}

}  // namespace strata
