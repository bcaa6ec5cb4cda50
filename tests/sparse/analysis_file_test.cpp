// Analyses in files: the same back, and every damage noticed.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "strata/error.hpp"
#include "tests/io/scratch.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_equal(const SparseAnalysis& a, const SparseAnalysis& b) {
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.ordering, b.ordering);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.row_start, b.row_start);
  EXPECT_EQ(a.row, b.row);
  EXPECT_EQ(a.branch, b.branch);
  EXPECT_EQ(a.level, b.level);
  const AnalysisCounts& x = a.counts;
  const AnalysisCounts& y = b.counts;
  EXPECT_EQ(x.flops, y.flops);
  EXPECT_EQ(x.factor_entries, y.factor_entries);
  EXPECT_EQ(x.stored_flops, y.stored_flops);
  EXPECT_EQ(x.stored_entries, y.stored_entries);
  EXPECT_EQ(x.panel_bytes, y.panel_bytes);
  EXPECT_EQ(x.fundamental_supernodes, y.fundamental_supernodes);
  EXPECT_EQ(x.widest, y.widest);
  EXPECT_EQ(x.largest_panel_bytes, y.largest_panel_bytes);
  EXPECT_EQ(x.largest_update_bytes, y.largest_update_bytes);
  EXPECT_EQ(x.stack_bytes, y.stack_bytes);
  EXPECT_EQ(x.product_bytes, y.product_bytes);
  EXPECT_EQ(x.height, y.height);
  EXPECT_EQ(x.critical_flops, y.critical_flops);
  EXPECT_EQ(x.empty_diagonals, y.empty_diagonals);
  EXPECT_EQ(x.first_empty_diagonal, y.first_empty_diagonal);
}

TEST(AnalysisFile, ComesBackAsItWas) {
  const test::Scratch scratch;
  for (const test::Family& family : test::families()) {
    const SparseAnalysis a = analyze(family.matrix);
    const std::string path = scratch.path("analysis");
    save_analysis(a, path);
    SCOPED_TRACE(family.name);
    expect_equal(load_analysis(path), a);
    require_same_pattern(load_analysis(path), family.matrix);
    // Equal analyses are equal files.
    save_analysis(analyze(family.matrix), scratch.path("again"));
    EXPECT_EQ(bytes_of(scratch.path("again")), bytes_of(path));
  }
}

/// The error of reading these bytes, or nothing if they can be read.
std::string complaint(const test::Scratch& scratch, const std::string& bytes) {
  try {
    (void)load_analysis(scratch.put("damaged", bytes));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
    return error.what();
  }
  return {};
}

TEST(AnalysisFile, EveryFlippedBitAndEveryTruncationIsNoticed) {
  const test::Scratch scratch;
  save_analysis(analyze(test::grid(4, 3, 2)), scratch.path("analysis"));
  const std::string bytes = bytes_of(scratch.path("analysis"));
  ASSERT_EQ(complaint(scratch, bytes), "");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
    EXPECT_NE(complaint(scratch, damaged), "") << "byte " << i;
    EXPECT_NE(complaint(scratch, bytes.substr(0, i)), "") << "the first " << i << " bytes";
  }
  EXPECT_NE(complaint(scratch, bytes + '\0'), "");
}

TEST(AnalysisFile, OtherFilesAreNamed) {
  const test::Scratch scratch;
  EXPECT_NE(complaint(scratch, "strata analysis 2\nanything").find("another version"),
            std::string::npos);
  EXPECT_NE(complaint(scratch, "%%MatrixMarket matrix").find("no analysis"), std::string::npos);
  EXPECT_THROW((void)load_analysis(scratch.path("absent")), Error);
  EXPECT_THROW((void)load_analysis(scratch.path("")), Error);
  const SparseAnalysis a = analyze(test::grid(4, 3, 2));
  EXPECT_THROW(save_analysis(a, scratch.path("no/such/folder")), Error);
  SparseAnalysis wrong = a;
  wrong.order.pop_back();
  EXPECT_THROW(save_analysis(wrong, scratch.path("wrong")), Error);
}

}  // namespace
}  // namespace strata
