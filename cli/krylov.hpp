#pragma once
// What the verbs for sparse matrices share: options of Krylov methods, gmres behind solve.

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"

namespace strata::cli {

/// The entries of a .mtx file, or of any that read_dense takes. `triangle` is what --triangle says:
/// the file as it is declared (empty), or its lower or upper triangle as the symmetric matrix.
[[nodiscard]] MatrixMarket read_entries(const std::string& path, const std::string& triangle);
/// Throws Error{input} for complex numbers, where only real ones are taken.
void require_real(const MatrixMarket& entries, const std::string& path);
/// The same as a matrix, both triangles of it.
[[nodiscard]] SparseMatrix read_sparse(const std::string& path, const std::string& triangle = "");
/// A symmetric matrix as such, any other as symmetric_of() takes it (cli/sparse.hpp).
[[nodiscard]] SparseMatrix read_both_triangles(const std::string& path,
                                               const std::string& triangle);
/// --triangle.
Option add_triangle_to(Command& verb, std::string& triangle);

[[nodiscard]] Json to_json(const KrylovSeconds& seconds);

/// Options of a basis that is built s vectors at a time.
struct BlockArguments {
  std::int64_t s = 1;
  std::string basis = "newton";
  std::string orth = "auto";
  bool natural_order = false;
  bool ghost_zones = false;
  std::vector<Option> options;  ///< as they were added

  void add_to(Command& verb);
};

struct GmresArguments {
  BlockArguments block;
  std::int64_t restart = 60;
  std::int64_t restarts_max = 500;
  double tolerance = 1e-6;
  bool balance = false, no_balance = false;
  std::string block_orth = "classical";
  std::int64_t panel = 0;
  std::string preconditioner = "none";
  std::int64_t block_size = 32;
  Element precision = Element::fp64;  ///< of the vectors; the verb has the option

  void add_to(Command& verb);
};

struct SystemFiles {
  std::string matrix;
  std::string rhs;
  std::string output;
  std::string triangle;  ///< of the matrix, as --triangle says
};

/// The smallest eigenpairs by a factor (strata/shift_invert.hpp), and where they go.
struct SmallestArguments {
  std::string matrix, mass, vectors, values;  ///< files; mass: of M, empty for the unit matrix
  std::string triangle;
  std::optional<double> sigma{};
  std::int64_t k = 6, basis_size = 0, restarts_max = 0;
  double tolerance = 0;
};
/// Finds them, writes and tells; the exit status.
int run_smallest(const SparseMatrix& a, const SmallestArguments& arguments,
                 const CommonOptions& common);

/// Solves, writes x and tells; the exit status. A residual that misses its tolerance is 1, with x
/// as far as it came.
int run_gmres(const SystemFiles& files, const GmresArguments& arguments,
              const CommonOptions& common);

}  // namespace strata::cli
