// strata bench gmres and bench qr: rows, pages and what is refused; pages of qr, solve and eigs.

#include <algorithm>
#include <fstream>

#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

const Words kHost{"--devices", "host:1", "--device-memory", "256MiB"};

TEST(CliTallBench, GmresStandsBesideGmresAndDrawsItsFigures) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Scratch scratch;
  const std::string page = scratch.path("gmres.html");
  const Json object = expect_json(Words{"bench", "gmres", "--side", "8", "--restart", "20",
                                        "--basis", "newton", "--s", "5,10", "--orth", "cholqr,auto",
                                        "--device-counts", "2", "--figures", page} +
                                  kHost);
  EXPECT_EQ(object.at("benchmark"), "gmres");
  EXPECT_EQ(object.at("n"), 512);
  ASSERT_EQ(object.at("results").size(), 9U);
  for (const Json& row : object.at("results")) {
    EXPECT_TRUE(row.at("ok").get<bool>());
    EXPECT_EQ(row.at("history").size(), row.at("restarts").get<std::size_t>());
    double parts = 0;
    for (const auto& [name, seconds] : row.at("seconds_by_part").items())
      parts += seconds.get<double>();
    EXPECT_NEAR(parts, row.at("seconds").get<double>(), 0.3 * parts + 1e-3);
  }
  EXPECT_EQ(object.at("results").at(0).at("orthogonalization"), "cgs2");
  EXPECT_EQ(object.at("results").at(8).at("devices").size(), 2U);
  ASSERT_EQ(object.at("blocks").size(), 2U);
  EXPECT_EQ(object.at("blocks").at(0).at("s"), 5);
  EXPECT_LE(object.at("blocks").at(0).at("results").at(0).at("twice").at("residual"), 1e-14);
  expect_pieces(slurp(page),
                {"Orthogonality of each block, (5, 20)", "Orthogonality of each block, (10, 20)",
                 "ε·κ²", "Means over the blocks", "Residual by restart", "Time by part",
                 "Seconds by number of devices", "Restarts and seconds"});
}

TEST(CliTallBench, GmresTakesOrthogonalizationsOfBlocksAndPreconditioners) {
  const Words options{"bench",
                      "gmres",
                      "--side",
                      "10",
                      "--restart",
                      "20",
                      "--s",
                      "5",
                      "--basis",
                      "monomial",
                      "--orth",
                      "auto",
                      "--repeats",
                      "1",
                      "--block-orth",
                      "classical,pythagorean,two-stage",
                      "--panel",
                      "10",
                      "--block-size",
                      "100",
                      "--preconditioner",
                      "none,block-jacobi"};
  const Json object = expect_json(options + kHost);
  EXPECT_EQ(object.at("panel"), 10);
  EXPECT_EQ(object.at("block_size"), 100);
  ASSERT_EQ(object.at("results").size(), 10U);
  const Json& classical = object.at("results").at(7);
  const Json& pythagorean = object.at("results").at(8);
  const Json& staged = object.at("results").at(9);
  EXPECT_EQ(classical.at("block_orthogonalization"), "classical");
  EXPECT_EQ(pythagorean.at("block_orthogonalization"), "pythagorean");
  EXPECT_EQ(staged.at("block_orthogonalization"), "two-stage");
  EXPECT_EQ(staged.at("preconditioner"), "block-jacobi");
  EXPECT_EQ(object.at("results").at(4).at("preconditioner"), "none");
  const auto sums_of = [](const Json& row) {
    return row.at("reductions").get<double>() / row.at("iterations").get<double>();
  };
  EXPECT_LT(sums_of(pythagorean), sums_of(classical));
  expect_pieces(expect_done(options + kHost), {"sums", "gmres cgs2, block-jacobi",
                                               "s = 5 monomial auto two-stage, block-jacobi"});
  expect_refused({"bench", "gmres", "--block-orth", "odd"}, 2, {"odd"});
  expect_refused({"bench", "gmres", "--preconditioner", "custom"}, 2, {"custom"});
  expect_refused({"bench", "gmres", "--panel", "30"}, 2, {"30"});
}

TEST(CliTallBench, GmresTakesGeneratedMatricesAndFiles) {
  const Scratch scratch;
  const std::string file = scratch.path("A.mtx");
  std::ofstream(file) << "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n2 2 3\n"
                         "3 3 4\n1 3 1\n";
  expect_pieces(expect_done(Words{"bench", "gmres", "--matrix", file, "--restart", "3", "--s", "2",
                                  "--orth", "auto"} +
                            kHost),
                {"3 unknowns, 4 entries", "gmres cgs2", "gmres mgs", "s = 2 newton auto"});
  expect_pieces(
      expect_done(Words{"bench", "gmres", "--matrix", "cantilever", "--side", "2", "--restart",
                        "20", "--restarts-max", "2", "--s", "5", "--orth", "auto"} +
                  kHost),
      {"2 x 2 x 33 nodes: 396 unknowns"});
  expect_refused({"bench", "gmres", "--matrix", file, "--side", "4"}, 2, {"--side 4"});
  expect_refused({"bench", "gmres", "--s", "70"}, 2, {"70"});
  expect_refused({"bench", "gmres", "--orth", "odd"}, 2, {"odd"});
  expect_refused({"bench", "gmres", "--basis", "odd"}, 2, {"odd"});
}

TEST(CliTallBench, QrTakesMethodsAndDrawsItsFigures) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Scratch scratch;
  const std::string page = scratch.path("qr.html");
  const Json object = expect_json(Words{
      "bench", "qr", "--m", "1000", "--n", "5", "--repeats", "1", "--peer", "--methods", "auto,mgs",
      "--figures", page, "--passes", "1", "--devices", "host:1", "--device-memory", "64MiB"});
  EXPECT_EQ(object.at("m"), 1000);
  std::size_t whole = 0;
  for (const Json& row : object.at("results")) {
    if (!row.contains("passes")) continue;
    ++whole;
    EXPECT_GT(row.at("ratio_to_peer").get<double>(), 0);
    EXPECT_LE(row.at("orthogonality").get<double>(), 1e-13);
  }
  EXPECT_EQ(whole, 2U);
  const Json& figures = object.at("figures");
  EXPECT_EQ(figures.at("errors").size(), 28U);
  EXPECT_EQ(figures.at("products").at(0).at("total"), 13);
  for (const char* what : {"mgs", "cholqr-wide2", "tsqr", "mrcqr", "openblas geqrf, orgqr"}) {
    const auto one = std::find_if(figures.at("rates").begin(), figures.at("rates").end(),
                                  [&](const Json& rate) { return rate.at("what") == what; });
    ASSERT_NE(one, figures.at("rates").end()) << what;
    EXPECT_GT(one->at("flops_per_second").get<double>(), 0) << what;
  }
  const auto of_v = std::count_if(
      object.at("results").begin(), object.at("results").end(),
      [](const Json& row) { return row.at("what").get<std::string>().starts_with("inner"); });
  EXPECT_EQ(of_v, 4);
  EXPECT_EQ(std::count_if(figures.at("tuned").begin(), figures.at("tuned").end(),
                          [](const Json& row) { return row.at("taken").get<bool>(); }),
            1);
  expect_pieces(slurp(page),
                {"K20: orthogonality after each pass", "synthetic: condition after each pass",
                 "Rate against the rows, 30 columns", "Gram matrices of doubles",
                 "Gram matrices of floats", "Shares of one pass", "sums over all rows",
                 "Instructions for one product", "what is tuned", "rows of a block"});
  expect_refused({"bench", "qr", "--m", "100", "--methods", "odd"}, 2, {"odd"});
}

TEST(CliTallBench, PagesShowTheWayOfAMethod) {
  const Scratch scratch;
  const std::string a = scratch.path("A.mtx");
  constexpr int kOrder = 60;
  {
    std::ofstream file(a);
    file << "%%MatrixMarket matrix coordinate real symmetric\n"
         << kOrder << " " << kOrder << " " << 2 * kOrder - 1 << "\n";
    for (int i = 1; i <= kOrder; ++i) {
      file << i << " " << i << " 2.5\n";
      if (i > 1) file << i << " " << i - 1 << " -1\n";
    }
  }
  const DenseMatrix<double> b = random_columns(kOrder, 1, 3);
  write_npy(scratch.path("b.npy"), b.view());
  const std::string page = scratch.path("page.html");
  (void)expect_done(Words{"solve", a, scratch.path("b.npy"), "-o", scratch.path("x.npy"),
                          "--method", "gmres", "--s", "4", "--restart", "12", "--report", page} +
                    small_device());
  expect_pieces(slurp(page), {"Residual by cycle", "computed with A", "by the projected problem",
                              "Condition of the projected blocks", "Loss of orthogonality",
                              "Decisions about each block", "what was decided about them"});
  (void)expect_done(Words{"eigs", a, "--k", "3", "--s", "4", "--report", page} + small_device());
  expect_pieces(slurp(page), {"Residual by cycle", "Residual of each pair, computed with A",
                              "Decisions about each block"});
  const DenseMatrix<double> v = random_columns(300, 4, 5);
  write_npy(scratch.path("V.npy"), v.view());
  (void)expect_done(Words{"qr", scratch.path("V.npy"), "--report", page} + small_device());
  expect_pieces(slurp(page), {"Condition and orthogonality step by step", "cholesky"});
}

}  // namespace
}  // namespace strata::test
