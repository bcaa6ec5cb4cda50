// strata factor A -o DIR: by Cholesky of a sparse symmetric matrix, else by LU of a dense one.

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "cli/cholesky_factor.hpp"
#include "cli/dense_file.hpp"
#include "cli/general_solve.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRaw = "so are files called .raw, read by columns";
constexpr const char* kRawByRows = "so are files called .raw, read by rows";
constexpr const char* kInStorage = "so are factors in storage";  // why LU

struct FactorVerbArguments {
  FactorArguments factor;
  std::string output;
  std::string method = "auto";
  bool condition = false;
  std::vector<std::string> storage;
  bool resume = false;
  bool status = false;
  std::string element = "fp64";  // of a file called .raw
  bool by_rows = false;
  std::vector<Option> of_raw;
  std::vector<Option> of_sparse;  // what LU has no use for
};

/// A directory that is there already, or that can be made.
void check_directory(const CommonOptions& common, std::string directory,
                     const std::vector<std::string>& inputs) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (fs::is_directory(directory))
    return check_outputs(
        common, {{"--output", directory + "/analysis"}, {"--output", directory + "/factor"}},
        inputs);
  require(!fs::exists(directory), ErrorKind::storage, "cli",
          "--output: '{}' is a file, and the factor goes into a directory", directory);
  check_outputs(common, {{"--output", directory}}, inputs);
}

/// Why A is factored by LU; nothing: it is not.
std::optional<std::string> why_lu(const FactorVerbArguments& a, const MatrixFile& file) {
  if (a.method == "lu") return "as asked for";
  if (!a.storage.empty() || a.resume) return kInStorage;
  if (file.is_complex()) return fmt::format("{} is of complex numbers", file.path());
  try {
    (void)check_symmetric(file, a.factor.triangle);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical) throw;
    if (a.factor.triangle.empty() && holds_one_triangle(file))
      fail(ErrorKind::numerical, "factor", "{}, --method lu as it is", error.what());
    return error.what();
  }
  return std::nullopt;
}

/// The exit status where A is dense and factored by LU; nothing: it is for Cholesky. `failed`: why
/// that failed.
std::optional<int> factor_by_lu(const FactorVerbArguments& a, const CommonOptions& common,
                                const std::string& failed = {}) {
  const bool raw = is_called(a.factor.matrix, ".raw");
  require(!raw || a.method != "cholesky", ErrorKind::misuse, "options",
          "--method cholesky: a file called .raw is factored by LU");
  if (!raw) refuse_given(a.of_raw, "is an option of files called .raw");
  if (a.method == "cholesky") return std::nullopt;
  if (raw) refuse_given(a.of_sparse, "is an option of sparse matrices");
  if (!a.storage.empty() || a.resume)
    refuse_given(a.of_sparse, "is an option of sparse matrices, and not of factors in storage");
  if (first_given(a.of_sparse).empty()) {
    const std::optional<int> status =
        run_factor_in_storage(a.factor.matrix,
                              {a.output, a.factor.triangle, a.factor.precision,
                               !raw        ? kInStorage
                               : a.by_rows ? kRawByRows
                                           : kRaw,
                               a.storage, a.resume, a.element, a.by_rows},
                              common);
    if (status) return status;
  }
  std::optional<MatrixFile> file;
  if (is_called(a.factor.matrix, ".mtx")) {
    const MatrixMarket entries = read_entries(a.factor.matrix, a.factor.triangle);
    const bool dense = entries.is_array || entries.is_complex;
    require(dense || a.method != "lu", ErrorKind::misuse, "options",
            "--method lu is for dense matrices, and '{}' is sparse", a.factor.matrix);
    if (dense) file.emplace(a.factor.matrix, entries);
  } else {
    file.emplace(a.factor.matrix);
  }
  if (!file) return std::nullopt;
  require_square(*file);
  const std::optional<std::string> why = failed.empty() ? why_lu(a, *file) : failed;
  if (!why) return std::nullopt;
  refuse_given(a.of_sparse, fmt::format("is an option of sparse matrices, and {} is factored by LU",
                                        a.factor.matrix));
  return run_general_factor(
      *file, {a.output, a.factor.triangle, a.factor.precision, *why, a.storage, a.resume}, common);
}

int factor(const FactorVerbArguments& a, const CommonOptions& common) {
  if (a.status) {
    require(a.output.empty(), ErrorKind::misuse, "options",
            "--status takes the directory of a factor, and nothing else");
    require(a.factor.is_saved(), ErrorKind::misuse, "options",
            "--status takes the directory of a factor, and '{}' is none", a.factor.matrix);
    return run_factor_status(a.factor.matrix, common);
  }
  require(!a.output.empty(), ErrorKind::misuse, "options",
          "--output: a factor goes into a directory");
  require(!a.factor.is_saved(), ErrorKind::misuse, "options",
          "'{}' is a directory: what is factored is a matrix, .mtx, .npy or .raw", a.factor.matrix);
  check_directory(common, a.output, inputs_of(a.factor, common));
  if (a.method == "cholesky" && (!a.storage.empty() || a.resume)) {
    require(!is_called(a.factor.matrix, ".raw"), ErrorKind::misuse, "options",
            "--method cholesky: a file called .raw is factored by LU");
    refuse_given(a.of_raw, "is an option of files called .raw, which are factored by LU");
    refuse_given(a.of_sparse, "is an option of sparse matrices, and not of factors in storage");
    return run_cholesky_factor(
        {a.factor.matrix, a.output, a.factor.triangle, a.factor.precision, a.storage, a.resume},
        common);
  }
  if (const std::optional<int> status = factor_by_lu(a, common)) return *status;
  SparseFactorization f = read_factor(a.factor, common);
  Json object = to_json(f);
  if (!f.factor.info().ok) {
    const FactorInfo& info = f.factor.info();
    if (a.method == "auto" && first_given(a.of_sparse).empty()) {
      const std::optional<int> status = factor_by_lu(
          a, common,
          fmt::format("{}: {}: pivot {} is {:.6g}, counted from 0", a.factor.matrix,
                      not_definite(info, failed_place(f)), info.first_bad_pivot, info.bad_pivot));
      if (status) return *status;
    }
    return report_not_definite(common, f, std::move(object));
  }
  const double condition = a.condition ? f.factor.condition(f.file.matrix) : 0;
  if (a.condition) object["condition"] = number(condition);
  const FactorQuality quality = quality_of(f, false);
  add_to_json(quality, object);
  begin_output();
  // A file does not tell of it, and what solves with it would not either.
  if (!quality.singular) f.factor.save(a.output);
  add_solves(f, object);
  const int status = finish(common, report_of(f), object, [&] {
    print_run(f);
    print_factor(f);
    print_condition(quality.scaled_condition);
    if (a.condition) fmt::print("  condition         {:.2e} (an estimate)\n", condition);
    print_traffic_of(f);
    if (quality.singular)
      fmt::print("no factor written: no digit of what it solves is sure\n");
    else
      fmt::print("factor written to {}\n", a.output);
  });
  if (!quality.singular) return status;
  return report_singular(quality.scaled_condition, f.factor.precision(), true);
}

int run_factor(const FactorVerbArguments& a, const CommonOptions& common) {
  try {
    return factor(a, common);
  } catch (const Error& error) {
    const std::vector<std::string> given = storage_directories(a.storage);
    const std::string& first = given.empty() ? a.output : given.front();
    if (error.kind() != ErrorKind::cancelled || !fs::exists(first + "/storage")) throw;
    fail(ErrorKind::cancelled, "factor",
         "{}: what is durable is kept, and the same command with --resume goes on from there",
         error.what());
  }
}

}  // namespace

void add_factor(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "factor",
      "factor of a matrix, to be used again: by Cholesky of a symmetric positive definite one, "
      "sparse or (--method cholesky --storage) dense, by LU of other dense ones");
  add_examples(verb,
               {"strata factor A.mtx -o factor/", "strata factor A.npy -o factor/ --method lu",
                "strata factor A.npy -o factor/ --storage /disk1/f,/disk2/f --host-memory 8GiB",
                "strata factor A.npy -o factor/ --method cholesky --storage /disk1/f,/disk2/f"});
  auto a = std::make_shared<FactorVerbArguments>();
  common.add_factor_options(verb);
  verb.add_option("A", a->factor.matrix,
                  "matrix: .mtx, .npy or these .gz; .raw, nothing but the numbers of a square "
                  "matrix; with --status the directory of a factor")
      .required();
  verb.add_option("-o,--output", a->output, "directory that the factor goes to");
  verb.add_list("--storage", a->storage,
                "directories, separated by commas, best on as many disks, in whose files L and U, "
                "or with --method cholesky L, rest; of host memory they take --host-memory "
                "(default: the directory of -o, where host memory does not hold L and U)");
  verb.add_flag("--resume", a->resume,
                "go on with what a run that was interrupted has left in storage");
  a->of_raw.push_back(
      verb.add_option("--element", a->element,
                      "of a .raw file: fp64, fp32, complex128 or complex64, in the byte order of "
                      "this machine")
          .check(one_of({"fp64", "fp32", "complex128", "complex64"}))
          .capture_default_str());
  a->of_raw.push_back(verb.add_flag("--by-rows", a->by_rows,
                                    "of a .raw file: row after row, as C has it, not by columns"));
  verb.add_flag("--status", a->status, "tell how much is factored of what rests in a directory");
  verb.add_option(
          "--method", a->method,
          "auto, cholesky, or lu (dense A, with partial pivoting). auto is cholesky, and lu "
          "for a dense A that is not symmetric positive definite, or of complex numbers")
      .check(one_of({"auto", "cholesky", "lu"}))
      .capture_default_str();
  a->factor.add_to(verb);
  a->of_sparse = a->factor.added;
  a->factor.add_precision_to(verb, "with which 'strata solve --matrix' refines to fp64");
  a->of_sparse.push_back(
      verb.add_flag("--condition", a->condition, "estimate the condition in the 1-norm"));
  verb.callback([&run, &common, a] { run = [&common, a] { return run_factor(*a, common); }; });
}

}  // namespace strata::cli
