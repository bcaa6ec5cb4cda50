// strata bench sparse: its rows, figures and files, with and without CHOLMOD, and what is refused.

#include <filesystem>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

const Words kSparse{"bench",     "sparse", "--repeats",       "1",    "--nrhs", "3",
                    "--devices", "host:1", "--device-memory", "64MiB"};

void expect_solver_fields(const Json& solver) {
  for (const char* name : {"analysis", "factor", "refactor", "solve", "solve_many"}) {
    EXPECT_GT(solver.at(name).at("seconds").get<double>(), 0) << name;
    EXPECT_GE(solver.at(name).at("cpu_seconds").get<double>(), 0) << name;
    EXPECT_EQ(solver.at(name).at("all_seconds").size(), 1U) << name;
  }
  for (const char* name :
       {"flops", "factor_entries", "supernodes", "panel_bytes", "flops_per_second"})
    EXPECT_GT(solver.at(name).get<double>(), 0) << name;
  EXPECT_TRUE(solver.at("log_determinant").is_number());
  EXPECT_LT(solver.at("backward_error").get<double>(), 1e-15);
  EXPECT_EQ(solver.at("bad_row"), -1);
}

TEST(CliSparseBench, HasARowForEachMatrixAndDrawsItsFigures) {
  const Scratch scratch;
  const std::string file = scratch.put("a.mtx",
                                       "%%MatrixMarket matrix coordinate real symmetric\n"
                                       "3 3 4\n1 1 2\n2 2 3\n3 3 4\n3 1 1\n");
  const std::string page = scratch.path("sparse.html");
  const std::string output = scratch.path("sparse.json");
  const Json object =
      expect_json(kSparse + Words{"--matrix", "3d7:6," + file, "--peer", "none", "--figures", page,
                                  "-o", output, "--ordering", "amd"});
  EXPECT_EQ(Json::parse(slurp(output)), object);
  EXPECT_EQ(object.at("benchmark"), "sparse");
  EXPECT_EQ(object.at("right_hand_sides"), 3);
  EXPECT_FALSE(object.at("peer").at("installed").get<bool>());
  EXPECT_FALSE(object.at("blas").at("file").get<std::string>().empty());
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    expect_solver_fields(row.at("ours"));
    EXPECT_EQ(row.at("ordering"), "amd");
    EXPECT_FALSE(row.contains("peer"));
    EXPECT_FALSE(row.contains("ratio_to_peer"));
    EXPECT_EQ(row.at("disagreement"), "");
  }
  EXPECT_EQ(object.at("results").at(0).at("matrix"), "3d7:6");
  EXPECT_EQ(object.at("results").at(0).at("n"), 216);
  EXPECT_EQ(object.at("results").at(1).at("entries_lower"), 4);
  const Json& figures = object.at("figures").at(0);
  for (const char* name : {"widths", "levels"}) {
    std::int64_t supernodes = 0;
    double flops = 0;
    for (const Json& bin : figures.at(name)) {
      supernodes += bin.at("supernodes").get<std::int64_t>();
      flops += bin.at("flops").get<double>();
    }
    const Json& row = object.at("results").at(0);
    EXPECT_EQ(row.at("ours").at("supernodes"), supernodes) << name;
    EXPECT_NEAR(flops, row.at("stored_flops").get<double>(), 1e-12 * flops) << name;
  }
  expect_pieces(slurp(page),
                {"3d7:6: operations by inner dimension", "3d7:6: BLAS calls by inner dimension",
                 "3d7:6: supernodes by level", "3d7:6: operations by level", "Seconds"});
}

#ifdef STRATA_PEER_CHOLMOD
TEST(CliSparseBench, CholmodStandsBeside) {
  const Json object = expect_json(kSparse + Words{"--matrix", "hex:3", "--peer-threads", "2"});
  const Json& peer = object.at("peer");
  EXPECT_TRUE(peer.at("installed").get<bool>());
  EXPECT_EQ(peer.at("name"), "CHOLMOD");
  EXPECT_LE(peer.at("openmp_threads").get<int>(), 2);
  EXPECT_FALSE(peer.at("blas").at("file").get<std::string>().empty());
  const Json& row = object.at("results").at(0);
  expect_solver_fields(row.at("ours"));
  expect_solver_fields(row.at("peer"));
  EXPECT_EQ(row.at("peer").at("flops"), row.at("ours").at("flops"));
  EXPECT_GT(row.at("peer").at("analysis_given").at("seconds").get<double>(), 0);
  EXPECT_GT(row.at("ratio_to_peer").get<double>(), 0);
  expect_pieces(expect_done(kSparse + Words{"--matrix", "2d5:12"}),
                {"peer: CHOLMOD", "2d5:12: order 144", "ours", "log-determinant", "cuDSS"});
}

TEST(CliSparseBench, ACollectionHasASpeedup) {
  const Scratch scratch;
  const std::string page = scratch.path("sparse.html");
  expect_pieces(expect_done(kSparse + Words{"--collection", "2", "--figures", page}),
                {"2d5:40: order 1600", "3d7:8: order 512", "report written"});
  expect_pieces(slurp(page), {"Speedup over CHOLMOD", "flops of L"});
}
#endif

TEST(CliSparseBench, GoesOnWithoutThePlugin) {
  // The benchmarks' program is looked for beside strata, and the plugin beside that.
  const Scratch scratch;
  const std::string program = scratch.path("strata");
  std::filesystem::copy_file(STRATA_CLI, program);
  const std::string beside = std::filesystem::path(STRATA_CLI).parent_path() / "strata-bench";
  expect_complaint(run_program({"bench", "sparse"}, program), 3, {"strata-bench", "No such file"});
  std::filesystem::copy_file(beside, scratch.path("strata-bench"));
  const Words words = kSparse + Words{"--matrix", "2d5:9"};
  const Outcome outcome = run_program(words, program);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_pieces(outcome.out, {"peer: CHOLMOD not installed", "2d5:9: order 81"});
  expect_complaint(run_program(words + Words{"--peer", "cholmod"}, program), 3,
                   {"libstrata_peer_cholmod.so"});
  expect_complaint(run_program(words + Words{"--peer", "cudss"}, program), 3, {"cuDSS", "no GPU"});
}

TEST(CliSparseBench, SaysNoToWhatIsNotDefinite) {
  const Scratch scratch;
  const std::string file = scratch.put("a.mtx",
                                       "%%MatrixMarket matrix coordinate real symmetric\n"
                                       "3 3 4\n1 1 2\n2 2 -3\n3 3 4\n3 1 1\n");
  const Outcome outcome = run_program(kSparse + Words{"--matrix", file});
  EXPECT_EQ(outcome.status, 1);
  expect_pieces(outcome.out, {"not positive definite: row 1"});
  expect_pieces(outcome.err, {"not positive definite: row 1"});
}

TEST(CliSparseBench, NamesWhatItDoesNotKnow) {
  expect_refused(kSparse + Words{"--matrix", "2d5:x"}, 2, {"2d5:x"});
  expect_refused(kSparse + Words{"--matrix", "/no/such.mtx"}, 3, {"/no/such.mtx"});
  expect_refused(kSparse + Words{"--ordering", "given"}, 2, {"given"});
  expect_refused(kSparse + Words{"--ordering", "odd"}, 2, {"odd"});
  expect_refused(kSparse + Words{"--peer", "pardiso"}, 2, {"pardiso"});
  expect_refused(kSparse + Words{"77"}, 2, {"77"});
  expect_refused(kSparse + Words{"-o", "/no/such/folder/a.json"}, 3, {"/no/such/folder"});
  expect_pieces(expect_done({"bench", "sparse", "--help"}),
                {"2d5:N", "hex:N", "--collection", "--peer-threads", "--figures", "--ordering"});
}

TEST(CliSparseBench, ComparesBatchesWithFactorsOneByOne) {
  const Scratch scratch;
  const std::string output = scratch.path("batch.json");
  const Json object =
      expect_json(kSparse + Words{"--matrix", "3d7:4,2d5:5", "--batch", "6", "-o", output});
  EXPECT_EQ(Json::parse(slurp(output)), object);
  EXPECT_EQ(object.at("benchmark"), "sparse batch");
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    EXPECT_EQ(row.at("matrices"), 6);
    EXPECT_LT(row.at("backward_error").get<double>(), 1e-15);
    for (const char* who : {"together", "one_by_one"})
      for (const char* what : {"factor", "solve"})
        EXPECT_EQ(row.at(who).at(what).at("all_seconds").size(), 1U) << who << ", " << what;
  }
  EXPECT_EQ(object.at("results").at(0).at("n"), 64);
  expect_refused(kSparse + Words{"--batch", "3", "--collection", "2"}, 2, {"--batch"});
  expect_refused(kSparse + Words{"--batch", "0"}, 2, {"--batch"});
}

TEST(CliSparseBench, MethodsStandBesideOurs) {
  const Scratch scratch;
  const std::string page = scratch.path("methods.html");
  const Json object = expect_json(kSparse + Words{"--matrix", "2d5:20,3d7:6", "--peer", "none",
                                                  "--methods", "--figures", page});
  for (const Json& row : object.at("results")) {
    ASSERT_EQ(row.at("methods").size(), 3U);
    for (const Json& method : row.at("methods")) {
      EXPECT_GT(method.at("seconds").get<double>(), 0);
      EXPECT_GT(method.at("flops_per_second").get<double>(), 0);
      EXPECT_EQ(method.contains("tasks_at_work"), method.at("name") != "CPU");
    }
  }
  EXPECT_EQ(object.at("small").at("fronts").size(), 60U);
  expect_pieces(slurp(page), {"Rates of the methods", "Speedup of batches", "3d7:6: tasks at work",
                              "Fronts of order 8 by batch and streams", "one by one"});
}

TEST(CliSparseBench, OursGoesLevelByLevelWhereThatIsAskedFor) {
  const Json object =
      expect_json(kSparse + Words{"--matrix", "3d7:6", "--peer", "none", "--branches", "batched",
                                  "--level-batch", "5", "--streams", "3"});
  expect_solver_fields(object.at("results").at(0).at("ours"));
  expect_refused(kSparse + Words{"--matrix", "3d7:6", "--branches", "batched", "--batch", "3"}, 2,
                 {"--batch has no --branches batched and no --methods"});
}

}  // namespace
}  // namespace strata::test
