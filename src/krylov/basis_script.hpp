#pragma once
// BasisScript: what is to be done to the vectors of a Krylov method, as the columns of one tall
// matrix V, until the host has to look at sums; and its tasks. Where V is in fp32 there are a few
// columns W in fp64 beside it, with A in fp64, for what has to be exact to that: x, b and
// residuals.
//
// Contract: actions are done in the order in which they are added. Sums are numbered from 0 as they
// are added, and so are factors that the host provides. basis_schedule() emits tasks only: an
// action is a step, a task for each slab of rows, whatever the number of columns. Sums over rows
// are added chunk by chunk in their order, on the first device, so they have the same bits for any
// slabs.

#include <cstdint>
#include <vector>

#include "dense/square_matrix.hpp"
#include "krylov/ghost_zones.hpp"
#include "krylov/row_slabs.hpp"
#include "schedule/task.hpp"
#include "strata/element.hpp"

namespace strata {

/// Sums over rows, p × q, column-major; in the element that was asked for.
struct PanelSum {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<DoubleDouble> values;

  const DoubleDouble& operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i + j * rows)];
  }
};

/// A small matrix that the host provides, column-major; in double-double only to be solved with.
struct PanelFactor {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Element element = Element::fp64;
  std::vector<DoubleDouble> values;
  std::vector<double> scale;  ///< of columns that are solved for
};

class BasisScript {
 public:
  enum class Kind : std::uint8_t {
    multiply,
    powers,
    inner,
    update,
    normalize,
    solve,
    rotate,
    put,
    clear,
    correct,
    narrow,
  };
  struct Action {
    Kind kind = Kind::multiply;
    std::int64_t first = 0;   ///< column of X; `from`
    std::int64_t second = 0;  ///< column of Y; `to`; of powers: how many
    std::int64_t third = 0;   ///< `before`; of update: columns of the sum that are left out
    int sum = -1;             ///< written by inner; read by update and normalize
    int factor = -1;    ///< read by update, solve, rotate, correct; of put and powers: its number
    bool wide = false;  ///< of columns of W; of correct and narrow those of V and W
  };
  struct Sum {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    Element element = Element::fp64;
  };

  /// v_to ← γ·(A·v_from − α·v_from − β·v_before), with A·M⁻¹ in the place of A if there is a right
  /// preconditioner.
  void multiply(std::int64_t from, std::int64_t to, std::int64_t before, double alpha, double beta,
                double gamma, bool wide = false);
  /// One product after the other, from `first` into first + 1, …, a step each; each but the first
  /// has as `before` what the one before it came from, the first the column `before`. With ghost
  /// zones they are one exchange between slabs, else one each; their bits are the same.
  struct Step {
    double alpha = 0, beta = 0, gamma = 1;
  };
  void powers(std::int64_t first, std::int64_t before, const std::vector<Step>& steps);
  /// Sum ← XᵀY, X being `rows` columns from `first` on, Y `cols` columns from `second` on.
  int inner(std::int64_t first, std::int64_t rows, std::int64_t second, std::int64_t cols,
            Element element = Element::fp64, bool wide = false);
  /// Y ← Y − X·S with a sum in fp64, from its column `without` on, or with a factor.
  void update(std::int64_t first, std::int64_t second, int sum, std::int64_t without = 0);
  void update_by(std::int64_t first, std::int64_t second, PanelFactor factor);
  /// y ← y/√s, unless s is not positive.
  void normalize(std::int64_t column, int sum);
  /// Y ← Y·diag(scale)·R⁻¹.
  void solve(std::int64_t first, PanelFactor factor);

  /// The first `factor.cols` columns of V ← its first `factor.rows` columns times the factor.
  void rotate(PanelFactor factor);
  /// A column of V or W ← numbers of the host.
  void put(std::int64_t column, std::vector<double> values, bool wide = false);
  /// V ← finite numbers that are not read, so that no value of it has to come from the host.
  void clear();
  /// w ← w − X·f, X being columns of V from `first` on, f one column, w the column `to` of W.
  void correct(std::int64_t first, std::int64_t to, PanelFactor factor);
  /// v ← w/√s, or w where s is not positive; w is the column `from` of W, v `to` of V.
  void narrow(std::int64_t from, std::int64_t to, int sum);

  [[nodiscard]] bool empty() const noexcept { return actions.empty(); }

  struct Coefficients {
    std::int64_t to = 0;
    double alpha = 0, beta = 0, gamma = 1;
    bool wide = false;  ///< `to` is a column of W
  };
  struct Given {
    std::vector<double> values;
    bool wide = false;
  };
  std::vector<Action> actions;
  std::vector<Sum> sums;
  std::vector<PanelFactor> factors;
  std::vector<Given> given;
  /// Coefficients of the products; products to the same column `to` have the same.
  std::vector<Coefficients> coefficients;
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  std::vector<Range> ranges;  ///< of powers, by number
};

/// The script cut before each of its products, for a preconditioner of the host: of a part but the
/// first, the first action is a product. No sum may be read in another part than it is formed in.
[[nodiscard]] std::vector<BasisScript> cut_before_products(const BasisScript& script);

/// The families of the schedule.
namespace basis {
inline constexpr int kVectors = 0;        ///< V, a block for each slab, n columns
inline constexpr int kStarts = 1;         ///< of rows, int32
inline constexpr int kColumns = 2;        ///< of entries, int32
inline constexpr int kValues = 3;         ///< of entries
inline constexpr int kHalo = 4;           ///< a block for each slab; temporary
inline constexpr int kIndex = 5;          ///< of what is packed, int32, a block for each link
inline constexpr int kPacked = 6;         ///< a block for each link; temporary
inline constexpr int kInverseStarts = 7;  ///< of M⁻¹, as those of A
inline constexpr int kInverseColumns = 8;
inline constexpr int kInverseValues = 9;
inline constexpr int kInverseHalo = 10;
inline constexpr int kInverseIndex = 11;
inline constexpr int kInversePacked = 12;
inline constexpr int kGhostStarts = 13;   ///< of ghost rows, int32, a block for each slab
inline constexpr int kGhostColumns = 14;  ///< of their entries, int32
inline constexpr int kGhostValues = 15;   ///< of their entries
inline constexpr int kGhostIndex = 16;   ///< int32: of each link, then each slab's halo, its border
inline constexpr int kGhosts = 17;       ///< products in ghost rows, for each slab; temporary
inline constexpr int kGhostPacked = 18;  ///< a block for each link of ghost rows; temporary
inline constexpr int kGhostColumn = 19;  ///< what came, for each slab; temporary
inline constexpr int kBorder = 20;       ///< a slab's rows that its ghost rows need; temporary
inline constexpr int kThree = 21;    ///< α, β, γ for each column; then, by number, of ghost rows
inline constexpr int kFactors = 22;  ///< by number
inline constexpr int kScales = 23;   ///< by number of the factor
inline constexpr int kParts = 24;    ///< sums of chunks: by sum, then slab; temporary
inline constexpr int kSums = 25;     ///< by number
inline constexpr int kTaken = 26;    ///< columns of V, each a block for each slab
inline constexpr int kGiven = 27;    ///< what is put: by number, then slab
inline constexpr int kWide = 28;     ///< W, a block for each slab
inline constexpr int kWideValues = 29;  ///< of entries, in fp64 as the rest that is of W
inline constexpr int kWideHalo = 30;
inline constexpr int kWidePacked = 31;
inline constexpr int kWideInverseValues = 32;
inline constexpr int kWideInverseHalo = 33;
inline constexpr int kWideInversePacked = 34;
inline constexpr int kWideThree = 35;
inline constexpr int kFamilies = 36;
}  // namespace basis

/// What stays on the devices from script to script.
struct BasisIdentities {
  std::uint64_t vectors = 0, starts = 0, columns = 0, values = 0, index = 0;
  std::uint64_t inverse_starts = 0, inverse_columns = 0, inverse_values = 0, inverse_index = 0;
  std::uint64_t ghost_starts = 0, ghost_columns = 0, ghost_values = 0, ghost_index = 0;
  std::uint64_t wide = 0, wide_values = 0, wide_inverse_values = 0;
};

/// How a product with A is preconditioned from the right; M⁻¹·v_from lies in the last column of V
/// then.
enum class Preconditioned : std::uint8_t {
  not_at_all,
  by_matrix,  ///< M⁻¹ is on the devices, cut as A is
  by_host,    ///< somebody has put it there
};

struct BasisProblem {
  const RowSlabs* slabs = nullptr;
  Preconditioned preconditioned = Preconditioned::not_at_all;
  const RowSlabs* inverse = nullptr;   ///< of M⁻¹, by_matrix
  const GhostZones* ghosts = nullptr;  ///< none: an exchange for each product
  std::int64_t columns = 0;            ///< of V
  Element element = Element::fp64;     ///< of V: fp64 or fp32
  std::int64_t wide_columns = 0;       ///< of W; 0: there is none
  int devices = 1;
  BasisIdentities identities;
  bool stays = true;        ///< V and W need not go home
  std::int64_t taken = -1;  ///< the first of columns that go home after the script; −1: none
  std::int64_t taken_count = 1;
  bool taken_wide = false;  ///< of W
};

/// How often slabs exchange elements of vectors in the script, and the bytes of these.
struct HaloTraffic {
  std::int64_t exchanges = 0;
  std::int64_t bytes = 0;
};
[[nodiscard]] HaloTraffic halo_traffic(const BasisProblem& problem, const BasisScript& script);

/// The families of a script, in the order of their numbers.
[[nodiscard]] BlockTable basis_blocks(const BasisProblem& problem, const BasisScript& script);

/// What the problem points to outlives the schedule; it keeps no vector of the script.
[[nodiscard]] Schedule basis_schedule(const BasisProblem& problem, const BasisScript& script);

}  // namespace strata
