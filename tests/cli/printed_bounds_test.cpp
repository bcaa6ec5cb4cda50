// Errors and bounds in text are never below those in JSON, which are the computed ones.

#include <cmath>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

/// The number behind the first `what` in a text; NaN where there is none.
double printed(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " is not in: " << text;
  if (at == std::string::npos) return std::nan("");
  return std::stod(text.substr(text.find_first_of("0123456789", at + what.size())));
}

class CliPrintedBounds : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  /// Text and JSON of a verb; the printed number is the computed one, rounded up.
  void expect_above(const Words& words, const std::string& what, const char* object,
                    const char* field) const {
    const Words all = words + small_device();
    const std::string text = expect_done(all);
    const double computed = expect_json(all).at(object).at(field).get<double>();
    const double shown = printed(text, what);
    EXPECT_GE(shown, computed) << what;
    EXPECT_LE(shown, 1.1 * computed) << what;
  }

  Scratch scratch;
};

TEST_F(CliPrintedBounds, AreNotBelowTheComputedOnes) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  constexpr std::int64_t kN = 20;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    DenseMatrix<double> a{std::vector<double>(kN * kN), kN, kN};
    DenseMatrix<double> b{std::vector<double>(kN), kN, 1};
    for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = random_normal(seed, i);
    for (std::size_t i = 0; i < b.values.size(); ++i) b.values[i] = random_normal(seed + 50, i);
    write_npy(path("A.npy"), std::as_const(a).view());
    write_npy(path("b.npy"), std::as_const(b).view());
    write_npy(path("V.npy"), std::as_const(a).view().block(0, 0, kN, 5));
    const Words solve{"solve", path("A.npy"), path("b.npy"), "-o", path("x.npy")};
    expect_above(solve, "backward error", "certificate", "backward_error");
    expect_above(solve, "forward error", "certificate", "forward_error");
    const Words lstsq{"lstsq", path("V.npy"), path("b.npy")};
    expect_above(lstsq, "error bound", "lstsq", "error_bound");
    expect_above(lstsq, "condition", "lstsq", "condition");
    expect_above({"qr", path("V.npy")}, "orthogonality", "qr", "orthogonality");
  }
}

}  // namespace
}  // namespace strata::test
