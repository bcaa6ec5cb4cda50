// strata plan, info and bench, and the words of the command line itself.

#include <array>
#include <cctype>
#include <limits>
#include <map>

#include "base/environment_overlay.hpp"
#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

/// The number that stands before " bytes" at the end of a message.
std::string bytes_in(const std::string& message) {
  const std::size_t end = message.rfind(" bytes");
  std::size_t begin = end == std::string::npos ? 0 : end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(message[begin - 1])) != 0) --begin;
  return end == std::string::npos ? "" : message.substr(begin, end - begin);
}

TEST(CliPlan, EmulatedMachine) {
  const Json object = expect_json({"plan", "cholesky", "--n", "3000", "--tile", "256", "--devices",
                                   "emulated:4", "--device-memory", "32MiB"});
  expect_run_fields(object, 3000);
  EXPECT_EQ(object.at("devices").size(), 4U);
  EXPECT_EQ(object.at("seconds"), 0.0);
  EXPECT_GT(object.at("predicted_seconds").get<double>(), 0.0);
  EXPECT_LE(object.at("peak_device_bytes").get<std::int64_t>(), 32 << 20);
  EXPECT_GT(object.at("planned_traffic").at("floor_bytes").get<std::int64_t>(), 0);
}

TEST(CliPlan, WhatStorageWouldDo) {
  for (const Words& what : {Words{"cholesky", "--generated"}, Words{"cholesky"}, Words{"lu"}}) {
    const Words command = Words{"plan"} + what + Words{"--n", "20000", "--devices", "emulated:1"} +
                          Words{"--device-memory", "200MiB"};
    const Json memory = expect_json(command);
    EXPECT_EQ(memory.at("planned_traffic").at("storage_read_bytes"), 0);
    const Words in_storage = command + Words{"--storage", "/none/a,/none/b"};
    expect_refused(in_storage, 2, {"--host-memory"});
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (const std::string host : {"400MiB", "800MiB"}) {
      const Json object = expect_json(in_storage + Words{"--host-memory", host});
      const Json& traffic = object.at("planned_traffic");
      const std::int64_t triangle = std::int64_t{20000} * 20001 / 2 * 8;
      EXPECT_GE(traffic.at("storage_write_bytes").get<std::int64_t>(), triangle);
      EXPECT_LT(traffic.at("storage_read_bytes").get<std::int64_t>(), before) << what[0];
      const std::int64_t coordinates = std::int64_t{20000} * 2 * 8 + 4096;  // and statuses
      EXPECT_LE(object.at("host_bytes").get<std::int64_t>(),
                (host == "400MiB" ? 400 << 20 : 800 << 20) + coordinates);
      EXPECT_GT(object.at("predicted_seconds"), memory.at("predicted_seconds"));
      before = traffic.at("storage_read_bytes").get<std::int64_t>();
    }
  }
  expect_refused({"info", "--storage", "/tmp"}, 2, {"--calibrate"});
}

TEST(CliPlan, TheTileThatIsChosenIsNamed) {
  const Words command{"plan", "cholesky", "--n", "9000", "--devices", "emulated:2"};
  const Words budget{"--device-memory", "64MiB"};
  const Json chosen = expect_json(command + budget);
  EXPECT_EQ(expect_json(command + budget + Words{"--tile", "auto"}).at("tile"), chosen.at("tile"));
  EXPECT_EQ(expect_json(command + budget + Words{"--tile", "700"}).at("tile"), 700);
  EXPECT_EQ(chosen.at("compute_queues"), 2);
  const Json one_queue = expect_json(command + budget + Words{"--threads", "1"});
  EXPECT_EQ(one_queue.at("compute_queues"), 1);
  // Whatever the memory.
  const Json less = expect_json(command + Words{"--device-memory", "16MiB", "--reproducible"});
  const Json more = expect_json(command + Words{"--device-memory", "4GiB", "--reproducible"});
  EXPECT_EQ(less.at("tile"), more.at("tile"));
  EXPECT_GT(less.at("traffic").at("host_to_device_bytes"),
            more.at("traffic").at("host_to_device_bytes"));
}

TEST(CliPlan, AMillionUnknownsNeedNoHardware) {
  const Json object = expect_json({"plan", "cholesky", "--n", "1000000", "--tile", "16384",
                                   "--devices", "emulated:4", "--device-memory", "64GiB"});
  expect_run_fields(object, 1'000'000);
  // Every element of the triangle is read and written at least once.
  const std::int64_t triangle = 8LL * 500'000 * 1'000'001;
  EXPECT_GE(object.at("traffic").at("device_to_host_bytes").get<std::int64_t>(), triangle);
  EXPECT_GE(object.at("planned_traffic").at("floor_bytes").get<std::int64_t>(), 2 * triangle);
}

TEST(CliPlan, TheBudgetThatIsNamedWorks) {
  const Words command{"plan", "cholesky", "--n", "1000", "--devices", "host", "--device-memory"};
  const Outcome outcome = run_program(command + Words{"1000"});
  expect_complaint(outcome, 3, {"1000 bytes", "smallest"});
  EXPECT_EQ(outcome.out, "");
  const std::string smallest = bytes_in(outcome.err);
  ASSERT_FALSE(smallest.empty()) << outcome.err;
  const Json object = expect_json(command + Words{smallest});
  EXPECT_LE(object.at("peak_device_bytes").get<std::int64_t>(), std::stoll(smallest));
  expect_refused(command + Words{std::to_string(std::stoll(smallest) - 1)}, 3, {smallest});
}

TEST(CliPlan, TheTileThatIsNamedIsTheLargestThatWorks) {
  const Words command{"plan", "cholesky", "--n", "1000", "--devices", "emulated:2"};
  const Words budget{"--device-memory", "50000"};
  const Outcome outcome = run_program(command + budget + Words{"--tile", "300"});
  expect_complaint(outcome, 3, {"50000 bytes", "smallest that works with tiles of 300", "host"});
  const std::string before = "largest tile for it is ";
  const std::size_t at = outcome.err.find(before);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const int largest = std::stoi(outcome.err.substr(at + before.size()));
  // Three slots of 45² · 8 bytes, in 256s, and one for a status: 49,408. 46² · 8 is 67 times 256.
  EXPECT_EQ(largest, 45);
  EXPECT_EQ(expect_json(command + budget + Words{"--tile", "45"}).at("tile"), 45);
  expect_refused(command + budget + Words{"--tile", "46"}, 3, {"tile for it is 45"});
  const Words works{"--device-memory", bytes_in(outcome.err), "--tile", "300"};
  EXPECT_EQ(expect_json(command + works).at("tile"), 300);
}

TEST(CliPlan, TheHostMemoryThatIsNamedWorks) {
  const Words command{
      "plan", "cholesky",        "--n",  "1001",   "--devices",    "emulated:1", "--tile",
      "100",  "--device-memory", "1MiB", "--json", "--host-memory"};
  const Outcome outcome = run_program(command + Words{"1MiB"});
  expect_complaint(outcome, 3, {"1.00 MiB", "order 1001", "4.20 MiB"});
  const std::string needed = bytes_in(outcome.err);
  // Ten rows of tiles of 100, and one of one row: 55 tiles, ten strips and a corner. Each of the
  // eleven diagonal tiles has a status of four numbers.
  EXPECT_EQ(needed, std::to_string(8 * (55 * 100 * 100 + 10 * 100 + 1 + 11 * 4)));
  const Outcome works = run_program(command + Words{needed});
  EXPECT_EQ(Json::parse(works.out).at("host_bytes"), std::stoll(needed));
  expect_refused(command + Words{std::to_string(std::stoll(needed) - 1)}, 3, {needed});
}

TEST(CliPlan, WritesWhatItSimulated) {
  const Scratch scratch;
  const std::string text =
      expect_done({"plan", "cholesky", "--n", "500", "--tile", "64", "--devices", "emulated:2",
                   "--device-memory", "4MiB", "--trace", scratch.path("t.json"), "--report",
                   scratch.path("r.html")});
  expect_pieces(text, {"order 500", "floor", "peak memory", "predicted", scratch.path("t.json")});
  EXPECT_TRUE(json_of(slurp(scratch.path("t.json"))).is_object());
  EXPECT_NE(slurp(scratch.path("r.html")).find("simulated"), std::string::npos);
}

TEST(CliPlan, HostMemoryBoundsTheFactor) {
  expect_refused({"plan", "cholesky", "--n", "1000000", "--tile", "16384", "--devices",
                  "emulated:1", "--device-memory", "64GiB", "--host-memory", "1GiB"},
                 3, {"1.00 GiB", "1000000"});
}

TEST(CliPlan, DevicesThatAreNone) {
  const Words command{"plan", "cholesky", "--n", "100", "--devices"};
  expect_refused(command + Words{"cuda:99"}, 3, {"cuda:99"});
  for (const std::string name : {"nonsense", "host:0", "host:x", "host:-1", "host:1,", "emulated:0",
                                 "emulated:x", "emulated:2"}) {
    expect_refused(command + Words{name}, 2, {"'" + name + "'"});
  }
}

TEST(CliPlan, OptionsThatMakeNoSense) {
  const Words command{"plan", "cholesky", "--n", "100", "--devices", "host"};
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--tile", "0"},           {"--tile", "x"},           {"--tile", "-3"},
      {"--tile", "nan"},         {"--tile", "best"},        {"--policy", "magic"},
      {"--device-memory", "1x"}, {"--device-memory", "-5"}, {"--host-memory", "lots"},
      {"--seed", "-1"},          {"--threads", "99"},       {"--precision", "fp12"},
      {"--host-pinning", "now"}};
  for (const auto& [option, value] : cases)
    expect_refused(command + Words{option, value}, 2, {value});
  expect_refused({"plan", "cholesky", "--n", "-1"}, 2, {"'-1'"});
  expect_refused({"plan", "cholesky", "--n", "1e99"}, 2, {"1e99"});
}

TEST(CliInfo, NamesTheHost) {
  const Json object = expect_json({"info"});
  EXPECT_EQ(object.at("version").get<std::string>().find_first_not_of("0123456789."),
            std::string::npos);
  const Json& host = object.at("backends").at(0);
  EXPECT_EQ(host.at("name"), "host");
  EXPECT_GT(host.at("devices").at(0).at("memory_bytes").get<std::int64_t>(), 0);
  EXPECT_TRUE(host.at("devices").at(0).at("numa_node").is_null()) << "a CPU lies on all of them";
  EXPECT_EQ(host.at("kernels").at("potrf").at(0), "fp64");
  expect_pieces(expect_done({"info"}), {"backend host", "potrf", "blas", "backend cuda"});
}

TEST(CliInfo, NamesTheBlasOrWhatIsMissing) {
  const Json blas = expect_json({"info"}).at("blas");
  EXPECT_FALSE(blas.at("file").get<std::string>().empty());
  const std::string text = expect_done({"info"});
  expect_pieces(text, {blas.at("file").get<std::string>(), blas.at("kernels").get<std::string>()});
  const EnvironmentOverlay overlay(EnvironmentOverlay::Variables{{"STRATA_BLAS", "/no/blas.so"}});
  EXPECT_NE(expect_json({"info"}).at("blas").at("error").get<std::string>().find("/no/blas.so"),
            std::string::npos);
  expect_pieces(expect_done({"info"}), {"blas: not available", "/no/blas.so"});
  expect_refused({"bench", "cholesky", "--n", "64", "--devices", "host"}, 3, {"/no/blas.so"});
  expect_done({"plan", "cholesky", "--n", "1000"});
}

TEST(CliInfo, CalibratedRatesServeAPlan) {
  const Scratch scratch;
  const std::string rates = scratch.path("rates.json");
  const Json object = expect_json({"info", "--calibrate", "--devices", "host", "--device-memory",
                                   "64MiB", "-o", rates, "--tiles", "32,64"});
  EXPECT_GT(object.at("flops_per_second").get<double>(), 0.0);
  EXPECT_GE(object.at("kernels").size(), 8U);
  const Words plan{"plan", "cholesky", "--n", "1000", "--tile", "64", "--device-memory", "4MiB"};
  for (const std::string devices : {"host", "emulated:1"}) {
    const Words command = plan + Words{"--devices", devices};
    const Json measured = expect_json(command + Words{"--rates", rates});
    const Json nominal = expect_json(command);
    EXPECT_NE(measured.at("predicted_seconds"), nominal.at("predicted_seconds"));
    EXPECT_EQ(measured.at("flops"), nominal.at("flops"));
  }
  EXPECT_EQ(object.at("device_flops_per_second"), Json::array({object.at("flops_per_second")}));
  // Devices that can copy from each other do.
  EXPECT_EQ(object.at("device_to_device_bytes_per_second"), 0.0);
  std::string text = slurp(rates);
  const std::string none = "\"device_to_device\": null";
  ASSERT_NE(text.find(none), std::string::npos);
  text.replace(text.find("null", text.find(none)), 4,
               R"({"bytes_per_second": 1e15, "latency_seconds": 0})");
  const Words two = plan + Words{"--devices", "emulated:2"};
  const Json apart = expect_json(two + Words{"--rates", rates});
  const Json linked = expect_json(two + Words{"--rates", scratch.put("linked.json", text)});
  EXPECT_EQ(apart.at("traffic").at("device_to_device_bytes"), 0);
  EXPECT_GT(linked.at("traffic").at("device_to_device_bytes").get<std::int64_t>(), 0);
  expect_run_fields(linked, 1000);
  (void)scratch.put("cut.json", text.substr(0, text.size() / 2));
  (void)scratch.put("other.json", R"({"format": "something else"})");
  for (const std::string name : {"cut.json", "other.json", "absent.json"})
    expect_refused(plan + Words{"--rates", scratch.path(name)}, 3, {name});
  expect_refused({"info", "--calibrate", "-o", scratch.path("no/rates.json")}, 3,
                 {"no/rates.json"});
  expect_refused({"info", "-o", scratch.path("x.json")}, 2, {"--calibrate"});
}

TEST(CliBench, WithAndWithoutAPeer) {
  const Words command =
      Words{"bench", "cholesky", "--n", "256,300", "--repeats", "1"} + small_device();
  const Json alone = expect_json(command);
  const Json beside = expect_json(command + Words{"--peer", "openblas"});
  ASSERT_EQ(alone.at("results").size(), 2U);
  ASSERT_EQ(beside.at("results").size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    expect_run_fields(alone.at("results").at(i), i == 0 ? 256 : 300);
    EXPECT_FALSE(alone.at("results").at(i).contains("peer"));
    EXPECT_LT(alone.at("results").at(i).at("residual").get<double>(), 1e-13);
    EXPECT_GT(beside.at("results").at(i).at("peer").at("seconds").get<double>(), 0.0);
    EXPECT_GT(beside.at("results").at(i).at("ratio_to_peer").get<double>(), 0.0);
  }
  expect_refused(command + Words{"--peer", "nobody"}, 2, {"nobody"});
}

TEST(CliBench, EveryPolicyInOneRun) {
  const Words command =
      Words{"bench", "cholesky", "--n", "300", "--tile", "50", "--repeats", "1", "--policies"} +
      Words{"all", "--device-memory", "200KiB"};
  const Json results = expect_json(command).at("results");
  ASSERT_EQ(results.size(), 6U);
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  for (const Json& row : results) {
    const Json& traffic = row.at("traffic");
    std::int64_t bytes = 0;
    for (const auto& [link, value] : traffic.items()) {
      bytes += value.get<std::int64_t>();
      EXPECT_EQ(value, row.at("planned_traffic").at(link)) << row.at("policy");
    }
    EXPECT_LE(bytes, before) << row.at("policy");
    before = bytes;
    EXPECT_LT(row.at("residual").get<double>(), 1e-14);
  }
  EXPECT_EQ(results[0].at("policy"), "sync");
  expect_refused(Words{"bench", "cholesky", "--n", "64", "--policies", "v9"}, 2, {"v9"});
  // Lists are one word: what follows is no part of them.
  for (const Words& words : std::vector<Words>{{"bench", "cholesky", "--n", "64", "77"},
                                               {"bench", "cholesky", "--policies", "opt", "77"},
                                               {"bench", "cholesky", "--variants", "left", "77"},
                                               {"bench", "potf2", "--share-of", "64", "77"},
                                               {"bench", "covariance", "--smoothness", "1", "77"},
                                               {"bench", "mixed", "--range", "0.1", "77"},
                                               {"bench", "mixed", "--accuracies", "1e-5", "77"},
                                               {"info", "--calibrate", "--tiles", "64", "77"}})
    expect_refused(words, 2, {"77"});
}

TEST(CliBench, InCoreWithAPeerInTheSameMemory) {
  const Scratch scratch;
  const std::string page = scratch.path("r.html");
  const Words command{"bench",     "cholesky",   "--in-core",  "--n",      "64,150",
                      "--repeats", "2",          "--peer",     "openblas", "--gemm-seconds",
                      "0.01",      "--variants", "left,right", "--report", page};
  const Json object = expect_json(command + small_device());
  EXPECT_GT(object.at("gemm").at("flops_per_second").get<double>(), 0.0);
  ASSERT_EQ(object.at("results").size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& row = object.at("results").at(i);
    EXPECT_EQ(row.at("n"), i < 2 ? 64 : 150);
    EXPECT_EQ(row.at("variant"), i % 2 == 0 ? "left" : "right");
    EXPECT_EQ(row.at("all_seconds").size(), 2U);
    EXPECT_GT(row.at("flops_per_second").get<double>(), 0.0);
    EXPECT_GT(row.at("ratio_to_peer").get<double>(), 0.0);
    EXPECT_GT(row.at("ratio_to_gemm").get<double>(), 0.0);
    EXPECT_LT(row.at("residual").get<double>(), 1e-13);
    EXPECT_GT(row.at("residual").get<double>(), 0.0);
    const double theirs = row.at("peer").at("residual").get<double>();
    EXPECT_LT(theirs, 1e-15);
    EXPECT_DOUBLE_EQ(row.at("residual_ratio").get<double>(),
                     row.at("residual").get<double>() / theirs);
    EXPECT_EQ(row.at("peer"), object.at("results").at(i - i % 2).at("peer"));
    EXPECT_EQ(row.at("count"), 1);
    EXPECT_EQ(row.at("matrix_bytes"), (i < 2 ? 64 * 64 : 150 * 150) * 8);
  }
  expect_pieces(slurp(page), {"Rate against the order", "openblas"});
  expect_pieces(expect_done(command + small_device()),
                {"residual", "peer's", "GEMM", "peer: openblas"});
}

TEST(CliBench, InCoreOnAnyOfTheMatrices) {
  const Words command =
      Words{"bench", "cholesky", "--in-core", "--n", "90", "--repeats", "1"} + small_device();
  EXPECT_EQ(expect_json(command).at("matrix"), "random");
  EXPECT_FALSE(expect_json(command + Words{"--matrix", "random"}).contains("condition"));
  const Json graded = expect_json(command + Words{"--matrix", "graded", "--condition", "1e14"});
  EXPECT_EQ(graded.at("matrix"), "graded");
  EXPECT_EQ(graded.at("condition"), 1e14);
  EXPECT_LT(graded.at("results").at(0).at("residual").get<double>(), 1e-14);
  const Json matern = expect_json(command + Words{"--matrix", "matern", "--smoothness", "1.5"});
  EXPECT_EQ(matern.at("matrix"), "matern");
  EXPECT_EQ(matern.at("smoothness"), 1.5);
  EXPECT_LT(matern.at("results").at(0).at("residual").get<double>(), 1e-14);
  expect_pieces(expect_done(command + Words{"--matrix", "graded"}), {"graded, condition 1e+06"});
  expect_pieces(expect_done(command + Words{"--matrix", "matern"}), {"matern, smoothness 0.5"});
  expect_refused(command + Words{"--matrix", "hilbert"}, 2, {"hilbert"});
  expect_refused(command + Words{"--condition", "100"}, 2, {"--condition 100", "graded"});
  expect_refused(command + Words{"--matrix", "graded", "--condition", "1e15"}, 2, {"--condition"});
  expect_refused(command + Words{"--matrix", "graded", "--smoothness", "0.5"}, 2, {"matern"});
  expect_refused(command + Words{"--matrix", "matern", "--smoothness", "1"}, 2, {"--smoothness"});
  expect_refused({"bench", "cholesky", "--n", "64", "--matrix", "matern"}, 2, {"--in-core"});
}

TEST(CliBench, Qr) {
  const Words command{"bench", "qr", "--devices", "host", "--m", "3000", "--n", "5,12"};
  const Json object = expect_json(command + Words{"--repeats", "2"});
  EXPECT_EQ(object.at("benchmark"), "qr");
  EXPECT_EQ(object.at("m"), 3000);
  constexpr std::size_t kRows = 19;  // fourteen kernels and five whole calls
  ASSERT_EQ(object.at("results").size(), 2 * kRows);
  for (std::size_t i = 0; i < 2 * kRows; ++i) {
    const Json& row = object.at("results").at(i);
    const Json& read = object.at("results").at(i / kRows * kRows);
    EXPECT_EQ(row.at("n"), i < kRows ? 5 : 12);
    EXPECT_EQ(row.at("all_seconds").size(), 2U);
    EXPECT_DOUBLE_EQ(row.at("times_read").get<double>(),
                     row.at("seconds").get<double>() / read.at("seconds").get<double>());
  }
  expect_pieces(expect_done(command), {"3000 rows", "times read", "gram dd", "solve"});
  const Json bare =
      expect_json(command + Words{"--repeats", "1", "--methods", "cholqr2", "--no-verify"});
  const Json& last = bare.at("results").at(bare.at("results").size() - 1);
  EXPECT_EQ(object.at("verify"), true);
  EXPECT_EQ(bare.at("verify"), false);
  EXPECT_LT(last.at("orthogonality").get<double>(), 1e-14);  // it is told all the same
  expect_refused({"bench", "qr", "--devices", "host", "--m", "3", "--n", "4"}, 2, {"4 columns"});
}

TEST(CliBench, Covariance) {
  const Words command{"bench", "covariance", "--devices", "host", "--n", "65", "--repeats", "3"};
  const Json object = expect_json(command);
  EXPECT_EQ(object.at("benchmark"), "covariance");
  EXPECT_EQ(object.at("n"), 65);
  const double copy = object.at("copy_bytes_per_second").get<double>();
  ASSERT_EQ(object.at("results").size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    const Json& row = object.at("results").at(i);
    const double bytes = i < 5 ? 8 : 4;
    EXPECT_EQ(row.at("precision"), i < 5 ? "fp64" : "fp32");
    EXPECT_EQ(row.at("smoothness"), (std::array{0.5, 1.5, 2.5, 1.0, 0.7}[i % 5]));
    EXPECT_EQ(row.at("all_seconds").size(), 3U);
    const double rate = row.at("elements_per_second").get<double>();
    EXPECT_DOUBLE_EQ(rate, 65 * 65 / row.at("seconds").get<double>());
    EXPECT_DOUBLE_EQ(row.at("bytes_per_second").get<double>(), bytes * rate);
    EXPECT_DOUBLE_EQ(row.at("share_of_copy").get<double>(), bytes * rate / copy);
    const double error = row.at("relative_error").get<double>();
    EXPECT_LT(error, i < 5 ? 1e-13 : 0x1p-23);
    EXPECT_GT(error, i < 5 ? 0 : 1e-9);  // single precision shows
  }
  const Words some{"--precision", "fp32", "--smoothness", "0.5,12"};
  EXPECT_EQ(expect_json(command + some).at("results").size(), 2U);
  expect_pieces(expect_done(command), {"Gelements/s", "% of copy", "2.5", "fp32"});
  expect_refused(command + Words{"--smoothness", "51"}, 2, {"smoothness is 51"});
  expect_refused(command + Words{"--precision", "fp16"}, 2, {"fp16"});
  expect_refused(
      Words{"bench", "covariance", "--devices", "host", "--n", "4000", "--device-memory", "1MiB"},
      3, {"1.00 MiB"});
}

TEST(CliBench, ABatchInCore) {
  const Words command{"bench",     "cholesky",    "--in-core", "--n", "32,33",
                      "--repeats", "1",           "--batch",   "20",  "--peer",
                      "openblas",  "--precision", "fp32"};
  const Json object = expect_json(command + small_device());
  EXPECT_EQ(object.at("benchmark"), "potrf_batched");
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    EXPECT_EQ(row.at("count"), 20);
    EXPECT_LT(row.at("residual").get<double>(), 1e-5);
    EXPECT_GT(row.at("peer").at("seconds").get<double>(), 0.0);
  }
}

TEST(CliBench, InCoreOptionsThatMakeNoSense) {
  const Words plain = Words{"bench", "cholesky", "--n", "64", "--repeats", "1"};
  const Words core = plain + Words{"--in-core"};
  expect_refused(plain + small_device() + Words{"--batch", "3"}, 2, {"--batch", "--in-core"});
  expect_refused(core + small_device() + Words{"--peer", "cusolver"}, 2, {"'cusolver'"});
  expect_refused(core + small_device() + Words{"--peer", "magma"}, 2, {"'magma'", "openblas"});
  expect_refused(core + small_device() + Words{"--variants", "left,up"}, 2, {"'up'"});
  expect_refused(core + small_device() + Words{"--ib", "5"}, 2, {"ib is 5"});
  expect_refused(plain + small_device() + Words{"--ib", "4"}, 2, {"--ib", "--in-core"});
  expect_refused(plain + small_device() + Words{"--variant", "exclusive"}, 2, {"'exclusive'"});
  expect_refused(core + Words{"--devices", "host:2"}, 2, {"'host:2'"});
  expect_refused(core + Words{"--devices", "host", "--device-memory", "1KiB"}, 3, {"1.00 KiB"});
}

TEST(CliBench, TheHostHasNothingToTune) {
  const Scratch scratch;
  const std::string table = scratch.path("t.json");
  const Words command{"bench", "potf2", "--n", "64,100", "--repeats", "1"};
  const Json object =
      expect_json(command + small_device() + Words{"--tune", "-o", table, "--peer"});
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    EXPECT_EQ(row.at("measurements").size(), 1U);
    EXPECT_EQ(row.at("best").at("variant"), "auto");
    EXPECT_GT(row.at("best").at("flops_per_second").get<double>(), 0.0);
    EXPECT_GT(row.at("ratio_to_peer").get<double>(), 0.0);
  }
  EXPECT_FALSE(object.contains("tuning"));
  EXPECT_EQ(slurp(table), "");
  expect_pieces(expect_done(command + small_device()), {"nothing to tune"});
  expect_refused(command + small_device() + Words{"-o", table}, 2, {"--tune"});
  expect_refused(command + small_device() + Words{"--tune", "-o", scratch.path("no/t.json")}, 3,
                 {"no/t.json"});
}

TEST(CliBench, SmallOrdersAndTheirShareOfTheWhole) {
  const Scratch scratch;
  const std::string page = scratch.path("p.html");
  const Words command{"bench", "potf2", "--n", "64", "--repeats", "1", "--devices", "host"};
  const Json object = expect_json(
      command + Words{"--device-memory", "16MiB", "--share-of", "300,64", "--report", page});
  const Json& small = object.at("small");
  ASSERT_EQ(small.size(), 5U);
  std::map<std::int64_t, double> seconds;
  for (const Json& order : small) {
    seconds[order.at("n").get<std::int64_t>()] = order.at("seconds").get<double>();
    EXPECT_GT(order.at("seconds").get<double>(), 0.0);
  }
  EXPECT_EQ(seconds.begin()->first, 64);
  EXPECT_EQ(seconds.rbegin()->first, 1024);
  const Json& whole = object.at("share_of").at(0);
  EXPECT_EQ(whole.at("n"), 300);
  const Json& bounds = whole.at("upper_bounds");
  ASSERT_EQ(bounds.size(), 3U);  // 512 is no block of 300
  for (const Json& bound : bounds) {
    const auto nb = bound.at("nb").get<std::int64_t>();
    const double sum = 300 * seconds.at(nb) / static_cast<double>(nb);
    EXPECT_NEAR(bound.at("seconds").get<double>(), sum, 1e-12 * sum);
    const double share = sum / whole.at("seconds").get<double>();
    EXPECT_NEAR(bound.at("share").get<double>(), share, 1e-12 * share);
  }
  EXPECT_TRUE(object.at("share_of").at(1).at("upper_bounds").empty());
  expect_pieces(slurp(page), {"small order", "upper bound", "n = 300"});
  const Words tight = command + Words{"--device-memory", "4MiB"};
  const Json fits = expect_json(tight);
  EXPECT_EQ(fits.at("small").size(), 4U);  // 1024 takes 8 MiB
  EXPECT_FALSE(fits.contains("share_of"));
  expect_pieces(expect_done(tight + Words{"--share-of", "200"}), {"n = 200", "upper bound"});
  expect_refused(tight + Words{"--share-of", "1024"}, 3, {"4.00 MiB"});
  expect_refused(tight + Words{"--share-of", "0"}, 2, {"--share-of"});
}

TEST(CliWords, HelpAndVersion) {
  expect_pieces(expect_done({"--version"}), {"strata 0."});
  expect_pieces(expect_done({"--help"}),
                {"info", "plan", "solve", "loglik", "fit", "predict", "bench", "Examples"});
  for (const std::string verb : {"info", "solve", "loglik", "fit", "predict"})
    expect_pieces(expect_done({verb, "--help"}), {verb, "--json", "--device-memory"});
  expect_pieces(expect_done({"plan", "cholesky", "--help"}), {"--n", "emulated:"});
}

TEST(CliWords, WordsThatAreNotKnown) {
  expect_refused({}, 2,
                 {"info, plan, solve, inverse, loglik, variogram, fit, predict, crossval, "
                  "simulate, kl, qr, lstsq, "
                  "eigs, analyze, factor, logdet, variances, schur, shift, "
                  "bench",
                  "--help"});
  expect_refused({"conquer"}, 2, {"'conquer'", "info, plan, solve"});
  expect_refused({"plan"}, 2, {"strata plan", "cholesky"});
  expect_refused({"plan", "magic"}, 2, {"'magic'", "cholesky"});
  expect_refused({"--frobnicate"}, 2, {"'--frobnicate'"});
  expect_refused({"fit", "d.csv", "--x", "x", "--y", "y", "--valu", "z"}, 2, {"'--valu'"});
  expect_refused({"solve", "a.npy", "b.npy", "c.npy", "-o", "x.npy"}, 2, {"'c.npy'"});
  expect_refused({"solve", "a.npy", "-o", "x.npy"}, 2, {"b is required", "strata solve --help"});
  expect_refused({"fit", "d.csv", "--x", "x", "--y", "y"}, 2, {"--value"});
  expect_refused({"plan", "cholesky", "--n"}, 2, {"--n"});
  expect_refused({"plan", "cholesky", "--n", "2.5"}, 2, {"2.5"});
}

}  // namespace
}  // namespace strata::test
