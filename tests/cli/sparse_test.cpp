// strata analyze and strata plan sparse, as a user runs them.

#include <fstream>

#include "tests/cli/program.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata::test {
namespace {

/// The lower triangle of a matrix as a symmetric file, the first `twice` entries once more.
std::string put_symmetric(const Scratch& scratch, const std::string& name, const SparseMatrix& a,
                          std::int64_t twice = 0, const std::string& banner = "%%MatrixMarket") {
  std::string text = banner + " matrix coordinate real symmetric\n";
  text += std::to_string(a.rows) + " " + std::to_string(a.cols) + " " +
          std::to_string(a.entries() + twice) + "\n";
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (; k < a.start[at(i + 1)]; ++k)
      for (int copy = 0; copy < (k < twice ? 2 : 1); ++copy)
        text += std::to_string(i + 1) + " " + std::to_string(a.column[at(k)] + 1) + " 1\n";
  }
  return scratch.put(name, text);
}

TEST(SparseProgram, AnalyzesAsTheLibraryDoes) {
  const Scratch scratch;
  const SparseMatrix a = grid(12, 11, 3);
  const std::string file = put_symmetric(scratch, "a.mtx", a, 7, "%MatrixMarket");
  for (const std::string ordering : {"metis", "amd", "natural", "best"}) {
    AnalysisOptions options;
    options.ordering = parse_sparse_ordering(ordering);
    const SparseAnalysis expected = analyze(a, options);
    const std::string output = scratch.path(ordering);
    const Json j = expect_json({"analyze", file, "--ordering", ordering, "-o", output});
    EXPECT_EQ(j["n"], a.rows);
    EXPECT_EQ(j["ordering"], to_string(expected.ordering));
    EXPECT_EQ(j["flops"], expected.counts.flops);
    EXPECT_EQ(j["factor_entries"], expected.counts.factor_entries);
    EXPECT_EQ(j["supernodes"], expected.supernodes());
    EXPECT_EQ(j["stack_bytes"], expected.counts.stack_bytes);
    EXPECT_EQ(std::ssize(j["levels"]), expected.counts.height);
    EXPECT_EQ(j["summed_entries"], 7);
    EXPECT_EQ(load_analysis(output).order, expected.order);
    EXPECT_EQ(load_analysis(output).row, expected.row);
  }
  expect_pieces(expect_done({"analyze", file}),
                {"order 396", "summed", "7 entries", "supernodes", "ordering"});
}

TEST(SparseProgram, TakesAnOrderFromAFile) {
  const Scratch scratch;
  const SparseMatrix a = grid(5, 4, 1);
  const std::string file = put_symmetric(scratch, "a.mtx", a);
  std::vector<double> order(20);
  for (std::size_t k = 0; k < 20; ++k) order[k] = static_cast<double>((k * 7 + 3) % 20);
  const std::string named = scratch.path("order.npy");
  write_npy(named, std::span<const double>(order));
  AnalysisOptions options;
  options.ordering = SparseOrdering::given;
  options.order.assign(order.begin(), order.end());
  const Json j = expect_json({"analyze", file, "--ordering", named});
  EXPECT_EQ(j["ordering"], "given");
  EXPECT_EQ(j["flops"], analyze(a, options).counts.flops);
  order[4] = order[5];
  write_npy(named, std::span<const double>(order));
  expect_complaint(run_program({"analyze", file, "--ordering", named}), 2, {"both row"});
  order[4] = 1.5;
  write_npy(named, std::span<const double>(order));
  expect_complaint(run_program({"analyze", file, "--ordering", named}), 3, {"1.5"});
  expect_complaint(run_program({"analyze", file, "--ordering", "given"}), 2, {"name the file"});
  expect_complaint(run_program({"analyze", file, "--ordering", "best-of-all"}), 2,
                   {"best-of-all", "metis, amd"});
}

/// Right-hand sides, solutions, the order of elimination; and L, twice, where it comes through.
TEST(SparseProgram, PlansASolve) {
  const Scratch scratch;
  const SparseMatrix a = grid(9, 9, 9);
  const std::string file = put_symmetric(scratch, "a.mtx", a);
  const auto planned = [&](const char* devices, const char* memory) {
    const Words words{"plan", "sparse", file, "--devices", devices, "--device-memory", memory};
    return expect_json(words);
  };
  for (const char* devices : {"emulated:1", "emulated:2"}) {
    const Json stays = planned(devices, "1GiB")["solve"]["planned_traffic"];
    EXPECT_EQ(stays["host_to_device_bytes"], 12 * a.rows);
    EXPECT_EQ(stays["device_to_host_bytes"], 8 * a.rows);
  }
  const Json small = planned("emulated:1", "512KiB");
  EXPECT_GT(small["solve"]["planned_traffic"]["host_to_device_bytes"],
            small["panel_bytes"].get<std::int64_t>());
  EXPECT_FALSE(planned("host:1", "1GiB").contains("solve"));
  expect_pieces(
      expect_done({"plan", "sparse", file, "--devices", "emulated:1", "--device-memory", "1GiB"}),
      {"a solve of one right-hand side", "8.54 KiB", "5.70 KiB"});
}

TEST(SparseProgram, PlansWithAndWithoutAnAnalysis) {
  const Scratch scratch;
  const SparseMatrix a = grid(9, 9, 9);
  const std::string file = put_symmetric(scratch, "a.mtx", a);
  const Words devices{"--devices", "emulated:2", "--device-memory", "1MiB"};
  const Json fresh =
      expect_json(Words{"plan", "sparse", file, "--report", scratch.path("page")} + devices);
  EXPECT_GT(fresh["predicted_seconds"], 0);
  EXPECT_EQ(fresh["devices"].size(), 2U);
  EXPECT_GE(fresh["branches"]["count"], 1);
  EXPECT_LE(fresh["branches"]["flops"], fresh["stored_flops"]);
  // One prediction, that of the schedule.
  const Json& simulated = fresh["simulated"];
  EXPECT_EQ(simulated["predicted_seconds"], fresh["predicted_seconds"]);
  EXPECT_FALSE(fresh.contains("prediction"));
  EXPECT_GT(simulated["planned_traffic"]["host_to_device_bytes"], 0);
  EXPECT_GT(simulated["peak_device_bytes"], 0);
  std::ifstream page(scratch.path("page"));
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  expect_pieces(text, {"Elimination tree", "<rect", "columns"});
  const std::string saved = scratch.path("analysis");
  (void)expect_json({"analyze", file, "-o", saved});
  const Json again = expect_json(Words{"plan", "sparse", file, "--analysis", saved} + devices);
  for (const char* key : {"flops", "supernodes", "panel_bytes", "predicted_seconds", "branches"})
    EXPECT_EQ(again[key], fresh[key]) << key;
  for (const char* key : {"predicted_seconds", "planned_traffic", "peak_device_bytes"})
    EXPECT_EQ(again["simulated"][key], simulated[key]) << key;
  expect_pieces(expect_done(Words{"plan", "sparse", file} + devices),
                {"level", "branches", "left-looking", "predicted", "by the schedule",
                 "host to device", "peak memory"});
  expect_refused({"plan", "sparse", file, "--devices", "emulated:2", "--device-memory", "64KiB"}, 3,
                 {"64.0 KiB", "needs"});
  // Floats take half the memory, and travel in half the bytes.
  const Words floats = Words{"plan", "sparse", file, "--precision", "fp32"} + devices;
  const Json half = expect_json(floats);
  EXPECT_EQ(fresh["precision"], "fp64");
  EXPECT_EQ(half["precision"], "fp32");
  const auto there = simulated["peak_device_bytes"].get<double>();
  EXPECT_LT(half["simulated"]["peak_device_bytes"], 0.7 * there);
  expect_pieces(expect_done(floats), {"for the factor in fp32", "s by the schedule"});
  expect_complaint(run_program(Words{"plan", "sparse", file, "--precision", "fp16"} + devices), 2,
                   {"fp16"});
  // Another matrix than was analyzed, and a file that is damaged.
  const std::string other = put_symmetric(scratch, "other.mtx", grid(9, 9, 8));
  expect_complaint(run_program(Words{"plan", "sparse", other, "--analysis", saved} + devices), 2,
                   {"648", "729"});
  std::ofstream(saved, std::ios::app) << "x";
  expect_complaint(run_program(Words{"plan", "sparse", file, "--analysis", saved} + devices), 3,
                   {"damaged"});
}

/// METIS is a file that may be absent, or something else; other orders do without.
TEST(SparseProgram, NamesTheMetisThatItCannotUse) {
  const Scratch scratch;
  const std::string file = put_symmetric(scratch, "a.mtx", grid(5, 4, 3));
  for (const std::string& metis :
       {scratch.path("absent.so"), scratch.put("text.so", "no library")}) {
    ::setenv("STRATA_METIS", metis.c_str(), 1);
    expect_complaint(run_program({"analyze", file, "--ordering", "metis"}), 3, {metis});
    EXPECT_EQ(expect_json({"analyze", file, "--ordering", "amd"})["ordering"], "amd");
    ::unsetenv("STRATA_METIS");
  }
}

TEST(SparseProgram, ComplainsAboutWhatIsNoSymmetricMatrix) {
  const Scratch scratch;
  const std::string general = "%%MatrixMarket matrix coordinate real general\n";
  const std::string lopsided = scratch.put("g.mtx", general + "3 3 3\n1 2 5\n2 1 6\n3 3 1\n");
  expect_complaint(run_program({"analyze", lopsided}), 1, {"(0, 1) is 5", "(1, 0) is 6"});
  const std::string flat = scratch.put("f.mtx", general + "2 3 1\n1 2 5\n");
  expect_complaint(run_program({"analyze", flat}), 2, {"2 by 3"});
  const std::string skew =
      scratch.put("s.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n");
  expect_complaint(run_program({"analyze", skew}), 1, {"skew"});
  expect_complaint(run_program({"analyze", scratch.path("absent.mtx")}), 3, {"absent.mtx"});
  const std::string fine = put_symmetric(scratch, "a.mtx", grid(3, 3, 1));
  expect_complaint(run_program({"analyze", fine, "-o", fine}), 2, {"would replace"});
  // A row without a diagonal entry is said, and no error yet.
  const std::string empty = scratch.put("e.mtx", general + "3 3 2\n1 1 1\n3 3 1\n");
  EXPECT_EQ(expect_json({"analyze", empty})["empty_diagonals"], 1);
  expect_pieces(expect_done({"analyze", empty}), {"row 1", "not positive definite"});
}

}  // namespace
}  // namespace strata::test
