#pragma once
// FrontFactor: the panels of a sparse factor in host memory, with the devices that make it.
//
// Contract: as strata/sparse_factor.hpp has it, in the order of elimination.

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/work_crew.hpp"
#include "run/resident_run.hpp"
#include "session/session.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/opened_sweeps.hpp"
#include "sparse/fronts/resident_sweeps.hpp"
#include "sparse/fronts/streamed_sweeps.hpp"
#include "sparse/ordering/entry_checks.hpp"
#include "store/memory_store.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {

/// The sizes that the options say, or those of CPUs, or of `gpu`s that do not hold all blocks. The
/// budget has no part in them.
[[nodiscard]] FrontSizes front_sizes(const SparseAnalysis& analysis,
                                     const SparseCholeskyOptions& options, bool gpu);

/// Sizes of a factor that stays on devices with all updates: unless sizes were given, the whole
/// tree is one branch, or, for several devices, ranges that are dealt to them; with `shares` the
/// devices may make large fronts together. resident_elements(): the elements that the factor then
/// has at least.
[[nodiscard]] FrontSizes resident_sizes(FrontSizes sizes, bool given, int devices = 1,
                                        bool shares = false);
[[nodiscard]] std::int64_t resident_elements(const SparseAnalysis& analysis);

/// Whether sizes were asked for.
[[nodiscard]] bool are_given(const SparseCholeskyOptions& options);

/// Whether a machine's devices are of one kind: all GPUs, or all CPUs. And whether one is a GPU.
[[nodiscard]] bool are_alike(const Machine& machine);
[[nodiscard]] bool has_gpu(const Machine& machine);

/// By which front_schedule() deals work: none where devices are alike, or one is not known.
[[nodiscard]] std::vector<double> front_rates(const Machine& machine, Element element);

/// The layout of a factor that stays on the machine's devices; null where they do not hold it, or
/// are not alike. `sizes` say what became of them. With `shares` these reach each other's memory:
/// they make large fronts together if each has room for all of such. A front that is too large for
/// a branch makes ranges of all (places_fit()), as where memory is short, so that bits are the
/// same.
[[nodiscard]] std::shared_ptr<const FrontLayout> resident_layout(
    const SparseAnalysis& analysis, const SparseMatrix& a, FrontSizes& sizes, bool given,
    Element element, const Machine& machine, bool shares = false);

/// The layout for devices on which not all stays: branches are smaller where those of `sizes` do
/// not fit, which changes no bit. On GPUs alone, unless sizes were `given`, ranges of the
/// postorder, of an analysis whose wide supernodes are split; the bits are those of a factor that
/// stays. `sizes` and `analysis` say what became of them.
[[nodiscard]] std::shared_ptr<const FrontLayout> fitting_layout(SparseAnalysis& analysis,
                                                                const SparseMatrix& a,
                                                                FrontSizes& sizes, bool given,
                                                                Element element,
                                                                const Machine& machine);

/// Plans the factorization. Throws Error{memory} for a budget that does not suffice.
[[nodiscard]] PlannedRun plan_fronts(const SparseAnalysis& analysis,
                                     std::shared_ptr<const FrontLayout> layout,
                                     const Machine& machine, const SparseCholeskyOptions& options);

/// The same for a layout that stays on the machine's devices; and how many queues for tasks each
/// has then.
[[nodiscard]] PlannedRun plan_resident(const SparseAnalysis& analysis,
                                       std::shared_ptr<const FrontLayout> layout,
                                       const Machine& machine,
                                       const SparseCholeskyOptions& options);
[[nodiscard]] int resident_queues(const SparseCholeskyOptions& options, int devices);

/// The layout that a factorization on a machine has.
struct MachineLayout {
  SparseAnalysis analysis;  ///< whose supernodes may have been split
  FrontSizes sizes{};
  std::shared_ptr<const FrontLayout> layout{};
  bool stays = false;
};
[[nodiscard]] MachineLayout layout_on(const SparseAnalysis& analysis, const SparseMatrix& a,
                                      const Machine& machine, const SparseCholeskyOptions& options);
/// What the first solve with a factor of this layout moves. `path` is empty where the host solves.
[[nodiscard]] RunReport plan_of_solve(const MachineLayout& there, const Machine& machine,
                                      std::int64_t columns, const SparseCholeskyOptions& options);

/// The same from the beginning: of the layout that a factorization on this machine would have.
[[nodiscard]] PlannedRun plan_factorization(const SparseAnalysis& analysis, const SparseMatrix& a,
                                            const Machine& machine,
                                            const SparseCholeskyOptions& options);

/// only(): a machine's devices of one kind. sooner_alone(): the kind of devices that is predicted
/// to factor as soon as GPUs and CPUs together; none if that is not so, or where all are alike.
/// GPUs by themselves have programs and keep what they made, while together they have panels and
/// tiles for the kernels of dense matrices, and L at home.
[[nodiscard]] Machine only(Machine machine, DeviceKind kind);
[[nodiscard]] std::optional<DeviceKind> sooner_alone(const SparseAnalysis& analysis,
                                                     const SparseMatrix& a, const Machine& machine,
                                                     const SparseCholeskyOptions& options);

/// What this process knows of one factor; SparseCholesky is its public face.
class FrontFactor {
 public:
  /// Nothing is planned, and no memory taken, before there is a matrix.
  FrontFactor(SparseAnalysis analysis, const SparseCholeskyOptions& options);
  /// The same with these sizes; `parts` are those of a SplitAnalysis, if it is one.
  FrontFactor(SparseAnalysis analysis, const SparseCholeskyOptions& options,
              const FrontSizes& sizes, std::span<const std::int32_t> parts = {});

  /// Factors A + shift·I; `a` has the pattern that was analyzed.
  void factor(const SparseMatrix& a, double shift);
  /// The same for new values in the place of those of the last matrix, of which nothing is asked;
  /// only for a factor that is resident(). In host memory or in that of the device.
  void factor_values(std::span<const double> values, double shift);

  /// Whether all blocks stay on the devices; L goes home when it is asked for.
  [[nodiscard]] bool resident() const noexcept { return resident_ != nullptr; }
  /// Whether solve_there() can be called: the tree is one branch, or ranges, in fp64.
  [[nodiscard]] bool solves_there() const noexcept;
  /// As ResidentSweeps::solve().
  void solve_there(MatrixView<double> b, bool forward, bool backward) const;
  /// The same for a factor in ranges that these devices made and that is at home, by its way
  /// through the first device; and by GPUs for one that was made elsewhere, by such, and adopted
  /// (OpenedSweeps). False if it is none, or a range beside one right-hand side is more than the
  /// budget: then B is as it was.
  [[nodiscard]] bool solve_streamed(MatrixView<double> b, bool forward, bool backward) const;
  /// What the last such solve did, with a factor that was made here.
  [[nodiscard]] const RunReport& streamed_report() const { return streamed_->report(); }
  /// Brings L home; to be called before panel(), tile() and bytes().
  void bring_home() const;
  /// Before entries of the inverse are made: updates that lie at home give their memory back.
  /// Throws Error{memory} for what was not planned and is beyond the options' bound.
  void begin_inverse() const;

  [[nodiscard]] const SparseAnalysis& analysis() const noexcept { return analysis_; }
  [[nodiscard]] const FrontLayout& layout() const noexcept { return *layout_; }
  /// first_bad_pivot in the numbering of A.
  [[nodiscard]] const FactorInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }
  /// What devices did since then for solves, and to bring L home; `path` is empty if nothing.
  [[nodiscard]] const RunReport& solves() const noexcept { return solves_; }
  [[nodiscard]] double shift() const noexcept { return shift_; }
  /// L is that of 2^(−exponent)·(A + shift·I); even, and 0 unless A is near the ends of the range.
  [[nodiscard]] int exponent() const noexcept { return exponent_; }
  [[nodiscard]] const FrontSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] Element element() const noexcept { return element_; }

  /// The panel of a supernode of a branch or of a panel unit: (w + r) × w. T is the C++ type of
  /// element().
  template <class T>
  [[nodiscard]] MatrixView<const T> panel(std::int32_t s) const;
  /// Tile (i, j) of a supernode that is cut into tiles.
  template <class T>
  [[nodiscard]] MatrixView<const T> tile(const FrontUnit& unit, std::int64_t i,
                                         std::int64_t j) const;
  [[nodiscard]] const FrontUnit& unit_of(std::int32_t s) const {
    return layout_->units[static_cast<std::size_t>(layout_->unit_of[static_cast<std::size_t>(s)])];
  }

  /// All panels, as they lie in memory, of numbers in element(); zeros where nothing lies.
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// Memory for the numbers of a factor that was saved; then, when they are there, what it is.
  /// Throws Error{memory}, also for what will be asked of it.
  void reserve();
  void adopt(const FactorInfo& info, double shift, int exponent = 0);

 private:
  void begin(std::span<const std::int32_t> parts = {});
  void check_home();
  void choose_sizes();
  void choose_devices(const SparseMatrix& a);
  void open_devices(const std::string& text);
  [[nodiscard]] RunOptions with_budget() const;
  void take_structure(const SparseMatrix& a);
  void read_statuses(const FamilyMemory& statuses);
  [[nodiscard]] bool take_resident(const SparseMatrix& a);
  [[nodiscard]] bool solve_opened(MatrixView<double> b, bool forward, bool backward) const;
  [[nodiscard]] PinnedRing& ring(int device = 0) const {
    return session_->devices().ring(device, 0);
  }
  [[nodiscard]] bool takes_raw_values() const;
  void run_resident(std::span<const double> values, const SparseMatrix* a);
  void load_raw_values(Queue& queue, std::byte* to, std::span<const double> values,
                       PinnedRing& to_device) const;
  /// Factors a matrix whose elements are in range.
  void run_factorization(const SparseMatrix& a);
  [[nodiscard]] MemoryStore store_of(std::shared_ptr<FamilyMemory> values,
                                     std::shared_ptr<FamilyMemory> status) const;
  template <class T>
  [[nodiscard]] double log_determinant() const;
  template <class T>
  void clear_gaps() const;

  SparseCholeskyOptions asked_;
  RunOptions options_;
  FrontSizes sizes_;
  Element element_;
  SparseAnalysis analysis_;
  std::optional<SparseAnalysis> whole_analysis_;  ///< where analysis_ has split supernodes
  std::shared_ptr<const FrontLayout> layout_;
  std::uint64_t arrangement_ = 0;  // of the entries of the matrix that was laid out: a hash
  std::unique_ptr<Session> session_;
  /// Looks at what callers bring.
  std::unique_ptr<WorkCrew> crew_ = std::make_unique<WorkCrew>(checking_threads() - 1);
  std::unique_ptr<ResidentRun> resident_;  // released before the devices
  bool given_sizes_ = false;
  bool sizes_of_caller_ = false;  // who knows what they are for
  bool one_triangle_ = false;     // A was given by one
  bool adopted_ = false;          // L was made elsewhere
  mutable std::shared_ptr<FamilyMemory> panels_;
  std::unique_ptr<FrontHomes> homes_;  // where it is planned; released before the devices
  /// Solves, and what brings L home, use one queue and one memory.
  std::unique_ptr<std::mutex> one_at_a_time_ = std::make_unique<std::mutex>();
  mutable bool at_home_ = true;                       // L, where it is resident
  mutable std::unique_ptr<ResidentSweeps> sweeps_;    // made when first needed
  mutable std::unique_ptr<StreamedSweeps> streamed_;  // likewise
  mutable std::unique_ptr<OpenedSweeps> opened_;      // likewise, of one that was adopted
  mutable bool opened_tried_ = false;
  FactorInfo info_;
  RunReport report_;
  mutable RunReport solves_;
  std::int64_t host_bytes_ = 0;              // that are planned, where no plan says so
  std::optional<double> predicted_seconds_;  // of a factorization, where it stays on its devices
  double shift_ = 0;
  int exponent_ = 0;
  double shift_in_range_ = 0;  ///< 2^(−exponent)·shift
};

/// Sweeps over a factor: X (n × m, rows in the order of elimination) ← L⁻¹·X, or L⁻ᵀ·X. T is the
/// C++ type of the factor's element, or double.
template <class T>
void sweep_forward(const FrontFactor& factor, MatrixView<T> x);
template <class T>
void sweep_backward(const FrontFactor& factor, MatrixView<T> x);

}  // namespace strata
