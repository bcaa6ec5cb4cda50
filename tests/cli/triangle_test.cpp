// Which files hold a symmetric matrix, and what --triangle makes of those that do not. Oracle: a
// dense factorization in long doubles; NumPy's bytes put together by hand.

#include <cstring>
#include <filesystem>

#include "tests/cli/sparse_system.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

class CliTriangle : public SparseSystemFiles {
 protected:
  CliTriangle() {
    lower_ = dense_of(a, 0);
    for (std::int64_t j = 0; j < a.rows; ++j)
      for (std::int64_t i = 0; i < j; ++i) lower_[at(i + j * a.rows)] = 0;
    (void)scratch.put("L.mtx", general(lower_));
    (void)scratch.put("U.mtx", general(transposed(lower_)));
    write_npy(path("L.npy"), view(lower_));
    write_npy(path("U.npy"), view(transposed(lower_)));
  }
  [[nodiscard]] MatrixView<const double> view(const std::vector<double>& values) const {
    kept_.push_back(values);
    return {kept_.back().data(), a.rows, a.rows, a.rows};
  }
  [[nodiscard]] std::vector<double> transposed(const std::vector<double>& values) const {
    std::vector<double> out(values.size());
    for (std::int64_t j = 0; j < a.rows; ++j)
      for (std::int64_t i = 0; i < a.rows; ++i)
        out[at(j + i * a.rows)] = values[at(i + j * a.rows)];
    return out;
  }
  /// All of its elements that are not zero, as a file that declares nothing.
  [[nodiscard]] std::string general(const std::vector<double>& values) const {
    std::ostringstream text;
    text.precision(17);
    std::int64_t count = 0;
    for (const double value : values) count += value != 0 ? 1 : 0;
    text << "%%MatrixMarket matrix coordinate real general\n"
         << a.rows << " " << a.rows << " " << count << "\n";
    for (std::int64_t j = 0; j < a.rows; ++j)
      for (std::int64_t i = 0; i < a.rows; ++i)
        if (values[at(i + j * a.rows)] != 0)
          text << i + 1 << " " << j + 1 << " " << values[at(i + j * a.rows)] << "\n";
    return text.str();
  }
  /// Every verb that takes a symmetric matrix, sparse or (solve alone) dense.
  [[nodiscard]] std::vector<Words> verbs(const std::string& file) const {
    std::vector<Words> words{
        solve(file),
        verb("logdet", file),
        verb("variances", file, "v.npy"),
        verb("factor", file, "F"),
        verb("schur", file, "S.npy") + Words{"--keep", "0,3"},
        Words{"shift", path(file)},
        Words{"analyze", path(file)},
        Words{"plan", "sparse", path(file), "--devices", "emulated:1", "--device-memory", "1GiB"},
        verb("eigs", file) + Words{"--k", "2"}};
    return words;
  }
  std::vector<double> lower_;
  mutable std::vector<std::vector<double>> kept_;
};

TEST_F(CliTriangle, OneTriangleIsNoSymmetricMatrixUnlessItIsSaid) {
  for (const auto& [file, triangle] : {std::pair("L.mtx", "lower"), {"U.npy", "upper"}}) {
    for (const Words& words : verbs(file)) {
      SCOPED_TRACE(testing::PrintToString(words));
      refuse(words, 1, {"not symmetric", "counted from 0", std::string("--triangle ") + triangle});
      EXPECT_EQ(run_program(words + Words{"--triangle", triangle}).status, 0);
      std::filesystem::remove_all(path("F"));
      const std::string other = triangle == std::string("lower") ? "upper" : "lower";
      refuse(words + Words{"--triangle", other}, 3, {"in the other triangle"});
    }
    expect_done(solve(file) + Words{"--triangle", triangle});
    expect_solution("x.npy");
  }
  refuse(solve() + Words{"--triangle", "left"}, 2, {"--triangle", "left"});
}

TEST_F(CliTriangle, OneOfTwoTrianglesIsTaken) {
  // Above the diagonal stands something else, which is not looked at.
  std::vector<double> mixed = lower_;
  for (std::int64_t j = 0; j < a.rows; ++j)
    for (std::int64_t i = 0; i < j; ++i) mixed[at(i + j * a.rows)] = 0.125;
  (void)scratch.put("M.mtx", general(mixed));
  (void)scratch.put("Mt.mtx", general(transposed(mixed)));
  write_npy(path("M.npy"), view(mixed));
  write_npy(path("Mt.npy"), view(transposed(mixed)));
  const Words cholesky{"--method", "cholesky"};
  for (const auto& [file, triangle] : {std::pair("M.mtx", "lower"),
                                       {"Mt.mtx", "upper"},
                                       {"M.npy", "lower"},
                                       {"Mt.npy", "upper"}}) {
    refuse(solve(file) + cholesky, 1, {"not symmetric"});
    EXPECT_EQ(run_program(solve(file) + cholesky).err.find("--triangle"), std::string::npos);
    expect_done(solve(file) + Words{"--triangle", triangle});
    expect_solution("x.npy");
  }
}

TEST_F(CliTriangle, GmresReadsTheFileAsItIsDeclared) {
  // L·x = b by substitution.
  write_npy(path("b.npy"), std::span<const double>(b.values.data(), at(a.rows)));
  expect_done(solve("L.mtx") + Words{"--method", "gmres", "--tolerance", "1e-13"});
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  std::vector<long double> expected;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    long double sum = b.values[at(i)];
    for (std::int64_t j = 0; j < i; ++j) sum -= lower_[at(i + j * a.rows)] * expected[at(j)];
    expected.push_back(sum / lower_[at(i + i * a.rows)]);
    EXPECT_NEAR(x.values[at(i)], static_cast<double>(expected.back()), 1e-9);
  }
  b.cols = 1;
  b.values.resize(at(a.rows));
  expect_done(solve("L.mtx") +
              Words{"--method", "gmres", "--tolerance", "1e-13", "--triangle", "lower"});
  expect_solution("x.npy");
}

TEST_F(CliTriangle, OfASavedFactorItIsThatOfTheMatrixBesideIt) {
  expect_done(verb("factor", "L.mtx", "F") + Words{"--triangle", "lower"});
  expect_done(solve("F") + Words{"--matrix", path("L.mtx"), "--triangle", "lower"});
  expect_solution("x.npy");
  refuse(solve("F") + Words{"--matrix", path("L.mtx")}, 1, {"--triangle lower"});
  refuse(solve("F") + Words{"--triangle", "lower"}, 2, {"--triangle", "is a factor"});
  refuse(verb("logdet", "F") + Words{"--triangle", "lower"}, 2, {"--triangle", "is a factor"});
}

/// A stiffness matrix in units of 1e11, in which what cancels is noise of 1e-5, differently above
/// and below the diagonal: ‖K − Kᵀ‖/‖K‖ = 1e-16.
TEST_F(CliTriangle, RoundingOfAnAssemblyIsSymmetric) {
  std::vector<double> k = dense_of(a, 0);
  std::uint64_t draw = 0;
  for (std::int64_t j = 0; j < a.rows; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      double& element = k[at(i + j * a.rows)];
      element *= 1e11;
      const double noise = random_normal(4, draw++);
      if (i != j && element == 0 && std::abs(noise) > 0.5) element = noise * 1e-5;
      if (i != j && element != 0) element += 1e-5 * noise;
    }
  }
  (void)scratch.put("K.mtx", general(k));
  write_npy(path("K.npy"), view(k));
  for (double& element : b.values) element *= 1e11;
  write_npy(path("b.npy"), std::as_const(b).view());
  for (double& element : b.values) element /= 1e11;
  for (const char* file : {"K.mtx", "K.npy"}) {
    if (kSanitized && file == std::string("K.npy")) continue;
    for (const Words& words : verbs(file)) {
      SCOPED_TRACE(testing::PrintToString(words));
      EXPECT_EQ(run_program(words).status, 0) << run_program(words).err;
    }
    expect_done(solve(file));
    expect_solution("x.npy");
  }
  // Beside an element of 1 in units of 1, 1e-5 is no rounding.
  k[at(3)] += 1e-1 * 1e11 * 1e-5;
  (void)scratch.put("K.mtx", general(k));
  write_npy(path("K.npy"), view(k));
  for (const char* file : {"K.mtx", "K.npy"})
    for (const Words& words : verbs(file)) {
      // Those take dense matrices that are not symmetric, too.
      const bool solves = words.front() == "solve" || words.front() == "factor";
      refuse(words + (solves ? Words{"--method", "cholesky"} : Words{}), 1,
             {"not symmetric", "(3, 0)"});
    }
}

TEST_F(CliTriangle, ListsOfRowsAsNumpyHasThem) {
  const auto integers = [&](const std::string& name, const std::vector<std::int64_t>& values) {
    std::string text = "{'descr': '<i8', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
    text.resize(117, ' ');
    text += '\n';
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(text.size());
    bytes += '\0';
    bytes += text;
    const std::size_t head = bytes.size();
    bytes.resize(head + values.size() * 8);
    std::memcpy(bytes.data() + head, values.data(), values.size() * 8);
    return scratch.put(name, bytes);
  };
  const auto schur = [&](const std::string& keep) {
    expect_done(verb("schur", "A.mtx", "S.npy") + Words{"--keep", keep});
    return read_dense(path("S.npy")).values;
  };
  const std::vector<double> expected = schur("0,3,17");
  EXPECT_EQ(schur(integers("k.npy", {0, 3, 17})), expected);
  EXPECT_EQ(schur("0, 3, 17"), expected);
  EXPECT_EQ(schur(" 0 3\t17 "), expected);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < a.rows; ++i) order.push_back((i * 11 + 5) % a.rows);
  const Json given =
      expect_json(verb("logdet", "A.mtx") + Words{"--ordering", integers("o.npy", order)});
  EXPECT_EQ(given.at("analysis").at("ordering"), "given");
  EXPECT_NEAR(given.at("log_determinant").get<double>(),
              expect_json(verb("logdet", "A.mtx")).at("log_determinant").get<double>(), 1e-9);
  // And right-hand sides.
  for (std::int64_t i = 0; i < a.rows; ++i) {
    order[at(i)] = i % 7 - 3;
    b.values[at(i)] = static_cast<double>(i % 7 - 3);
  }
  b.cols = 1;
  b.values.resize(at(a.rows));
  (void)integers("b.npy", order);
  expect_done(solve());
  expect_solution("x.npy");
}

}  // namespace
}  // namespace strata::test
