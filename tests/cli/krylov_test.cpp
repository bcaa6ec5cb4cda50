// strata solve --method gmres and strata eigs: files in, files out, JSON and exit statuses.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliKrylov : public testing::Test {
 protected:
  static constexpr std::int64_t kOrder = 400;

  CliKrylov() {
    // −x'' + c·x' on a line; symmetric where c is 0.
    write_line("A.mtx", "%%MatrixMarket matrix coordinate real general", 0.3);
    write_line("S.mtx", "%MatrixMarket matrix coordinate real symmetric", 0);
    std::vector<double> b(kOrder, 0.0);
    b.front() = 1 + 0.3;
    b.back() = 1 - 0.3;
    for (double& x : b) x += 0.5;  // of the diagonal 2.5
    write_npy(path("b.npy"), b);
  }
  void write_line(const std::string& name, const std::string& banner, double c) const {
    const bool symmetric = banner.ends_with("symmetric");
    std::ofstream file(path(name));
    file << banner << "\n% a line\n"
         << kOrder << " " << kOrder << " " << (symmetric ? 2 * kOrder - 1 : 3 * kOrder - 2) << "\n";
    for (std::int64_t i = 1; i <= kOrder; ++i) {
      file << i << " " << i << " 2.5\n";
      if (i > 1) file << i << " " << i - 1 << " " << -1 - c << "\n";
      if (i < kOrder && !symmetric) file << i << " " << i + 1 << " " << -1 + c << "\n";
    }
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Outcome strata(Words words) const { return run_program(words + small_device()); }

  Scratch scratch;
};

TEST_F(CliKrylov, SolvesAndTellsTheHistory) {
  const Outcome outcome = strata({"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"),
                                  "--method", "gmres", "--s", "6", "--restart", "20", "--basis",
                                  "newton", "--orth", "auto", "--tolerance", "1e-10", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["gmres"]["ok"], true);
  EXPECT_LE(object["gmres"]["relative_residual"].get<double>(), 1e-10);
  EXPECT_EQ(object["gmres"]["history"].size(), object["gmres"]["restarts"].get<std::size_t>());
  EXPECT_EQ(object["gmres"]["s"], 6);
  EXPECT_EQ(object["traffic"]["host_to_device_bytes"],
            object["planned_traffic"]["host_to_device_bytes"]);
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  ASSERT_EQ(x.rows, kOrder);
  for (const double value : x.values) EXPECT_NEAR(value, 1, 1e-8);
  const Outcome text =
      run_program({"solve", path("A.mtx"), path("b.npy"), "-o", path("y.mtx"), "--method", "gmres",
                   "--balance", "--devices", "host:3", "--device-memory", "4MiB"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("residual"), std::string::npos) << text.out;
  EXPECT_TRUE(std::filesystem::exists(path("y.mtx")));
}

TEST_F(CliKrylov, SolvesWithVectorsInSinglePrecision) {
  const Outcome outcome = strata({"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"),
                                  "--method", "gmres", "--precision", "fp32", "--s", "5",
                                  "--restart", "20", "--tolerance", "1e-12", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["gmres"]["precision"], "fp32");
  EXPECT_LE(object["gmres"]["relative_residual"].get<double>(), 1e-12);
  EXPECT_EQ(object["traffic"]["host_to_device_bytes"],
            object["planned_traffic"]["host_to_device_bytes"]);
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  for (const double value : x.values) EXPECT_NEAR(value, 1, 1e-10);
}

TEST_F(CliKrylov, MakesBlocksOrthogonalInOneSum) {
  const Outcome outcome =
      strata({"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"), "--method", "gmres",
              "--s", "5", "--restart", "20", "--block-orth", "two-stage", "--panel", "10", "--orth",
              "cholqr", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out)["gmres"];
  EXPECT_EQ(object["block_orthogonalization"], "two-stage");
  EXPECT_EQ(object["panel"], 10);
  std::int64_t of_blocks = 0;
  for (const Json& d : object["decisions"]) of_blocks += d["reductions"].get<std::int64_t>();
  EXPECT_GT(of_blocks, 0);
  EXPECT_LT(of_blocks, object["reductions"]);
  EXPECT_EQ(strata({"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"), "--method", "gmres",
                    "--s", "5", "--panel", "10"})
                .status,
            2);
}

TEST_F(CliKrylov, PreconditionsFromTheRight) {
  const auto solve = [&](Words words) {
    const Outcome outcome = strata(Words{"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"),
                                         "--method", "gmres", "--s", "4", "--json"} +
                                   words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out)["gmres"];
  };
  const Json none = solve({});
  EXPECT_EQ(none["preconditioner"], "none");
  EXPECT_FALSE(none.contains("block_size"));
  const Json blocks = solve({"--preconditioner", "block-jacobi", "--block-size", "40"});
  EXPECT_EQ(blocks["preconditioner"], "block-jacobi");
  EXPECT_EQ(blocks["block_size"], 40);
  EXPECT_LE(blocks["relative_residual"].get<double>(), 1e-6);
  EXPECT_LT(blocks["iterations"], none["iterations"]);
  EXPECT_EQ(solve({"--preconditioner", "jacobi"})["preconditioner"], "jacobi");
}

TEST_F(CliKrylov, AResidualThatMissesIsStatusOneAndXIsWrittenAsFarAsItCame) {
  const Outcome outcome =
      strata({"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy"), "--method", "gmres",
              "--restart", "2", "--restarts-max", "2", "--tolerance", "1e-12"});
  EXPECT_EQ(outcome.status, 1);
  const std::size_t told = outcome.err.find("of |b|");
  ASSERT_NE(told, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("of |b|", told + 1), std::string::npos) << outcome.err;
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  ASSERT_EQ(x.rows, kOrder);
  const auto [least, most] = std::minmax_element(x.values.begin(), x.values.end());
  EXPECT_GT(*least, 0);  // some way from 0 to 1
  EXPECT_LT(*most, 1.5);
}

TEST_F(CliKrylov, MisuseIsNamed) {
  const Words solve{"solve", path("A.mtx"), path("b.npy"), "-o", path("x.npy")};
  const Outcome blocks = strata(solve + Words{"--method", "gmres", "--s", "61"});
  EXPECT_EQ(blocks.status, 2);
  EXPECT_NE(blocks.err.find("s = 61"), std::string::npos) << blocks.err;
  const Outcome dense = strata(solve + Words{"--restart", "30"});
  EXPECT_EQ(dense.status, 2);
  EXPECT_NE(dense.err.find("--restart"), std::string::npos) << dense.err;
  EXPECT_EQ(strata(solve + Words{"--method", "gmres", "--basis", "hermite"}).status, 2);
  EXPECT_EQ(strata(solve + Words{"--method", "gmres", "--orth", "householder"}).status, 2);
  EXPECT_EQ(strata(solve + Words{"--method", "cg"}).status, 2);
  // A method of `strata qr` that vectors of a Krylov method are not made orthonormal by.
  for (const Words& words : {solve + Words{"--method", "gmres"}, Words{"eigs", path("S.mtx")}}) {
    const Outcome tsqr = strata(words + Words{"--s", "8", "--orth", "tsqr"});
    EXPECT_EQ(tsqr.status, 2);
    EXPECT_NE(tsqr.err.find("tsqr does not orthogonalize blocks of 8: auto, cholqr"),
              std::string::npos)
        << tsqr.err;
    EXPECT_EQ(tsqr.out, "");
  }
  const Words gmres = solve + Words{"--method", "gmres"};
  const Outcome unknown = strata(gmres + Words{"--preconditioner", "ilu"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("none, jacobi, block-jacobi"), std::string::npos) << unknown.err;
  EXPECT_EQ(strata(gmres + Words{"--preconditioner", "block-jacobi", "--block-size", "0"}).status,
            2);
  EXPECT_EQ(
      strata({"solve", path("none.mtx"), path("b.npy"), "-o", path("x.npy"), "--method", "gmres"})
          .status,
      3);
  EXPECT_EQ(strata({"eigs", path("S.mtx"), "--k", "401"}).status, 2);
  const Outcome general = strata({"eigs", path("A.mtx")});
  EXPECT_EQ(general.status, 1);
  EXPECT_NE(general.err.find("(0, 1) is -0.7 and (1, 0) is -1.3"), std::string::npos)
      << general.err;
}

TEST_F(CliKrylov, FindsEigenvalues) {
  const Outcome outcome =
      strata({"eigs", path("S.mtx"), "--k", "4", "--which", "smallest", "--basis-size", "60",
              "--values", path("w.npy"), "-o", path("V.npy"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["eigs"]["ok"], true);
  const DenseMatrix<double> w = read_dense(path("w.npy"));
  ASSERT_EQ(w.rows, 4);
  for (std::int64_t k = 0; k < 4; ++k) {
    const double exact =
        2.5 - 2 * std::cos(std::numbers::pi * static_cast<double>(k + 1) / (kOrder + 1));
    EXPECT_NEAR(w.values[static_cast<std::size_t>(k)], exact, 1e-9);
    EXPECT_EQ(object["eigs"]["values"][static_cast<std::size_t>(k)],
              w.values[static_cast<std::size_t>(k)]);
  }
  const DenseMatrix<double> v = read_dense(path("V.npy"));
  EXPECT_EQ(v.rows, kOrder);
  EXPECT_EQ(v.cols, 4);
  EXPECT_EQ(object["eigs"]["basis"], "lanczos");
  EXPECT_EQ(object["eigs"]["method"], "dense");
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(object["eigs"]["unresolved"][k], false);
    EXPECT_LE(object["eigs"]["bounds"][k].get<double>(), 1e-12);
  }
  EXPECT_EQ(object["eigs"]["halo"]["ghost_zones"], false);
  const Outcome text = run_program({"eigs", path("S.mtx"), "--k", "3", "--s", "5", "--ghost-zones",
                                    "--devices", "host:1", "--device-memory", "64MiB"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("slabs have no neighbours"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("largest eigenvalues"), std::string::npos) << text.out;
  const Outcome few =
      strata({"eigs", path("S.mtx"), "--k", "3", "--which", "smallest", "--restarts-max", "1",
              "--method", "lanczos", "--values", path("few.npy")});
  EXPECT_EQ(few.status, 1);
  EXPECT_EQ(read_dense(path("few.npy")).rows, 3);
}

/// The smallest of matrices that are not small are found by a factor, with a mass matrix too.
TEST_F(CliKrylov, FindsTheSmallestByAFactor) {
  constexpr int kLarge = 1500;
  const auto write = [&](const char* name, double diagonal, double beside) {
    std::ofstream file(path(name));
    file << "%%MatrixMarket matrix coordinate real symmetric\n"
         << kLarge << " " << kLarge << " " << 2 * kLarge - 1 << "\n1 1 " << diagonal << "\n";
    for (int i = 2; i <= kLarge; ++i)
      file << i << " " << i << " " << diagonal << "\n"
           << i << " " << i - 1 << " " << beside << "\n";
  };
  write("K.mtx", 2, -1);
  write("M.mtx", 4, 1);
  const auto cosine = [](std::size_t k) {
    return std::cos(std::numbers::pi * static_cast<double>(k + 1) / (kLarge + 1));
  };
  const Words words{"eigs", path("K.mtx"), "--k", "5", "--which", "smallest"};
  const Json alone = Json::parse(strata(words + Words{"--json"}).out);
  const Json pencil = Json::parse(
      strata(words + Words{"--mass", path("M.mtx"), "-o", path("V.npy"), "--json"}).out);
  for (const Json& object : {alone, pencil}) {
    EXPECT_EQ(object["eigs"]["ok"], true);
    EXPECT_EQ(object["eigs"]["method"], "shift-invert");
    EXPECT_EQ(object["eigs"]["sigma"], 0);
  }
  for (std::size_t k = 0; k < 5; ++k) {
    const double exact = 2 - 2 * cosine(k);
    EXPECT_NEAR(alone["eigs"]["values"][k].get<double>(), exact, 1e-9 * exact);
    const double with_mass = exact / (4 + 2 * cosine(k));
    EXPECT_NEAR(pencil["eigs"]["values"][k].get<double>(), with_mass, 1e-9 * with_mass);
    EXPECT_LE(alone["eigs"]["bounds"][k].get<double>(), 1e-10 * exact);
  }
  EXPECT_EQ(read_dense(path("V.npy")).cols, 5);
  const Outcome text = strata(words + Words{"--sigma", "-0.01"});
  EXPECT_EQ(text.status, 0) << text.err;
  expect_pieces(text.out, {"5 of 5 smallest", "sigma             -0.01: no eigenvalue is below"});
  expect_complaint(strata(words + Words{"--sigma", "0.1"}), 1, {"sigma = 0.1 is not below"});
  const Words mass{"eigs", path("K.mtx"), "--mass", path("M.mtx")};
  expect_complaint(strata(mass), 2, {"--which smallest"});
  expect_complaint(strata(mass + Words{"--which", "smallest", "--s", "4"}), 2, {"--s", "lanczos"});
  expect_complaint(strata(mass + Words{"--which", "smallest", "--method", "dense"}), 2,
                   {"--method shift-invert"});
}

/// An identity has all of its pairs, and a number is a matrix.
TEST_F(CliKrylov, ArraysHaveTheDimensionsOfWhatTheyAre) {
  const auto dimensions = [&](const std::string& name) { return NpyFile(path(name)).dimensions(); };
  const Words eigs{"eigs", path("S.mtx"),  "--k",      "1",
                   "-o",   path("V1.npy"), "--values", path("w1.npy")};
  ASSERT_EQ(strata(eigs).status, 0);
  EXPECT_EQ(dimensions("V1.npy"), 2) << "one vector is a matrix of one column";
  EXPECT_EQ(dimensions("w1.npy"), 1);
  const std::vector<double> b(kOrder, 1.0);
  write_npy(path("b1.npy"), b);
  write_npy(path("b2.npy"), MatrixView<const double>{b.data(), kOrder, 1, kOrder});
  for (const int d : {1, 2}) {
    for (const char* method : {"cholesky", "gmres"}) {
      const Outcome solved = strata({"solve", path("S.mtx"), path("b" + std::to_string(d) + ".npy"),
                                     "-o", path("xd.npy"), "--method", method});
      ASSERT_TRUE(std::filesystem::exists(path("xd.npy"))) << solved.err;
      EXPECT_EQ(dimensions("xd.npy"), d) << method;
      std::filesystem::remove(path("xd.npy"));
    }
  }
}

TEST_F(CliKrylov, AnOptionThatTheMethodDoesNotHeedIsRefused) {
  const Words eigs{"eigs", path("S.mtx"), "--k", "2", "--method", "dense"};
  EXPECT_EQ(strata(eigs).status, 0);
  for (const Words& option :
       {Words{"--s", "2"}, Words{"--basis-size", "20"}, Words{"--no-filter"},
        Words{"--restarts-max", "5"}, Words{"--orth", "cgs2"}, Words{"--products-max", "9"}}) {
    const Outcome refused = strata(eigs + option);
    EXPECT_EQ(refused.status, 2) << option[0];
    EXPECT_NE(refused.err.find(option[0] + " is an option of --method lanczos"), std::string::npos)
        << refused.err;
  }
}

TEST_F(CliKrylov, TellsWhichOptionsASmallOrderHasNoUseFor) {
  const Words eigs{"eigs", path("S.mtx"), "--k", "2"};
  const Words asked{"--restarts-max", "5", "--no-filter", "--natural-order"};
  const Words lanczos{"--method", "lanczos"};
  const auto told = [&](const Words& more) {
    return Json::parse(strata(eigs + more + Words{"--json"}).out)["eigs"]["without_effect"];
  };
  EXPECT_EQ(told({}), Json::array());
  EXPECT_EQ(told(asked), Json({"--restarts-max", "--no-filter", "--natural-order"}));
  EXPECT_EQ(told(asked + lanczos), Json::array());
  EXPECT_EQ(strata(eigs).out.find("without effect"), std::string::npos);
  const std::string text = strata(eigs + asked).out;
  EXPECT_NE(text.find("without effect    --restarts-max, --no-filter, --natural-order (they are "
                      "for --method lanczos)"),
            std::string::npos)
      << text;
}

TEST_F(CliKrylov, FindsAllEigenvalues) {
  for (const std::int64_t n : {1, 3}) {
    std::ofstream file(path("I.mtx"));
    file << "%%MatrixMarket matrix coordinate real symmetric\n"
         << n << " " << n << " " << n << "\n";
    for (std::int64_t i = 1; i <= n; ++i) file << i << " " << i << " 1\n";
    file.close();
    const Outcome outcome =
        strata({"eigs", path("I.mtx"), "--k", std::to_string(n), "--values", path("w.npy")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read_dense(path("w.npy")).values,
              std::vector<double>(static_cast<std::size_t>(n), 1.0));
  }
}

/// One element of 1e10 leaves Lanczos' tolerance no digits of values of 1e-3.
TEST_F(CliKrylov, AValueThatIsNotResolvedIsStatusOneWithItsBound) {
  std::ofstream file(path("P.mtx"));
  file << "%%MatrixMarket matrix coordinate real symmetric\n100 100 199\n1 1 1e10\n";
  for (int i = 2; i <= 100; ++i) file << i << " " << i << " 2\n" << i << " " << i - 1 << " -1\n";
  file.close();
  const Words words{"eigs",    path("P.mtx"), "--k",      "3",
                    "--which", "smallest",    "--values", path("w.npy")};
  const Outcome dense = strata(words);
  EXPECT_EQ(dense.status, 0) << dense.err;
  for (std::size_t k = 0; k < 3; ++k) {
    const double exact =  // but for 1e-10 of it
        2 - 2 * std::cos(std::numbers::pi * static_cast<double>(k + 1) / 100);
    EXPECT_NEAR(read_dense(path("w.npy")).values[k], exact, 1e-8 * exact);
  }
  std::filesystem::remove(path("w.npy"));
  const Outcome lanczos = strata(words + Words{"--method", "lanczos"});
  EXPECT_EQ(lanczos.status, 1);
  EXPECT_NE(lanczos.err.find("not resolved"), std::string::npos) << lanczos.err;
  EXPECT_NE(lanczos.out.find("not resolved"), std::string::npos) << lanczos.out;
  // 40 bytes for each element of a matrix of order 100.
  EXPECT_NE(lanczos.err.find("--method dense"), std::string::npos) << lanczos.err;
  EXPECT_NE(lanczos.err.find("391 KiB"), std::string::npos) << lanczos.err;
  EXPECT_TRUE(std::filesystem::exists(path("w.npy")));
}

}  // namespace
}  // namespace strata::test
