// What sparse factorizations and their inverses ask of the memory of devices and host: what is
// refused is told with a figure that suffices and of which nothing can be taken away.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "sparse/fronts/inverse_panels.hpp"
#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/io/scratch.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_outcome.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::DenseOracle;
using test::FactorOutcome;
using test::outcome_of;

SparseMatrix made(std::int64_t n, const std::function<void(test::Edges&)>& fill) {
  test::Edges edges(n);
  fill(edges);
  return edges.matrix();
}

SparseMatrix dense_block(std::int64_t n) {
  return made(n, [=](test::Edges& e) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < i; ++j) e.add(i, j);
  });
}

/// Rows that meet a dense hub, alone or as chains.
SparseMatrix arrow(std::int64_t rows, std::int64_t hub, bool chains) {
  return made(rows + hub, [=](test::Edges& e) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = 0; k < hub; ++k) e.add(i, rows + k);
      if (chains && i > 0) e.add(i, i - 1);
    }
    for (std::int64_t i = 0; i < hub; ++i)
      for (std::int64_t k = 0; k < i; ++k) e.add(rows + i, rows + k);
  });
}

SparseMatrix band(std::int64_t n, std::int64_t width) {
  return made(n, [=](test::Edges& e) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 1; k <= std::min(i, width); ++k) e.add(i, i - k);
  });
}

/// Dense blocks of orders that grow, which have nothing to do with each other.
SparseMatrix forest(std::int64_t trees) {
  std::int64_t n = 0;
  for (std::int64_t t = 1; t <= trees; ++t) n += 3 * t;
  return made(n, [=](test::Edges& e) {
    for (std::int64_t t = 1, first = 0; t <= trees; first += 3 * t, ++t)
      for (std::int64_t i = 0; i < 3 * t; ++i)
        for (std::int64_t k = 0; k < i; ++k) e.add(first + i, first + k);
  });
}

/// Those of families(), and such as have fronts about as large as the factor.
std::vector<test::Family> shapes() {
  std::vector<test::Family> list = test::families();
  std::erase_if(list, [](const test::Family& family) { return family.matrix.rows == 0; });
  list.push_back({"dense 150", dense_block(150)});
  list.push_back({"dense 400", dense_block(400)});
  list.push_back({"one row and a hub", arrow(1, 180, false)});
  list.push_back({"an arrow", arrow(300, 40, false)});
  list.push_back({"chains and a hub", arrow(90, 120, true)});
  list.push_back({"a long chain", band(3000, 1)});
  list.push_back({"a band", band(400, 60)});
  list.push_back({"a forest", forest(14)});
  list.push_back({"a grid", test::grid(9, 9, 9)});
  list.push_back({"hexahedra", test::grid(5, 5, 4, true, 3)});
  for (std::size_t k = 0; k < list.size(); ++k)
    list[k].matrix = test::with_values(list[k].matrix, 40 + k);
  return list;
}

SparseCholeskyOptions on_host(bool natural = false) {
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  options.analysis.ordering = natural ? SparseOrdering::natural : SparseOrdering::amd;
  options.analysis.threads = 1;
  return options;
}

/// The message of the refusal; empty: there was none.
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    return error.what();
  }
  return {};
}

/// The last number of bytes that a message names.
std::int64_t figure_in(const std::string& message) {
  const std::string before = message.substr(0, message.rfind(" bytes"));
  return std::stoll(before.substr(before.rfind(' ') + 1));
}

/// Devices that hold as much as the factor, and the least that they say will do.
TEST(SparseMemory, ADeviceThatHoldsTheFactorMakesIt) {
  constexpr std::int64_t kLeast = 64 << 10;
  bool floats = false;
  for (const test::Family& shape : shapes()) {
    floats = !floats;
    for (const Element precision : {Element::fp64, Element::fp32}) {
      if (test::kSanitized && floats != (precision == Element::fp32)) continue;
      SCOPED_TRACE(shape.name + " in " + std::string(to_string(precision)));
      SparseCholeskyOptions options = on_host();
      options.precision = precision;
      const SparseAnalysis analysis = analyze(shape.matrix, options.analysis);
      const SparseCholesky whole(analysis, shape.matrix, options);
      const FactorOutcome expected = outcome_of(whole);
      const auto with = [&](std::int64_t budget) {
        SparseCholeskyOptions bounded = options;
        bounded.run.device_memory_bytes = budget;
        const SparseCholesky factor(analysis, shape.matrix, bounded);
        EXPECT_LE(factor.report().peak_device_bytes, budget);
        EXPECT_EQ(outcome_of(factor), expected);
      };
      with(std::max(kLeast, analysis.counts.panel_bytes / 8 * bytes_of(precision)));
      const std::string message = refusal([&] { with(1); });
      EXPECT_NE(message.find("device memory"), std::string::npos) << message;
      const std::int64_t least = figure_in(message);
      with(least);
      EXPECT_EQ(figure_in(refusal([&] { with(least - 1); })), least);
    }
  }
}

/// What is said of host memory: of factors, of inverses, made or read.
TEST(SparseMemory, AHostMemoryThatIsNamedSuffices) {
  const test::Scratch scratch;
  for (const test::Family& shape : shapes()) {
    for (const bool inverse : {false, true}) {
      SCOPED_TRACE(shape.name + (inverse ? " with its inverse" : ""));
      SparseCholeskyOptions options = on_host();
      options.inverse = inverse;
      options.run.device_memory_bytes = 4 << 20;
      const SparseAnalysis analysis = analyze(shape.matrix, options.analysis);
      const auto with = [&](std::int64_t budget) {
        options.run.host_memory_bytes = budget;
        const SparseCholesky factor(analysis, shape.matrix, options);
        EXPECT_LE(factor.report().host_bytes, budget);
        if (inverse) (void)factor.inverse_diagonal();
        factor.save(scratch.path("F"));
      };
      const auto opened_with = [&](std::int64_t budget) {
        options.run.host_memory_bytes = budget;
        const SparseCholesky factor = SparseCholesky::open(scratch.path("F"), options);
        EXPECT_LE(factor.report().host_bytes, budget);
        if (inverse) (void)factor.inverse_diagonal();
      };
      const std::function<void(std::int64_t)> both[] = {with, opened_with};
      for (const auto& f : both) {
        const std::string message = refusal([&] { f(1); });
        EXPECT_NE(message.find("host memory"), std::string::npos) << message;
        EXPECT_EQ(message.find("device"), std::string::npos) << message;
        EXPECT_EQ(message.find("inverse") != std::string::npos, inverse) << message;
        const std::int64_t least = figure_in(message);
        EXPECT_GE(least, 8 * analysis.counts.factor_entries);
        f(least);
        EXPECT_EQ(figure_in(refusal([&] { f(least - 1); })), least);
      }
    }
  }
}

/// Without that, at the latest where the inverse is asked for.
TEST(SparseMemory, AnInverseThatWasNotPlannedIsBoundedToo) {
  const SparseMatrix a = test::with_values(test::grid(9, 9, 9), 3);
  SparseCholeskyOptions options = on_host();
  options.run.host_memory_bytes = 1;
  options.run.host_memory_bytes = figure_in(refusal([&] { (void)SparseCholesky(a, options); }));
  const SparseCholesky factor(a, options);
  const std::string message = refusal([&] { (void)factor.inverse_diagonal(); });
  EXPECT_NE(message.find("inverse"), std::string::npos) << message;
  EXPECT_EQ(refusal([&] { (void)factor.selected_inverse(); }), message);
}

/// Only panels that others have rows in are kept: those of a chain are few however long it is.
TEST(SparseMemory, InversesKeepWhatIsNeeded) {
  const auto bytes = [](const SparseMatrix& a, bool natural) {
    return InversePanels(analyze(a, on_host(natural).analysis)).bytes();
  };
  const std::int64_t short_one = bytes(band(500, 3), true);
  const std::int64_t long_one = bytes(band(50'000, 3), true);
  EXPECT_LT(long_one - short_one, 49'500 * 14) << "an owner and a place each, no panels";
  // On a grid the panels kept at once, with products of some columns, take under 3/4 of the factor.
  const SparseAnalysis grid = analyze(test::grid(22, 22, 22), on_host().analysis);
  EXPECT_LT(InversePanels(grid).bytes(), grid.counts.panel_bytes * 3 / 4);
}

/// Rows of many ancestors, panels of more columns than are made at once, and tiles.
TEST(SparseMemory, InversesOfWideFronts) {
  const std::vector<test::Family> list{{"dense 600", dense_block(600)},
                                       {"a hub of 540", arrow(40, 540, false)},
                                       {"a band of 280", band(600, 280)},
                                       {"chains and a hub of 300", arrow(200, 300, true)}};
  bool tiles = false;
  for (const test::Family& shape : list) {
    // The hub is dense too, and the chains beside one are a band.
    if (test::kSanitized && (&shape == list.data() || &shape == &list[2])) continue;
    const SparseMatrix a = test::with_values(shape.matrix, 77);
    const DenseOracle oracle(test::dense_of(a), a.rows);
    tiles = !tiles;
    for (const std::int64_t tile : {0, 100}) {
      if (test::kSanitized && tiles != (tile > 0)) continue;
      SCOPED_TRACE(shape.name + " in tiles of " + std::to_string(tile));
      SparseCholeskyOptions options = on_host(true);
      options.tile = options.panel_order = tile;
      const SparseCholesky factor(a, options);
      const SelectedInverse z = factor.selected_inverse();
      EXPECT_EQ(z.entries(), 2 * factor.selected_entries() - factor.n());
      const std::vector<double> diagonal = factor.inverse_diagonal();
      for (std::int64_t i = 0; i < a.rows; i += test::kSanitized ? 83 : 7) {
        const std::vector<long double> column = oracle.inverse_column(i);
        const double variance = static_cast<double>(column[at(i)]);
        EXPECT_NEAR(diagonal[at(i)], variance, 1e-12 * variance);
        for (std::int64_t k = z.start[at(i)]; k < z.start[at(i + 1)]; ++k)
          ASSERT_NEAR(z.value[at(k)], static_cast<double>(column[at(z.column[at(k)])]),
                      1e-12 * variance);
      }
    }
  }
}

}  // namespace
}  // namespace strata
