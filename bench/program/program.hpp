#pragma once
// The verbs of strata-bench: options of the benchmarks, rows, pages and JSON.
//
// Contract: as cli/app.hpp has it for verbs; main.cpp parses most options.

#include "bench/covariance_bench.hpp"
#include "bench/eigs_bench.hpp"
#include "bench/estimates_bench.hpp"
#include "bench/gmres_bench.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/lu_bench.hpp"
#include "bench/mixed_bench.hpp"
#include "bench/potf2_bench.hpp"
#include "bench/qr_bench.hpp"
#include "bench/sparse_bench.hpp"
#include "cli/app.hpp"

namespace strata::cli {

/// bench cholesky --in-core.
int run_in_core(const bench::InCoreBench& bench, const CommonOptions& common,
                const CholeskyOptions& options);

/// bench lu.
int run_lu_comparison(const bench::LuBench& bench, const CommonOptions& common);
int run_lu_in_core_comparison(const bench::LuBench& bench, const CommonOptions& common);
int run_lu_mixed(const bench::LuBench& bench, const CommonOptions& common);
/// In a new folder of each of these directories.
int run_lu_storage(const bench::LuBench& bench, const std::vector<std::string>& directories,
                   const CommonOptions& common);

struct Potf2Arguments {
  bench::Potf2Bench bench;
  std::string precision = "fp64";
  bool tune = false;
  std::string output;  ///< of the tuning table; empty: where the library reads it
};

/// bench potf2.
int run_potf2(const Potf2Arguments& arguments, const CommonOptions& common);

/// bench mixed.
int run_mixed(const bench::MixedBench& bench, const CommonOptions& common);

/// bench estimates.
int run_estimates(const bench::EstimatesBench& bench, const CommonOptions& common);

/// bench covariance.
int run_covariance(const bench::CovarianceBench& bench, const CommonOptions& common);

struct GmresBenchArguments {
  bench::GmresBench bench;
  std::string matrix = "laplacian";  ///< or "cantilever", or a file
  std::int64_t side = 0;             ///< of what is generated; 0: 24 or 5
  std::vector<std::string> bases{"monomial", "newton"};
  std::vector<std::string> methods{"cholqr", "cholqr2", "cholqr-wide", "auto"};
  std::vector<std::string> blocks{"classical"};
  std::vector<std::string> preconditioners{"none"};
  std::vector<std::string> precisions{"fp64"};
  bool unbalanced = false;
  std::string figures;  ///< a page; empty: none

  void add_to(Command& algorithm);
};

struct EigsBenchArguments {
  bench::EigsBench bench;
  std::string basis = "lanczos";
  std::vector<std::string> methods{"cholqr", "cholqr2", "cholqr-wide", "auto"};
  std::string figures;  ///< a page; empty: none

  void add_to(Command& algorithm);
};

/// bench gmres.
int run_gmres_comparison(const GmresBenchArguments& arguments, const CommonOptions& common);

struct QrBenchArguments {
  bench::QrBench bench;
  std::vector<std::string> methods{"auto", "cholqr", "cholqr2", "cholqr-wide", "cholqr-wide2"};
  int passes = 3;       ///< of methods, whose errors are drawn
  std::string figures;  ///< a page; empty: none
};
/// bench eigs.
int run_eigs_comparison(const EigsBenchArguments& arguments, const CommonOptions& common);

/// bench qr.
int run_qr_kernels(const QrBenchArguments& arguments, const CommonOptions& common);

struct SparseBenchArguments {
  bench::SparseBench bench;
  std::vector<std::string> matrices{"2d5:100", "3d7:16", "3d27:12", "hex:6"};
  std::int64_t collection = 0;  ///< generated matrices in their place
  std::int64_t batch = 0;       ///< so many of each pattern instead, together and one by one
  std::string ordering = "metis";
  std::string peer;  ///< "cholmod", "cudss", "none"; empty: those that are installed
  int peer_threads = 0;
  std::string branches = "programs";  ///< or "batched": ours, level by level
  LevelBatches levels;
  std::string output;   ///< of the JSON object; empty: none
  std::string figures;  ///< a page; empty: none

  void add_to(Command& algorithm);
};

/// bench sparse. Status 1 if a matrix is not positive definite, or if a peer finds something else.
int run_sparse_comparison(const SparseBenchArguments& arguments, const CommonOptions& common);
/// bench sparse --batch. Matrices that are not positive definite are bad input.
int run_batch_comparison(const SparseBenchArguments& arguments, const bench::SparseBench& bench,
                         const CommonOptions& common);
/// A matrix of bench sparse: generated, or from a file.
[[nodiscard]] SparseMatrix bench_matrix(const std::string& name);

}  // namespace strata::cli
