// The tasks of passes: how sums in double-double are formed, and where.

#include "qr/row_passes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/tall/gram.hpp"
#include "qr/pass_executor.hpp"

namespace strata {
namespace {

TEST(RowPass, SumsInDoubleDoubleAreOfTheChosenKind) {
  const auto variants_of = [](RowProblem problem) {
    std::map<std::string_view, std::uint32_t> variants;
    problem.m = 5000;
    problem.n = 30;
    problem.wide_sums = kDigitSums;
    const Schedule schedule = row_pass(problem);
    for (std::int64_t step = 0; step < schedule.steps; ++step) {
      TaskList tasks;
      schedule.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks())
        variants[task.operation->name] = task.variant;
    }
    return variants;
  };
  const auto sum = [&](RowPass pass, std::vector<Element> stages, const Operation& operation,
                       Element of_b, Element of_v) {
    const auto variants = variants_of({.pass = pass,
                                       .element = of_v,
                                       .sum = of_b,
                                       .factor = of_v,
                                       .stages = std::move(stages),
                                       .beside = pass == RowPass::form_gram ? 30 : 0});
    EXPECT_TRUE(variants.contains(operation.name)) << operation.name;
    for (const auto& [name, variant] : variants) {
      const bool digits = name == operation.name && of_b == Element::dd;
      EXPECT_EQ(variant, digits ? kDigitSums : kExtraction) << name;
    }
  };
  for (const Element b : {Element::dd, Element::fp64}) {
    sum(RowPass::gram, {}, gram, b, Element::fp64);
    sum(RowPass::apply_gram, {}, apply_gram, b, Element::fp64);
    sum(RowPass::apply_gram, {Element::fp64}, apply_gram, b, Element::fp64);  // V is kept
    sum(RowPass::solve_gram, {}, solve_right_gram, b, Element::fp64);
    sum(RowPass::solve_gram, {Element::fp64}, gram, b, Element::fp64);  // two triangles
    sum(RowPass::form_gram, {Element::fp64}, solve_right_gram, b, Element::fp64);
  }
  sum(RowPass::gram, {}, gram, Element::fp64, Element::fp32);
}
TEST(RowPass, DigitsAreForGpusAloneUnlessTheyAreAskedFor) {
  const auto machine = [](std::vector<DeviceKind> kinds) {
    Machine m;
    for (const DeviceKind kind : kinds) {
      m.devices.emplace_back();
      m.devices.back().kind = kind;
    }
    return m;
  };
  const auto chosen = [&](std::int64_t n, std::vector<DeviceKind> kinds,
                          WideSums asked = WideSums::automatic) {
    return wide_sums_of(asked, n, machine(std::move(kinds)));
  };
  EXPECT_EQ(chosen(64, {DeviceKind::gpu}), kDigitSums);
  EXPECT_EQ(chosen(20, {DeviceKind::gpu, DeviceKind::gpu}), kDigitSums);
  EXPECT_EQ(chosen(19, {DeviceKind::gpu}), kExtraction);
  EXPECT_EQ(chosen(64, {DeviceKind::cpu}), kExtraction);
  EXPECT_EQ(chosen(64, {DeviceKind::gpu, DeviceKind::cpu}), kExtraction);
  EXPECT_EQ(chosen(64, {DeviceKind::gpu}, WideSums::extraction), kExtraction);
  EXPECT_EQ(chosen(3, {DeviceKind::cpu}, WideSums::digits), kDigitSums);
}

}  // namespace
}  // namespace strata
