#pragma once
// What a caller may choose about a run, and what a run tells afterwards.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strata/machine.hpp"
#include "strata/mixed_precision.hpp"
#include "strata/trace.hpp"

namespace strata {

struct Progress {
  double done = 0;   ///< work done so far, in the unit of `total`
  double total = 0;  ///< work of the whole run: floating-point operations, or evaluations of a fit
  double seconds = 0;     ///< since the run began
  const char* what = "";  ///< "factor", "solve", "fit", "predict"
};

/// Called now and then from the calling thread; returning false cancels: Error{cancelled} is
/// thrown.
using ProgressCallback = std::function<bool(const Progress&)>;

/// When the host memory of a factor is pinned, from which a GPU copies at full speed. What is not
/// pinned travels through a small ring of pinned memory, which takes time of the CPU's cores.
enum class HostPinning : std::uint8_t {
  automatic,   ///< `ahead` for a factor that is small, else `background`
  ahead,       ///< before the run; Error{memory} if the system refuses
  background,  ///< beside the run, as far as the system allows
  never,
};

class FileSystem;  // private to the library

/// Files in which a factor rests that host memory need not hold. With them
/// RunOptions::host_memory_bytes is what host memory takes of it at a time, 0: half of what is
/// free.
struct StorageChoice {
  /// On as many disks as possible; made where they do not exist. Empty: it rests in host memory.
  std::vector<std::string> directories{};
  /// Goes on from what a run that did not end has left in them, if there is any, to the same bits.
  bool resume = false;
  /// For what is whole: its directories may be read-only, and others may read them meanwhile.
  bool to_read = false;
  FileSystem* files = nullptr;  ///< null: the system's; tests lose the power of others

  [[nodiscard]] bool used() const noexcept { return !directories.empty(); }
};

/// What concerns a run, whatever is computed: every method's options have it as their member `run`.
struct RunOptions {
  /// "auto", "host", "host:2", "cuda:0,1"; parts joined by "+": "cuda:0+host:1".
  std::string devices = "auto";
  std::int64_t device_memory_bytes = 0;  ///< budget of each device; 0: what is free
  /// Bound on what a run keeps in host memory: the factor, updates, coordinates; 0: what is free.
  std::int64_t host_memory_bytes = 0;
  /// Where a factor rests that host memory does not hold, by factor_general() and cholesky(). Files
  /// of a covariance's factor are temporary, and there are none where host memory holds it.
  StorageChoice storage{};
  Policy policy = Policy::opt;
  HostPinning host_pinning = HostPinning::automatic;  ///< for GPUs
  int compute_queues = 0;                             ///< a device; 0: as predicted to be fastest
  std::optional<Machine> rates{};                     ///< calibrated rates for prediction
  ProgressCallback progress{};
};

/// The traffic a plan promises, beside the least that any schedule could move.
struct PlannedTraffic : Traffic {
  /// I/O lower bound of Cholesky (Beaumont, Eyraud-Dubois, Vérité, Langou 2022) plus one read and
  /// one write of the triangle.
  std::int64_t floor_bytes = 0;
};

/// What a mixed factorization did with what was asked for.
struct MixedReport {
  double accuracy_asked = 0;
  /// With which the factor was made: finer than what was asked for where the guard said so, or
  /// after a factorization that failed; 0: in FP64.
  double accuracy = 0;
  std::string note;  ///< why it is not the one that was asked for; else empty
  /// Tiles below the diagonal and, in products of whole tiles, products that update tiles, by
  /// TilePrecision.
  std::array<std::int64_t, kTilePrecisions> tiles{};
  std::array<double, kTilePrecisions> products{};
  /// Tiles that turned out larger than the pilot had said, and factorizations that were done again
  /// for that, for an overflow or for a failed pivot.
  std::int64_t raised_tiles = 0;
  int retries = 0;
  double pilot_seconds = 0;
  /// How far L̃L̃ᵀ is from A, as random vectors x of signs show it: the largest
  /// ‖L̃⁻¹Ax‖² − xᵀAx in units of accuracy·‖A‖_F. NaN if the factor ended in FP64.
  double probe = std::numeric_limits<double>::quiet_NaN();
  double probe_seconds = 0;  ///< of all probes; each generates A once more
  /// Rows of tiles, and of the tiles of the lower triangle, column by column, the precision.
  std::int64_t rows = 0;
  std::vector<TilePrecision> map;
};

/// What one or several planned runs did.
struct RunReport {
  std::int64_t n = 0;
  std::int64_t tile = 0;
  std::string path;    ///< "in-core", "planned", "in place" or "resident" (sparse, on GPUs)
  std::string policy;  ///< with the order that was chosen: "opt super_tile(4)"
  std::vector<std::string> devices;
  int compute_queues = 0;  ///< of each device
  /// The tuning file that the run followed, the path and a checksum of its bytes; "ignored" on the
  /// planned path of GPUs, "none" if there is none or nothing that reads it.
  std::string tuning = "none";
  double seconds = 0;       ///< of running
  double plan_seconds = 0;  ///< of planning, with the search for a tile
  /// Time spent on pinning the factor's host memory, by the end of the run; pinning in the
  /// background is not part of `seconds`.
  double pinning_seconds = 0;
  std::int64_t pinned_bytes = 0;  ///< of the factor's host memory, by the end of the run
  /// What simulate() said before the run; of several, the sum. Absent where nothing was planned, as
  /// in the report of a run that has not been.
  std::optional<double> predicted_seconds;
  double flops = 0;
  std::int64_t tasks = 0;
  std::int64_t peak_device_bytes = 0;  ///< the largest over the devices
  /// Host memory of the factor, with the statuses of its diagonal tiles and the coordinates of
  /// points.
  std::int64_t host_bytes = 0;
  /// Where a factor in storage rests and how its files are read and written: "/disk1, /disk2:
  /// io_uring, O_DIRECT"; empty: it rests in host memory.
  std::string storage;
  Traffic traffic;
  PlannedTraffic planned_traffic;
  std::optional<MixedReport> mixed;  ///< of a factorization with CovarianceOptions::mixed
  Trace trace;
};

}  // namespace strata
