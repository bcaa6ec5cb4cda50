// Which methods of qr() gmres() and eigs() have: what they take they carry out, and they refuse the
// rest.

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "strata/error.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using enum QrMethod;

constexpr auto kClassical = BlockOrthogonalization::classical;
constexpr auto kPythagorean = BlockOrthogonalization::pythagorean;
constexpr auto kTwoStage = BlockOrthogonalization::two_stage;

bool is_one_of(QrMethod method, std::initializer_list<QrMethod> list) {
  return std::find(list.begin(), list.end(), method) != list.end();
}

bool is_taken(std::int64_t s, BlockOrthogonalization block, QrMethod m) {
  if (s == 1) return is_one_of(m, {automatic, cgs2, cgs, mgs});
  if (is_one_of(m, {automatic, cholqr, cholqr_wide, svqr, svqr_wide})) return true;
  return (block != kTwoStage && is_one_of(m, {cholqr2, cholqr_wide2})) ||
         (block == kClassical && is_one_of(m, {cgs, cgs2, mgs}));
}

/// The message of a call that has to be refused as misuse.
template <class F>
std::string refusal(F call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

/// It names the method, and of all others those that are possible.
void expect_names(const std::string& text, QrMethod method, std::int64_t s,
                  BlockOrthogonalization block) {
  EXPECT_NE(text.find(std::string(to_string(method)) +
                      (s == 1 || block == kClassical ? " does not" : ":")),
            std::string::npos)
      << text;
  for (const QrMethod m : qr_methods()) {
    const bool named = text.find(" " + std::string(to_string(m)) + ",") != std::string::npos ||
                       text.find(" " + std::string(to_string(m)) + " or") != std::string::npos ||
                       text.find("or " + std::string(to_string(m)) + " do") != std::string::npos;
    EXPECT_EQ(named, is_taken(s, block, m)) << to_string(m) << ": " << text;
  }
}

/// What is taken has a result of its own, to the last bit, so none is another under its name. But
/// with s = 1 `automatic` is cgs2, and where double-double tells all vectors of a block apart, the
/// triangle of svqr-wide is Cholesky's when it is rounded to fp64.
bool is_the_same_as_another(std::int64_t s, QrMethod method) {
  return s == 1 ? method == cgs2 : method == svqr_wide;
}

TEST(KrylovMethods, OfGmresAreCarriedOutOrRefused) {
  const SparseMatrix a = test::grid(6, 5, 7, 0.3);
  const std::vector<double> b = test::row_sums(a);
  for (const auto& [s, block] : {std::pair(1, kClassical), std::pair(6, kClassical),
                                 std::pair(6, kPythagorean), std::pair(6, kTwoStage)}) {
    std::vector<std::vector<double>> solutions;
    for (const QrMethod method : qr_methods()) {
      GmresOptions options = test::with(s, 24, method);
      options.tolerance = 1e-9;
      options.block_orthogonalization = block;
      const std::string what = std::string(to_string(method)) + ", s = " + std::to_string(s) +
                               ", " + std::string(to_string(block));
      EXPECT_EQ(goes_with(block, method), is_taken(6, block, method)) << what;
      if (!is_taken(s, block, method)) {
        const std::string text = refusal([&] { (void)test::solved(a, b, options); });
        const bool by_block = is_taken(s, kClassical, method);
        expect_names(text, method, s, by_block ? block : kClassical);
        continue;
      }
      const test::Solved result = test::solved(a, b, options);
      EXPECT_TRUE(result.info.ok) << what << ": " << result.info.why;
      const bool seen = std::find(solutions.begin(), solutions.end(), result.x) != solutions.end();
      EXPECT_EQ(seen, is_the_same_as_another(s, method)) << what;
      solutions.push_back(result.x);
    }
  }
}

/// Powers beyond what double-double tells apart: Cholesky's pivots fail, eigenvalues are raised.
TEST(KrylovMethods, EigenvaluesGiveATriangleWherePivotsFail) {
  const SparseMatrix a = test::grid(6, 5, 7, 0.3);
  const std::vector<double> b = test::row_sums(a);
  const test::Solved cholesky = test::solved(a, b, test::with(40, 40, cholqr_wide));
  const test::Solved eigenvalues = test::solved(a, b, test::with(40, 40, svqr_wide));
  EXPECT_GT(cholesky.info.failed_cholesky, 0);
  EXPECT_EQ(eigenvalues.info.failed_cholesky, 0);
  EXPECT_GT(eigenvalues.info.factorizations, 0);
  EXPECT_NE(eigenvalues.x, cholesky.x);
  EXPECT_TRUE(eigenvalues.info.ok) << eigenvalues.info.why;
}

TEST(KrylovMethods, OfEigsAreCarriedOutOrRefused) {
  const SparseMatrix a = test::grid(6, 5, 7);
  for (const std::int64_t s : {1, 5}) {
    if (test::kSanitized && s == 1) continue;
    std::vector<std::vector<double>> found;
    for (const QrMethod method : qr_methods()) {
      EigsOptions options;
      options.k = 3;
      options.method = EigsMethod::lanczos;
      options.basis_size = 30;
      options.s = s;
      options.orthogonalization = method;
      options.run.devices = "host:1";
      options.run.device_memory_bytes = 64 << 20;
      std::vector<double> vectors(static_cast<std::size_t>(a.rows * options.k));
      const auto call = [&] {
        return eigs(a, {vectors.data(), a.rows, options.k, a.rows}, options);
      };
      const std::string what = std::string(to_string(method)) + ", s = " + std::to_string(s);
      if (!is_taken(s, kClassical, method)) {
        expect_names(refusal([&] { (void)call(); }), method, s, kClassical);
        continue;
      }
      const EigsInfo info = call();
      // One projection a vector loses what is locked, and says so.
      if (!is_one_of(method, {cgs, mgs})) {
        EXPECT_TRUE(info.ok) << what << ": " << info.why;
      }
      const bool seen = std::find(found.begin(), found.end(), vectors) != found.end();
      EXPECT_EQ(seen, is_the_same_as_another(s, method)) << what;
      found.push_back(vectors);
    }
  }
}

}  // namespace
}  // namespace strata
