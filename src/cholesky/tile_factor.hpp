#pragma once
// TileFactor: a Cholesky factor in packed tiles in host memory or in storage, with the devices that
// made it.
//
// Contract: what CholeskyFactor and CovarianceSolver share. `factor` may be called again with other
// values. What a run leaves on the devices (tiles of the factor, coordinates) is where the next one
// starts (Session). Not thread-safe.

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cholesky/covariance_product.hpp"
#include "cholesky/lanczos_step.hpp"
#include "cholesky/planning.hpp"
#include "cholesky/stored_tiles.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/tile_norm.hpp"
#include "kernels/dense/tile_scales.hpp"
#include "run/host_pinner.hpp"
#include "session/session.hpp"
#include "store/memory_store.hpp"
#include "strata/cholesky.hpp"

namespace strata {

/// Operands and results of sum_whitened(), column-major with ld = their rows.
struct TargetChunk {
  const double* points = nullptr;   ///< n × d
  const double* targets = nullptr;  ///< targets × d
  const double* right = nullptr;    ///< R, n × columns of `products`
  const CovarianceParameters* parameters = nullptr;
  std::int64_t tile = 1;        ///< targets of a block
  MatrixView<double> products;  ///< Wᵀ·R
  double* squares = nullptr;    ///< of the lengths of the columns of W
};

/// Operands and result of multiply_covariance().
struct CovarianceTimes {
  const double* points = nullptr;  ///< n × d, ld = n
  const CovarianceParameters* parameters = nullptr;
  MatrixView<const double> v;  ///< n × r
  MatrixView<double> y;        ///< Σ·V, nugget included; may be v
};

/// Says to a problem that uses the factor of another what it has to know of it.
template <class Use>
void describe_factor(const CholeskyProblem& factor, Use& use) {
  use.n = factor.n;
  use.tile = factor.tile;
  use.precision = factor.precision;
  use.formats = factor.formats;
  use.devices = factor.devices;
  use.rates = factor.rates;
  use.factor_identity = factor.factor_identity;
  use.points_identity = factor.points_identity;
  use.point_dimensions = factor.point_dimensions;
}

class TileFactor {
 public:
  /// `problem.tile` and `problem.devices` are filled in from the options. Throws Error{memory} when
  /// the host cannot hold the factor or a device budget does not suffice. With options.run.storage
  /// tiles rest in files: temporary ones, or durable ones of `matrix`.
  TileFactor(CholeskyProblem problem, const CholeskyOptions& options,
             const StoredMatrix& matrix = {});
  /// On these devices; options.run.devices is not read.
  TileFactor(CholeskyProblem problem, const CholeskyOptions& options,
             std::shared_ptr<DeviceSet> devices, const StoredMatrix& matrix = {});
  TileFactor(TileFactor&&) = default;
  TileFactor& operator=(TileFactor&&) = delete;  // would let go of memory that is being pinned

  [[nodiscard]] const CholeskyProblem& problem() const noexcept { return problem_; }
  /// Session::new_identity().
  [[nodiscard]] std::uint64_t new_identity() const noexcept { return session_.new_identity(); }
  [[nodiscard]] const FactorInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

  /// Factors the stored matrix that `source` provides.
  const FactorInfo& factor_stored(BlockSource source);
  /// The same in two halves, for timing: evaluates the source into host memory with `threads`
  /// threads, and factors what is there.
  void load(BlockSource source, int threads);
  const FactorInfo& factor_loaded();
  /// Factors the covariance of `points` (n × d, column-major, alive during the call).
  const FactorInfo& factor_covariance(const double* points, const CovarianceParameters& parameters);

  /// Takes what rests in storage. Throws Error{storage} unless it is whole.
  void adopt_stored();
  /// Where it rests in storage, as StoredParts has it.
  [[nodiscard]] StoredParts stored_count() const;
  /// Tiles that a run before had left in storage.
  [[nodiscard]] std::int64_t stored_tiles_done() const noexcept {
    return stored_ == nullptr ? 0 : stored_->tiles_done();
  }

  /// How large each tile of a mixed factorization was before it was rounded, in the order of
  /// TileNorms::at; zeros for diagonal tiles and for those that are left out or were not reached.
  [[nodiscard]] std::vector<TileNorm> measured_norms() const;
  /// The same of the blocks of this order of a factor in fp64, whose tiles they divide, as the
  /// devices find them in its tiles. Those on the diagonal tell their least pivot.
  [[nodiscard]] std::vector<TileNorm> block_norms(std::int64_t order);

  /// Forgets the factor, so that the devices are free for another.
  void let_go();
  /// min L_ii².
  [[nodiscard]] double smallest_pivot();

  /// B ← L⁻¹·B, L⁻ᵀ·B, both, −L·B or −Lᵀ·B, n × nrhs. T is the factor's type.
  template <class T>
  RunReport sweep(Sweep direction, MatrixView<T> b);
  /// With W = L⁻¹·C(points, targets), for a chunk of targets: what whitened_sums() adds up.
  RunReport sum_whitened(const TargetChunk& chunk, const ProgressCallback& progress);
  /// The squared lengths of columns first … first + squares.size() − 1 of L⁻¹, in blocks of
  /// `column_tile` columns, of which `first` is a multiple.
  RunReport sum_inverse(std::int64_t first, std::int64_t column_tile, std::span<double> squares,
                        const ProgressCallback& progress);
  /// How `targets` targets are cut into such chunks.
  [[nodiscard]] TargetChunks target_chunks(std::int64_t targets, std::int64_t columns,
                                           std::int64_t chunk) const;
  /// Room on the devices for that many targets, so that the factor need not make way for them.
  void reserve_for_targets(std::int64_t targets, std::int64_t columns);

  /// Y ← Σ·V, of the covariance of these points, whether or not it was factored.
  RunReport multiply_covariance(const CovarianceTimes& operands);

  /// How Lanczos is done on the devices of the factor, with so many vectors and at most so many
  /// steps.
  [[nodiscard]] LanczosProblem lanczos_problem(std::int64_t vectors, int steps_max) const;
  /// Runs a step: `families` are those of `schedule` behind the factor. `narrower` as in
  /// SessionRun.
  RunReport step_lanczos(std::shared_ptr<const Schedule> schedule,
                         std::shared_ptr<const Schedule> narrower,
                         const std::vector<std::shared_ptr<FamilyMemory>>& families,
                         const CovarianceParameters& parameters);
  /// Where blocks that stay on the devices have their home, until they are forgotten.
  void keep(std::uint64_t identity, std::shared_ptr<FamilyMemory> home) {
    (*homes_)[identity] = std::move(home);
  }
  void forget(std::uint64_t identity) {
    session_.devices().forget(identity);
    homes_->erase(identity);
  }

  /// L·(Lᵀ·v) in fp64, for checking a factor of any precision.
  [[nodiscard]] std::vector<double> multiply(const std::vector<double>& v);

  /// Copies L out of its tiles; zero above the diagonal.
  template <class T>
  void copy_lower(MatrixView<T> out);
  /// Columns first … first + out.cols − 1 of it, in fp64. Throws Error{misuse} without a factor or
  /// for other columns.
  void copy_columns(std::int64_t first, MatrixView<double> out);

 private:
  /// Tiles that are only on the devices go home. What a mixed factorization leaves there stays
  /// until it is asked for here.
  void bring_home();
  const FactorInfo& factor(MemoryStore& store, std::vector<OperationValues> values);
  /// The memory of the tiles as it is now.
  [[nodiscard]] FamilyHome home_of_tiles() const;
  void rest_in_storage(const StoredMatrix& matrix);
  template <class Run>
  void with_tiles(MemoryStore& memory, const Run& run);
  /// A tile as it is at home, packed; in `memory` where it rests in storage.
  [[nodiscard]] std::byte* tile_at_home(BlockId id, std::vector<std::byte>& memory) const;
  [[nodiscard]] const BlockTable& blocks() const noexcept {
    return session_.adopted().plan->schedule().blocks;
  }
  [[nodiscard]] SolveProblem solve_problem(std::int64_t rhs) const;
  [[nodiscard]] WhitenedProblem whitened_problem(std::int64_t targets, std::int64_t columns) const;
  /// For `columns` columns of V, or as many of them as go at once.
  [[nodiscard]] ProductProblem product_problem(std::int64_t columns) const;
  void multiply_columns(const ProductProblem& problem, const CovarianceTimes& operands);
  /// Runs what uses the factor; the report is the session's.
  void run_use(std::int64_t floor_bytes, std::shared_ptr<const Schedule> schedule,
               MemoryStore& store, const IssueOptions& options,
               std::shared_ptr<const Schedule> narrower = nullptr);
  template <class Run>
  void run_keeping_factor(const Run& run);
  [[nodiscard]] RunReport take_report();
  void reserve_arenas(std::int64_t bytes);
  template <class T, class F>
  void visit_tile(std::int64_t r, std::int64_t c, std::vector<T>& memory, F&& visit) const;
  void check_there() const;
  void check_usable(Element element, std::int64_t rows) const;

  CholeskyOptions options_;
  Session session_;  ///< which has adopted the plan of the factorization
  CholeskyProblem problem_;
  WhitenedProblem whitened_problem_;        ///< for which there is …
  std::shared_ptr<FamilyMemory> whitened_;  ///< … memory, if W has to leave the devices
  /// By the identities of what may stay on the devices.
  std::shared_ptr<std::map<std::uint64_t, std::shared_ptr<FamilyMemory>>> homes_;
  std::shared_ptr<FamilyMemory> tiles_;  ///< null: they are …
  std::unique_ptr<StoredTiles> stored_;  ///< … in storage
  std::shared_ptr<FamilyMemory> statuses_;
  std::vector<std::shared_ptr<FamilyMemory>> mixed_;  // families of mixed_tiles.hpp, if it is mixed
  TileScales scales_;
  std::unique_ptr<HostPinner> pinner_;  // of the memory of the tiles
  FactorInfo info_;
  RunReport report_;
  bool factored_ = false;
};

}  // namespace strata
