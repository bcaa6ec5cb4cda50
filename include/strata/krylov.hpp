#pragma once
// Krylov methods for sparse matrices: GMRES and Lanczos, s steps at a time or one by one.
//
// Contract: A is square, compressed by rows, in host memory; its rows are dealt to the devices in
// contiguous blocks, and the basis stays there. What is misused (shapes, s > restart) is
// Error{misuse}; an entry of A or b that is NaN or infinite is Error{input} with its place.
// Everything else is told by the Info that is returned, never hidden: `ok` says that the promise
// was kept, by a residual that was computed with A itself.
//
// The whole history of convergence has the same bits for any number of devices, any budget and
// policy, from run to run, and on any backend: the order of every sum follows from A alone.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/matrix_view.hpp"
#include "strata/options.hpp"
#include "strata/qr_method.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// Columns of a basis, at most: what is orthogonalized at a time.
inline constexpr std::int64_t kKrylovBasisMax = 500;

/// In which polynomials of A the s new vectors of a block are computed.
enum class KrylovBasis : std::uint8_t {
  monomial,   ///< powers
  newton,     ///< products of A − θ, θ Ritz values in Leja's order (Bai, Hu, Reichel 1994)
  chebyshev,  ///< Chebyshev polynomials of an ellipse around the Ritz values (Joubert, Carey 1992)
  /// Only for eigs: the recurrence that the vectors of the cycle before had at the same place.
  lanczos,
};
/// "monomial", …; and back, throwing Error{misuse} with the names there are.
[[nodiscard]] std::string_view to_string(KrylovBasis basis) noexcept;
[[nodiscard]] KrylovBasis parse_krylov_basis(const std::string& name);

/// How a block of s vectors is made orthogonal to the vectors before it, and orthonormal.
enum class BlockOrthogonalization : std::uint8_t {
  /// Projected, then the Gram matrix of what is left: two sums over the rows a pass.
  classical,
  /// One sum a pass, of the products with the vectors before and of the block with itself; the Gram
  /// matrix of what is left is their difference, by Pythagoras (BCGS-PIP: Carson, Lund, Rozložník,
  /// Thomas, "Block Gram-Schmidt algorithms and their stability properties", Linear Algebra and its
  /// Applications 638, 2022). Loses orthogonality like the square of the condition of all vectors.
  pythagorean,
  /// Blocks once, as pythagorean; then `panel` vectors together a second time, in one sum: 1 +
  /// s/panel sums a block (Yamazaki, Higgins, Boman, Szyld, "Two-stage block orthogonalization to
  /// improve performance of s-step GMRES", arXiv 2402.15033, 2024).
  two_stage,
};
/// "classical", "pythagorean", "two-stage"; and back, throwing Error{misuse} with these names.
[[nodiscard]] std::string_view to_string(BlockOrthogonalization block) noexcept;
[[nodiscard]] BlockOrthogonalization parse_block_orthogonalization(const std::string& name);

/// Whether gmres() with blocks of s > 1 vectors (GmresOptions) takes `method` together with
/// `block`: pythagorean takes automatic and the methods by Gram matrices, two_stage those with one
/// pass.
[[nodiscard]] bool goes_with(BlockOrthogonalization block, QrMethod method) noexcept;

/// M in A·M⁻¹·u = b, x = M⁻¹·u: what A is multiplied by from the right.
enum class Preconditioner : std::uint8_t {
  none,
  jacobi,  ///< the diagonal of A
  /// Diagonal blocks of A, of consecutive rows as the caller numbers them (Saad, "Iterative methods
  /// for sparse linear systems", 2003, 4.1.1). Inverted once, on the host; multiplied by on the
  /// devices.
  block_jacobi,
  custom,  ///< RightPreconditioner::apply
};
/// "none", "jacobi", …; and back, throwing Error{misuse} with the names that need no function.
[[nodiscard]] std::string_view to_string(Preconditioner preconditioner) noexcept;
[[nodiscard]] Preconditioner parse_preconditioner(const std::string& name);

/// Rows of a block of block-Jacobi, at most.
inline constexpr std::int64_t kJacobiBlockMax = 512;

struct RightPreconditioner {
  Preconditioner kind = Preconditioner::none;
  /// Rows of a block of block_jacobi, 1 … kJacobiBlockMax: block i has the rows i·block_size …
  /// (i + 1)·block_size − 1 and these columns. They are those of A as it is given, whatever order
  /// it is solved in. A block that is singular to working precision is Error{input} with its rows.
  std::int64_t block_size = 32;
  /// The preconditioner of `custom`: y ← M⁻¹·x, both in host memory, with as many elements as A has
  /// rows, numbered and scaled as the caller's A, b and x. M⁻¹ has to be one linear map in all
  /// calls of a solve, and to give the same bits for the same x if the history is to have them. It
  /// is called from the thread that called gmres(), once for each product with A and a few times
  /// more. x is finite; a y that is not is Error{misuse}, which names its first such element. The
  /// vectors travel to the host and back, which is counted in the traffic. What it throws ends the
  /// solve.
  std::function<void(std::span<const double> x, std::span<double> y)> apply;
};

/// A residual says nothing about rows that are this much shorter than others, over a tolerance:
/// gmres() scales such rows, and looks at the residual of the scaled ones as well.
inline constexpr double kRowsFarApart = 0x1p13;

struct GmresOptions {
  std::int64_t restart = 60;  ///< vectors of a cycle
  /// Vectors that are computed before they are orthogonalized; 1: GMRES itself.
  std::int64_t s = 1;
  KrylovBasis basis = KrylovBasis::newton;
  /// How a block of s vectors is made orthonormal: automatic, cholqr (sums in fp64), cholqr2,
  /// cholqr_wide (sums in double-double), cholqr_wide2 (those, then in fp64), svqr, svqr_wide, cgs,
  /// cgs2 or mgs. svqr and svqr_wide take the triangle from the eigenvalues of sums in fp64 and in
  /// double-double, so that no pivot fails. The block is projected against the vectors before it
  /// once, or twice where the method has two passes; of cgs2 each column a second time. With s = 1:
  /// cgs2 (automatic too), cgs or mgs. `automatic` decides block by block about precision, passes
  /// and s, from the condition and the loss of orthogonality that it sees. Any other method of qr()
  /// is Error{misuse} naming these. Householder's (tsqr) would need tasks of another kind on each
  /// block of rows, for an orthogonality that automatic and cholqr_wide2 have. A sketch replaces a
  /// Gram matrix that is expensive, which one of s columns is not.
  QrMethod orthogonalization = QrMethod::automatic;
  /// For s > 1 and methods by Gram matrices, that is not for cgs, cgs2 and mgs. With `pythagorean`
  /// the automatic method projects first where Pythagoras would lose too much, and says so;
  /// two_stage goes with automatic, cholqr, cholqr_wide, svqr and svqr_wide, which are those of its
  /// first stage. The second one is by cholqr with sums in fp64.
  BlockOrthogonalization block_orthogonalization = BlockOrthogonalization::classical;
  /// Vectors of the second stage of two_stage, s … restart; 0: a whole cycle. The residual is
  /// looked at after each such panel.
  std::int64_t panel = 0;
  /// In which the vectors of the basis are kept, with A to multiply them by: fp64 or fp32. With
  /// fp32 a cycle solves for a correction, and x, b and residuals stay fp64, so that any tolerance
  /// can be reached that can with fp64, if κ(A) leaves fp32 some digits (iterative refinement:
  /// Lindquist, Luszczek, Dongarra, "Accelerating restarted GMRES with mixed precision arithmetic",
  /// IEEE Transactions on Parallel and Distributed Systems 33, 2022). Gram matrices of cholqr,
  /// cholqr2 and svqr, and the second of cholqr_wide2, are in fp32 then, all other sums in fp64; A
  /// is kept twice.
  Element precision = Element::fp64;
  double tolerance = 1e-6;          ///< ‖b − A·x‖ <= tolerance·‖b‖ …
  double absolute_tolerance = 0;    ///< … or this, whichever is larger
  std::int64_t restarts_max = 500;  ///< cycles
  /// Rows and columns of A are scaled to length about 1 first; the tolerance stays that of A and b
  /// as they are given. Where it is missed so, the same is tried without: restarts_max bounds each.
  /// Without a value: where the rows of A are kRowsFarApart and more apart in length.
  std::optional<bool> balance;
  RightPreconditioner preconditioner;
  /// Rows and columns in the reverse Cuthill–McKee order where neighbours in it are closer.
  bool reorder = true;
  /// Blocks of rows compute the rows near them redundantly, so that the s products of a block need
  /// one exchange between devices (the matrix powers kernel of Demmel, Hoemmen, Mohiyuddin, Yelick,
  /// "Avoiding communication in sparse matrix computations", 2008), with the same bits. Not where
  /// these were more than half of a block's own: HaloReport says so.
  bool ghost_zones = false;
  RunOptions run{};  ///< devices, budgets, policy, progress
};

/// How the blocks of rows, one for each device or more, exchanged elements of vectors.
struct HaloReport {
  bool asked_for_ghost_zones = false;
  bool ghost_zones = false;    ///< whether products of a block were done with them
  double ghost_share = 0;      ///< the most redundant rows of a block of rows, of its own
  std::int64_t exchanges = 0;  ///< rounds; one for s products with ghost zones, else for each
  std::int64_t bytes = 0;      ///< of elements that were needed elsewhere
  std::string why;             ///< in words, where ghost zones were asked for and not used
};

/// What was decided about a block of vectors, and why.
struct KrylovDecision {
  std::int64_t restart = 0;  ///< cycle, from 0
  std::int64_t column = 0;   ///< of the basis, before the block
  std::int64_t s = 0;        ///< vectors of the block that were kept
  bool wide = false;         ///< whether its sums were in twice the precision of its vectors
  int passes = 0;            ///< of orthogonalization
  /// Sums over the rows that were waited for one after the other; of two_stage, the last block of a
  /// panel has the one of the second stage.
  std::int64_t reductions = 0;
  double condition = 0;  ///< of the projected block with unit columns; infinite: beyond the sums
  /// Largest |QᵀQ − I| in the column of the vector before the block. NaN: not measured.
  double loss = 0;
  std::string
      what;  ///< "shrink: …", "grow: …", "wide: …", "projected: …"; empty: as the block before
};

/// One cycle.
struct KrylovCycle {
  std::int64_t vectors = 0;       ///< that were used
  double relative_residual = 0;   ///< ‖b − A·x‖/‖b‖ behind it, of the scaled system
  double estimated_residual = 0;  ///< the same by the projected problem
  std::int64_t blocks = 0;        ///< of vectors
  std::int64_t failed_cholesky = 0;
};

/// Where the time of a run went. What devices computed is a mean over them, so that the parts add
/// up to the seconds from the call to the return.
struct KrylovSeconds {
  double products = 0;     ///< with A, with the exchange of halos
  double projections = 0;  ///< sums with the vectors before, and what is taken off for them
  double gram = 0;         ///< sums of a block with itself; with s = 1 the lengths of vectors
  double solves = 0;       ///< a block times the inverse of a triangle
  double rotations = 0;    ///< eigs: Ritz vectors formed of the basis at each restart
  double host = 0;         ///< plans, small factorizations, the projected problem
  double rest = 0;         ///< copies, what else devices did, and waiting

  [[nodiscard]] double total() const noexcept {
    return products + projections + gram + solves + rotations + host + rest;
  }
  KrylovSeconds& operator+=(const KrylovSeconds& more) noexcept {
    products += more.products;
    projections += more.projections;
    gram += more.gram;
    solves += more.solves;
    rotations += more.rotations;
    host += more.host;
    rest += more.rest;
    return *this;
  }
};

struct GmresInfo {
  /// The residual of A and b as given is within the tolerance, and where rows of A are far apart
  /// that of scaled rows within kRowsFarApart times it.
  bool ok = false;
  /// ‖b − A·x‖₂ as given, of the x that is returned, from a product in twice the precision.
  double residual_norm = 0;
  double relative_residual = 0;  ///< the same over ‖b‖₂; 0 where b is zero
  /// The longest row of A over the shortest that is not zero.
  double rows_apart = 1;
  /// ‖R·(b − A·x)‖₂/‖R·b‖₂ with the rows R·A of one length, where they were scaled (balance); else
  /// relative_residual.
  double scaled_residual = 0;
  std::int64_t restarts = 0;    ///< cycles that were begun
  std::int64_t iterations = 0;  ///< products with A that made basis vectors
  bool stagnated =
      false;  ///< the residual no longer falls: A may be singular, or restart too small
  bool breakdown = false;  ///< the space ended, or numbers that are not finite, before convergence
  /// In words, where not ok. Where the space ended or cycles stagnated it says so if b is known not
  /// to lie in the range of A.
  std::string why;
  std::int64_t factorizations = 0;   ///< of Gram matrices
  std::int64_t failed_cholesky = 0;  ///< of these met a pivot that is not positive
  double condition_max = 0;          ///< of the blocks that were kept
  std::int64_t reductions = 0;       ///< sums over the rows, those of residuals included
  std::vector<KrylovCycle> history;
  std::vector<KrylovDecision> decisions;  ///< one for each block
  KrylovSeconds seconds;
  HaloReport halo;
  RunReport report;  ///< of all runs
};

/// x, the initial guess, becomes a solution of A·x = b, or where none is found the best x that was:
/// it is finite, and its residual is no longer than b. b and x have as many elements as A rows. A
/// and b may be of any size: they are scaled by powers of two where squares would not be finite.
/// Saad and Schultz, "GMRES", 1986; blocks of s vectors: Hoemmen, "Communication-avoiding Krylov
/// subspace methods", 2010, with the orthogonalization of Yamazaki, Tomov and Dongarra, SIAM J.
/// Sci. Comput. 37 (2015). Throws Error{misuse, input, memory, device, cancelled}.
GmresInfo gmres(const SparseMatrix& a, std::span<const double> b, std::span<double> x,
                const GmresOptions& options = {});

/// How eigenpairs are found.
enum class EigsMethod : std::uint8_t {
  automatic,  ///< dense up to kDenseEigsOrder, unless what is of Lanczos' method is asked for
  lanczos,
  /// All eigenvalues of the matrix as a dense one, on the host: Householder's reduction and QL, and
  /// Jacobi's rotations where that leaves values that are not resolved beside their size.
  dense,
};
/// "auto", "lanczos", "dense"; and back, throwing Error{misuse} with these names.
[[nodiscard]] std::string_view to_string(EigsMethod method) noexcept;
[[nodiscard]] EigsMethod parse_eigs_method(const std::string& name);

/// Up to this order eigs() takes a matrix for a dense one unless it is told otherwise, …
inline constexpr std::int64_t kDenseEigsOrder = 1000;
/// … and up to this one if it is told so.
inline constexpr std::int64_t kDenseEigsOrderMax = 4000;
/// A value is resolved if its bound is at most this share of it.
inline constexpr double kEigsResolved = 1e-2;

/// Which end of the spectrum.
enum class EigenEnd : std::uint8_t {
  smallest,  ///< the most negative
  largest,   ///< the most positive
};

struct EigsOptions {
  std::int64_t k = 6;  ///< eigenpairs
  EigenEnd which = EigenEnd::largest;
  EigsMethod method = EigsMethod::automatic;  ///< what follows is of lanczos, but for the tolerance
  std::int64_t basis_size = 0;  ///< vectors that are held; 0: max(2·k + 1, 20), at most the order
  /// As of GmresOptions, with the same methods. Where a block would leave A·Q = Q·T in error by
  /// more than a hundredth of the tolerance, fewer of its vectors are kept (`automatic`). Where the
  /// blocks of another method break down, what was found stays, and the rest is sought vector by
  /// vector with cgs2, as a decision tells ("single: …"); where cycles run out, `why` says what
  /// failed.
  std::int64_t s = 1;
  KrylovBasis basis = KrylovBasis::lanczos;
  QrMethod orthogonalization = QrMethod::automatic;
  /// Where many cycles are still to come, the method goes on with a Chebyshev polynomial of A in
  /// the place of A, vector by vector with cgs2, as a decision tells ("filter: …"). It costs three
  /// vectors more, and `filter_degree` products for each vector of the basis. All its products may
  /// cost about as much as the cycles that are expected without it; then it is given up.
  bool filter = true;
  double tolerance = 1e-10;  ///< ‖A·v − λ·v‖₂ of each pair, of the largest row sum of |A|
  std::int64_t restarts_max = 1000;  ///< cycles
  std::int64_t products_max = 0;     ///< with A, about; 0: as many as the cycles take
  bool reorder = true;
  bool ghost_zones = false;  ///< as of GmresOptions
  std::uint64_t seed = 1;    ///< of the vector to begin with
  RunOptions run{};
};

/// What is known behind one cycle.
struct EigsCycle {
  std::int64_t locked = 0;  ///< pairs that were found by then
  /// Largest ‖A·v − λ·v‖₂ over the wanted pairs that are not locked, estimated from the projected
  /// problem, relative to the largest row sum of |A|; 0: no such pair is left.
  double estimated_residual = 0;
};

struct EigsInfo {
  /// All k pairs are within the tolerance, none of their values is unresolved, and no other was
  /// found to be missing.
  bool ok = false;
  std::vector<double> values;  ///< up to k, from the end inwards; each as often as it is one
  std::vector<double> residuals;  ///< ‖A·v − λ·v‖₂, from a product with A in twice the precision
  /// |λ − an eigenvalue of A| is at most this: ‖A·v − λ·v‖₂/‖v‖₂, since A is symmetric, and what
  /// computing that may have lost. (Whether another eigenvalue lies further out it does not say.)
  std::vector<double> bounds;
  /// Values whose bound is more than kEigsResolved of them, and which are not zero within the
  /// tolerance either: |λ| and the bound at most 100·tolerance·‖|A|·|v|‖₂, that is beside the terms
  /// that cancel in A·v.
  std::vector<bool> unresolved;
  std::int64_t converged = 0;  ///< pairs within the tolerance
  bool dense = false;          ///< by the dense method
  std::int64_t restarts = 0;
  std::int64_t products = 0;       ///< with A
  std::int64_t filter_degree = 0;  ///< of the last filter; 0: there was none
  double orthogonality = 0;        ///< largest |vᵢᵀvⱼ − δᵢⱼ|
  std::string why;                 ///< in words, where not ok
  std::int64_t factorizations = 0;
  std::int64_t failed_cholesky = 0;
  double condition_max = 0;
  std::vector<EigsCycle> history;
  std::vector<KrylovDecision> decisions;
  KrylovSeconds seconds;
  HaloReport halo;
  RunReport report;
};

/// k eigenpairs of a symmetric A, of order n >= k, at one end of its spectrum; by Lanczos' method
/// n > k. vectors: n × k, orthonormal, written as a whole, zeros where less was found.
/// Thick-restart Lanczos with full reorthogonalization (Wu, Simon 2000), s steps at a time as
/// Yamazaki, Tomov and Dongarra (2015); eigenvalues that come several times are found by beginning
/// anew, orthogonal to what is there, until nothing further comes. Throws Error{numerical} naming
/// the two entries if A is not symmetric; else as gmres().
EigsInfo eigs(const SparseMatrix& a, MatrixView<double> vectors, const EigsOptions& options = {});

}  // namespace strata
