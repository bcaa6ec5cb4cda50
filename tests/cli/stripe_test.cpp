// strata plan lu and bench lu by stripes: orders and their bytes, what is printed, what is refused.

#include <filesystem>
#include <limits>

#include "tests/cli/program.hpp"
#include "tests/io/scratch.hpp"

namespace strata::test {
namespace {

const Words kPlan{"plan",
                  "lu",
                  "--n",
                  "20000",
                  "--devices",
                  "emulated:1",
                  "--storage",
                  "/none/a",
                  "--host-memory",
                  "800MiB",
                  "--stripe",
                  "1000",
                  "--device-memory",
                  "210MiB"};

std::int64_t bytes_of_storage(const Json& traffic) {
  return traffic.at("storage_read_bytes").get<std::int64_t>() +
         traffic.at("storage_write_bytes").get<std::int64_t>();
}

TEST(CliStripes, PlansMoveLessTheMoreTheirOrderReuses) {
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const std::string order : {"basic", "zigzag", "meta-zigzag:2", "meta-zigzag:3"}) {
    const Json object = expect_json(kPlan + Words{"--order", order});
    const std::int64_t bytes = bytes_of_storage(object.at("planned_traffic"));
    EXPECT_LT(bytes, before) << order;
    before = bytes;
    EXPECT_EQ(object.at("policy"), "idle " + order);
    EXPECT_EQ(object.at("tile"), 1000);
  }
  // Furthest next use hides what going forth and back gains.
  std::int64_t hidden[2] = {};
  for (const int back : {0, 1})
    hidden[back] = bytes_of_storage(
        expect_json(kPlan + Words{"--eviction", "opt", "--order", back == 0 ? "basic" : "zigzag"})
            .at("planned_traffic"));
  EXPECT_GE(static_cast<double>(hidden[1]), 0.95 * static_cast<double>(hidden[0]));
  expect_pieces(expect_done(kPlan + Words{"--order", "zigzag"}), {"stripe 1000", "idle zigzag"});
  const Json gauss = expect_json(kPlan + Words{"--order", "meta-zigzag:3", "--gauss"});
  EXPECT_LT(bytes_of_storage(gauss.at("planned_traffic")), before);
}

TEST(CliStripes, PlansSayWhatTheyDoNotTake) {
  expect_refused(kPlan, 2, {"--stripe requires --order"});
  for (const std::string order : {"upwards", "meta-zigzag", "meta-zigzag:0"})
    expect_refused(kPlan + Words{"--order", order}, 2, {order, "basic, zigzag or meta-zigzag:K"});
  expect_refused(kPlan + Words{"--order", "basic", "--pivoting", "partial"}, 2,
                 {"partial", "none, local:ROWS or pairwise"});
  expect_refused(kPlan + Words{"--order", "basic", "--eviction", "v3"}, 2, {"v3"});
  // A stripe's blocks do not fit.
  Words narrow{"plan", "lu", "--n", "20000", "--devices", "emulated:1", "--device-memory"};
  narrow = narrow + Words{"20MiB", "--order", "zigzag", "--stripe", "2000"};
  expect_refused(narrow, 3, {"emulated:0"});
}

TEST(CliStripes, BenchHasARowForEachSize) {
  const Scratch folder;
  std::filesystem::create_directory(folder.path("d"));
  const Words bench{"bench",  "lu",       "--n",       "300,420",         "--devices",
                    "host:1", "--json",   "--storage", folder.path("d"),  "--host-memory",
                    "400KiB", "--stripe", "30",        "--device-memory", "60KiB"};
  const Json object =
      Json::parse(expect_done(bench + Words{"--order", "meta-zigzag:2", "--pivoting", "local:10"}));
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    EXPECT_EQ(row.at("policy"), "idle meta-zigzag:2");
    for (const char* link : {"storage_read_bytes", "storage_write_bytes", "host_to_device_bytes"})
      EXPECT_EQ(row.at("traffic").at(link), row.at("planned_traffic").at(link)) << link;
    EXPECT_LT(row.at("largest_residual").get<double>(), 1e-8);
    EXPECT_GT(row.at("growth").get<double>(), 1);
    EXPECT_FALSE(row.contains("refusal"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("d"))) << "nothing is left";
  expect_refused({"bench", "lu", "--n", "300", "--order", "zigzag"}, 2, {"--storage"});
}

}  // namespace
}  // namespace strata::test
