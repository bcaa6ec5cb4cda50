// The exported trace, read back by an independent JSON parser.

#include "strata/trace_export.hpp"
#include "base/input_file.hpp"
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "strata/error.hpp"

namespace strata {
namespace {

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "strata_trace_export";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

Json exported(const Trace& trace, const std::string& name) {
  const std::string path = scratch(name);
  write_chrome_trace(trace, path);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  return Json::parse(InputFile(path, "trace").read_all());
}

Trace two_devices() {
  Trace trace;
  trace.queues = {{"cuda:0", "copy in", 0}, {"cuda:0", "compute 0", 0}, {"cuda:1", "copy in", 1}};
  trace.families = {"L", "B"};
  Span load;
  load.kind = SpanKind::load;
  load.queue = 2;
  load.bytes = std::int64_t{5} << 33;
  load.family = 1;
  load.row = 70000;
  load.col = 3;
  load.begin = 0.25;
  load.end = 0.5;
  trace.add(load);
  Span compute;
  (void)trace.operation_number("gemm");
  compute.operation = trace.operation_number("trsm");
  compute.queue = 1;
  compute.flops = 1.25e12;
  compute.calls = 7;
  compute.family = 0;
  compute.row = 4;
  compute.col = 2;
  compute.begin = 0.5;
  compute.end = 0.5000015;
  trace.add(compute);
  return trace;
}

TEST(TraceExport, spans_become_complete_events_in_microseconds) {
  const Json file = exported(two_devices(), "spans.json");
  std::vector<Json> events;
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("ph") == "X") events.push_back(event);
  }
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("name"), "load");
  EXPECT_EQ(events[0].at("pid"), 1);
  EXPECT_EQ(events[0].at("tid"), 2);
  EXPECT_DOUBLE_EQ(events[0].at("ts").get<double>(), 250000);
  EXPECT_DOUBLE_EQ(events[0].at("dur").get<double>(), 250000);
  EXPECT_EQ(events[0].at("args").at("bytes").get<std::int64_t>(), std::int64_t{5} << 33);
  EXPECT_EQ(events[0].at("args").at("row"), 70000);
  EXPECT_EQ(events[0].at("args").at("col"), 3);
  EXPECT_EQ(events[0].at("args").at("block"), "B(70000,3)");
  EXPECT_EQ(events[1].at("name"), "trsm");
  EXPECT_EQ(events[1].at("args").at("block"), "L(4,2)");
  EXPECT_EQ(events[1].at("args").at("row"), 4);
  EXPECT_EQ(events[1].at("args").at("col"), 2);
  EXPECT_EQ(events[1].at("args").at("calls"), 7);
  EXPECT_EQ(events[1].at("args").at("flops").get<double>(), 1.25e12);
  EXPECT_NEAR(events[1].at("dur").get<double>(), 1.5, 1e-3);
}

TEST(TraceExport, devices_are_processes_and_queues_are_threads) {
  const Json file = exported(two_devices(), "names.json");
  std::map<int, std::string> processes;
  std::map<int, std::string> threads;
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("name") == "process_name")
      processes[event.at("pid").get<int>()] = event["args"]["name"].get<std::string>();
    if (event.at("name") == "thread_name")
      threads[event.at("tid").get<int>()] = event["args"]["name"].get<std::string>();
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "cuda:0"}, {1, "cuda:1"}}));
  EXPECT_EQ(threads,
            (std::map<int, std::string>{{0, "copy in"}, {1, "compute 0"}, {2, "copy in"}}));
}

TEST(TraceExport, notes_become_instant_events) {
  Trace trace = two_devices();
  trace.notes = {{0.25, "shrink: \"8\" of 15"}, {0.5, "grow"}};
  std::vector<Json> found;
  const Json document = exported(trace, "notes.json");
  for (const Json& event : document.at("traceEvents"))
    if (event.at("ph") == "i") found.push_back(event);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("name"), "shrink: \"8\" of 15");
  EXPECT_EQ(found[0].at("ts"), 250000.0);
  EXPECT_EQ(found[1].at("name"), "grow");
  Trace alone;  // no comma before the first
  alone.notes = {{0, "begin"}};
  EXPECT_EQ(exported(alone, "note.json").at("traceEvents").size(), 1U);
}

TEST(TraceExport, an_empty_trace_is_still_a_document) {
  EXPECT_TRUE(exported(Trace{}, "empty.json").at("traceEvents").empty());
  Trace no_queues;  // a span of a queue that was never named
  no_queues.add(Span{});
  EXPECT_EQ(exported(no_queues, "unnamed.json").at("traceEvents").size(), 1U);
}

TEST(TraceExport, hostile_names_and_numbers_do_not_break_the_document) {
  Trace trace;
  const std::string name = "q\"\\\n</script>\x01\xff";
  trace.queues = {{name, name, 0}};
  trace.families = {name};
  trace.operations = {name};
  Span span;
  span.operation = 250;
  span.row = -1;
  span.begin = std::numeric_limits<double>::quiet_NaN();
  span.end = std::numeric_limits<double>::infinity();
  span.flops = -std::numeric_limits<double>::infinity();
  trace.spans.push_back(span);
  span.operation = 0;
  span.family = 200;  // one that was never named
  trace.spans.push_back(span);
  const Json file = exported(trace, "hostile.json");
  ASSERT_EQ(file.at("traceEvents").size(), 5U);
  EXPECT_EQ(file["traceEvents"][0]["args"]["name"], "q\"\\\n</script>\x01\xEF\xBF\xBD");
  EXPECT_EQ(file["traceEvents"][3]["name"], "operation 250");
  EXPECT_EQ(file["traceEvents"][3]["dur"], 0.0);
  EXPECT_EQ(file["traceEvents"][3]["args"]["block"], "q\"\\\n</script>\x01\xEF\xBF\xBD(-1,0)");
  EXPECT_EQ(file["traceEvents"][4]["name"], "q\"\\\n</script>\x01\xEF\xBF\xBD");
  EXPECT_EQ(file["traceEvents"][4]["args"]["block"], "200(-1,0)");
}

TEST(TraceExport, unwritable_path_is_a_storage_error_that_names_it) {
  for (const std::string& path : {scratch("absent/trace.json"), scratch("")}) {
    try {
      write_chrome_trace(two_devices(), path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
}

TEST(TraceExport, an_older_file_is_replaced) {
  const std::string path = scratch("replaced.json");
  std::ofstream(path) << std::string(100000, 'x');
  EXPECT_EQ(exported(two_devices(), "replaced.json").at("traceEvents").size(), 10U);
}

}  // namespace
}  // namespace strata
