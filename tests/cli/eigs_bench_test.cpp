// strata bench eigs: a row for each order, s and orthogonalization, errors that are errors, its
// page, and what is refused.

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

const Words kEigs{
    "bench", "eigs",         "--devices", "host", "--m", "300,500", "--k",
    "6",     "--basis-size", "24",        "--s",  "4,8", "--orth",  "cholqr-wide,auto"};

TEST(CliBench, EigsHasARowForEachOrderAndBlock) {
  const Json object = expect_json(kEigs);
  EXPECT_EQ(object.at("benchmark"), "eigs");
  EXPECT_EQ(object.at("basis"), "lanczos");
  ASSERT_EQ(object.at("results").size(), 12U);
  std::size_t at = 0;
  for (const int m : {300, 500}) {
    for (const int s : {1, 1, 4, 4, 8, 8}) {
      const Json& row = object.at("results").at(at++);
      EXPECT_EQ(row.at("filter").get<bool>(), at % 6 == 2);
      EXPECT_EQ(row.at("m"), m);
      EXPECT_EQ(row.at("s"), s);
      const double seconds = row.at("seconds").get<double>();
      double parts = 0;
      for (const auto& [part, of_part] : row.at("seconds_by_part").items())
        parts += of_part.get<double>();
      EXPECT_NEAR(parts, seconds, 0.01 + seconds / 10);
      if (row.at("orthogonalization") != "auto") continue;
      EXPECT_TRUE(row.at("ok").get<bool>()) << row.at("why");
      EXPECT_LE(row.at("largest_error").get<double>(), 1e-10);
      EXPECT_LE(row.at("largest_residual").get<double>(), 1e-10);
      EXPECT_LE(row.at("orthogonality").get<double>(), 1e-12);
      EXPECT_EQ(row.at("traffic").at("host_to_device_bytes"),
                row.at("planned_traffic").at("host_to_device_bytes"));
    }
  }
}

TEST(CliBench, EigsMayHaveTheFilterAlone) {
  const Json object = expect_json({"bench", "eigs", "--devices", "host", "--m", "4000", "--k", "6",
                                   "--basis-size", "20", "--only-filtered"});
  ASSERT_EQ(object.at("results").size(), 1U);
  const Json& row = object.at("results").at(0);
  EXPECT_TRUE(row.at("ok").get<bool>()) << row.at("why");
  EXPECT_GT(row.at("filter_degree").get<int>(), 10);
  EXPECT_LE(row.at("largest_error").get<double>(), 1e-10);
}

TEST(CliBench, EigsDrawsItsFigures) {
  const Scratch scratch;
  const std::string page = scratch.path("eigs.html");
  const std::string said = expect_done(kEigs + Words{"--figures", page});
  expect_pieces(said, {"restarts", "lanczos", "lanczos, filtered", "s = 8 auto"});
  std::ifstream file(page);
  const std::string html((std::istreambuf_iterator<char>(file)), {});
  for (const char* piece : {"CA-Lanczos", "Time by part, m = 500", "Ritz vectors", "s = 4 auto"})
    EXPECT_NE(html.find(piece), std::string::npos) << piece;
}

TEST(CliBench, EigsNamesWhatItDoesNotKnow) {
  EXPECT_EQ(run_program({"bench", "eigs", "--basis", "hermite"}).status, 2);
  EXPECT_EQ(run_program({"bench", "eigs", "--m", "50", "--k", "60"}).status, 2);
}

}  // namespace
}  // namespace strata::test
