// strata factor --storage: factors in files, of matrices in either order, gone on with, and solved
// with later; what is refused. Oracle: elimination in 113 bits, and factors in memory.

#include <algorithm>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/index.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kStoredOrder = 150;

class CliStoredFactor : public testing::Test {
 protected:
  CliStoredFactor()
      : a(random_columns(kStoredOrder, kStoredOrder, 5)), b(random_columns(kStoredOrder, 1, 6)) {
    write_npy(path("A.npy"), std::as_const(a).view());
    write_npy(path("b.npy"), std::as_const(b).view());
    write_rows(scratch, "C.npy", a);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words factor(const std::string& matrix, const std::string& output,
                             const Words& more = {}) const {
    return Words{"factor", path(matrix), "-o", path(output), "--devices", "host:1"} + more;
  }
  [[nodiscard]] Words solve(const std::string& directory, const Words& more = {}) const {
    return Words{"solve",       path(directory), path("b.npy"), "-o",
                 path("x.npy"), "--devices",     "host:1"} +
           more;
  }
  [[nodiscard]] double forward_error() const {
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    return wide_errors(a.values, b.values, x.values).forward;
  }
  [[nodiscard]] std::string storage(const Words& names) const {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ",") + path(name);
    return list;
  }

  Scratch scratch;
  DenseMatrix<double> a;
  DenseMatrix<double> b;
};

TEST_F(CliStoredFactor, TakesMatricesInEitherOrderAndSolvesLater) {
  const Json memory = expect_json(factor("A.npy", "m", {"--method", "lu"}));
  for (const std::string matrix : {"A.npy", "C.npy"}) {
    const std::string out = "f" + matrix;
    const Json object = expect_json(factor(
        matrix, out, {"--storage", storage({out, "beside" + matrix}), "--host-memory", "60KiB"}));
    EXPECT_EQ(object.at("method"), "lu");
    EXPECT_EQ(object.at("storage").at("directories").size(), 2U);
    EXPECT_EQ(object.at("storage").at("found"), 0);
    EXPECT_GT(object.at("storage").at("panels").get<int>(), 4);
    EXPECT_GE(object.at("traffic").at("storage_write_bytes").get<std::int64_t>(),
              kStoredOrder * kStoredOrder * 8);
    EXPECT_EQ(object.at("traffic").at("storage_read_bytes"),
              object.at("planned_traffic").at("storage_read_bytes"));
    EXPECT_LE(object.at("host_bytes").get<std::int64_t>(), 60 * 1024);
    const auto log_of = [](const Json& of) {
      return of.at("factor").at("determinant").at("log").get<double>();
    };
    EXPECT_NEAR(log_of(object), log_of(memory), 1e-11);
    EXPECT_EQ(object.at("factor").at("determinant").at("sign"),
              memory.at("factor").at("determinant").at("sign"));
    const Json solved =
        expect_json(solve(out, {"--matrix", path(matrix), "--host-memory", "60KiB"}));
    EXPECT_EQ(solved.at("certificate").at("ok"), true);
    const double bound = solved.at("certificate").at("forward_error").get<double>();
    EXPECT_LE(forward_error(), bound);
    EXPECT_LE(bound, 1e-8);
    (void)expect_done(solve(out));
    EXPECT_LE(forward_error(), 1e-8);
    const Json status = expect_json({"factor", path(out), "--status"});
    EXPECT_EQ(status.at("done"), status.at("panels"));
    EXPECT_EQ(status.at("work_share"), 1.0);
  }
  expect_pieces(expect_done({"factor", path("fA.npy"), "--status"}),
                {"LU of order 150", "100.0 %"});
}

TEST_F(CliStoredFactor, TakesComplexMatricesByRows) {
  DenseMatrix<std::complex<double>> z{{}, kStoredOrder, kStoredOrder};
  for (std::size_t k = 0; k < a.values.size(); ++k)
    z.values.emplace_back(a.values[k], a.values[(7 * k + 3) % a.values.size()]);
  write_npy(path("z.npy"), std::as_const(z).view());
  write_rows(scratch, "zc.npy", z);
  const DenseMatrix<std::complex<double>> rhs{
      {z.values.begin(), z.values.begin() + kStoredOrder}, kStoredOrder, 1};
  write_npy(path("b.npy"), std::as_const(rhs).view());
  const Json memory = expect_json(factor("z.npy", "m"));
  for (const std::string matrix : {"z.npy", "zc.npy"}) {
    const std::string out = "f" + matrix;
    const Json object =
        expect_json(factor(matrix, out, {"--storage", path(out), "--host-memory", "100KiB"}));
    for (const int part : {0, 1})
      EXPECT_NEAR(object.at("factor").at("determinant").at("phase")[part].get<double>(),
                  memory.at("factor").at("determinant").at("phase")[part].get<double>(), 1e-12);
    const Json solved = expect_json(solve(out, {"--matrix", path(matrix)}));
    expect_pieces(expect_done({"logdet", path(out)}), {"a determinant of phase", " ± 5.1e-07\n"});
    EXPECT_LE(solved.at("certificate").at("forward_error").get<double>(), 1e-8);
    const auto x = NpyFile(path("x.npy")).to_dense_complex();
    // A's first column is A·e₁.
    for (std::int64_t i = 0; i < kStoredOrder; ++i)
      EXPECT_LE(std::abs(x.values[at(i)] - (i == 0 ? 1.0 : 0.0)), 1e-9) << matrix << ' ' << i;
  }
}

TEST_F(CliStoredFactor, RestsBesideItsFileWhereHostMemoryDoesNotHoldIt) {
  const Json object = expect_json(factor("A.npy", "f", {"--host-memory", "80KiB"}));
  EXPECT_EQ(object.at("storage").at("directories"), Json::array({path("f")}));
  EXPECT_FALSE(expect_json(factor("A.npy", "g", {"--host-memory", "8MiB"})).contains("storage"));
}

TEST_F(CliStoredFactor, GoesOnWithWhatIsThere) {
  const Words command = factor("A.npy", "f", {"--storage", path("f"), "--tile", "10"});
  (void)expect_done(command);
  expect_refused(command, 3, {path("f"), "holds blocks already"});
  // As a run would have left it that was killed while it wrote the last record.
  const std::string journal = path("f") + "/journal";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 5);
  std::filesystem::remove(path("f") + "/factor");
  const Json status = expect_json({"factor", path("f"), "--status"});
  EXPECT_EQ(status.at("panels"), 15);
  EXPECT_FALSE(status.at("whole").get<bool>());
  for (const Words& verb : {solve("f"), Words{"logdet", path("f")}})
    expect_refused(verb, 3, {"not whole", "--resume"});
  const int done = status.at("done").get<int>();
  expect_refused(factor("A.npy", "f", {"--storage", path("f"), "--tile", "20", "--resume"}), 2,
                 {path("f"), "have 10 columns", "cannot have 20"});
  const Json resumed = expect_json(command + Words{"--resume"});
  // The pivots of one may be in the record that was lost.
  const int found = resumed.at("storage").at("found").get<int>();
  EXPECT_TRUE(found == done || found == done - 1) << found << ' ' << done;
  EXPECT_LT(found, 15) << "a record may be of several";
  expect_pieces(expect_done(command + Words{"--resume"}), {"found             15 of 15 panels"});
  // All panels are there, and what is known of them is not.
  std::filesystem::remove(path("f") + "/factor");
  expect_pieces(expect_done({"factor", path("f"), "--status"}), {"15 of 15", "--resume"});
  expect_refused(solve("f"), 3, {"not whole", "--resume"});
  (void)expect_done(command + Words{"--resume"});
  EXPECT_EQ(expect_done({"factor", path("f"), "--status"}).find("--resume"), std::string::npos);
  expect_refused(factor("A.npy", "g", {"--storage", path("g") + "," + path("./g/")}), 2,
                 {"named twice"});
  (void)expect_done(solve("f", {"--matrix", path("A.npy")}));
  EXPECT_LE(forward_error(), 1e-8);
}

TEST_F(CliStoredFactor, RefusesWhatItCannotTake) {
  const Words in_storage{"--storage", path("f")};
  expect_refused(factor("A.npy", "f", in_storage + Words{"--shift", "1"}), 2, {"--shift"});
  expect_refused(factor("A.npy", "f", in_storage + Words{"--method", "cholesky"}), 1,
                 {"not symmetric"});
  expect_refused({"factor", path("A.npy"), "--status"}, 2, {"--status", "is none"});
  // One directory under two names, and it does not exist yet.
  expect_refused(factor("A.npy", "f", {"--storage", path("n") + "," + path("./n")}), 2,
                 {"named twice"});
  std::filesystem::create_directory(path("empty"));
  expect_refused(solve("empty"), 3, {"there is no factor in this directory"});
  expect_refused({"logdet", path("empty")}, 3, {"there is no factor in this directory"});
  expect_refused({"factor", path("A.npy")}, 2, {"--output"});
  expect_refused(factor("A.npy", "f", {"--storage", path("nowhere") + "/f"}), 3, {"nowhere"});
  EXPECT_FALSE(std::filesystem::exists(path("f")));
  expect_refused(factor("A.npy", "f", {"--storage", path("f"), "--host-memory", "1KiB"}), 3,
                 {"too small"});
  write_npy(path("wide.npy"), std::as_const(a).view().block(0, 0, kStoredOrder, kStoredOrder - 1));
  expect_refused(factor("wide.npy", "f", in_storage), 2, {"149", "150"});
  for (const std::string matrix : {"A.npy", "C.npy"}) {
    // Element (3, 7), by its place in the file.
    const bool rows = matrix == "C.npy";
    const std::int64_t place = rows ? 3 * kStoredOrder + 7 : 3 + 7 * kStoredOrder;
    std::fstream file(path(matrix), std::ios::binary | std::ios::in | std::ios::out);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path(matrix))) -
               (kStoredOrder * kStoredOrder - place) * 8);
    file.write(reinterpret_cast<const char*>(&nan), sizeof nan);
    file.close();
    expect_refused(factor(matrix, "f", in_storage), 3, {"(3, 7)", "not finite"});
  }
}

TEST_F(CliStoredFactor, TakesFilesOfNothingButNumbers) {
  const auto put = [&](const std::string& name, const auto& numbers) {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(numbers[0])));
  };
  std::vector<double> rows(a.values.size());
  for (std::int64_t i = 0; i < kStoredOrder; ++i)
    for (std::int64_t j = 0; j < kStoredOrder; ++j)
      rows[at(i * kStoredOrder + j)] = a.values[at(j * kStoredOrder + i)];
  put("A.raw", a.values);
  put("C.raw", rows);
  for (const Words& storage : {Words{}, Words{"--storage", path("s"), "--host-memory", "60KiB"}}) {
    for (const bool by_rows : {false, true}) {
      std::filesystem::remove_all(path("s"));
      std::filesystem::remove_all(path("f"));
      const std::string matrix = by_rows ? "C.raw" : "A.raw";
      const Words order = by_rows ? Words{"--by-rows"} : Words{};
      (void)expect_done(factor(matrix, "f", storage + order));
      // Saved and opened again, without A, with it as it was, and as another file has it.
      for (const Words& known :
           {Words{}, Words{"--matrix", path(matrix)}, Words{"--matrix", path("A.npy")}}) {
        (void)expect_done(solve("f", known));
        EXPECT_LE(forward_error(), 1e-8) << by_rows;
      }
    }
  }
  std::vector<float> narrow(a.values.begin(), a.values.end());
  put("N.raw", narrow);
  (void)expect_done(factor("N.raw", "n", {"--element", "fp32"}));
  const Json solved = expect_json(solve("n", {"--matrix", path("N.raw")}));
  EXPECT_LE(solved.at("certificate").at("backward_error").get<double>(), 1e-14);
  EXPECT_LE(forward_error(), 1e-2) << "A itself was rounded";

  put("short.raw", std::vector<double>(a.values.begin(), a.values.end() - 1));
  expect_refused(factor("short.raw", "x"), 3, {"short.raw", "179992 bytes"});
  expect_refused(factor("none.raw", "x"), 3, {"none.raw"});
  expect_refused(factor("A.raw", "x", {"--method", "cholesky"}), 2, {"by LU"});
  expect_refused(factor("A.raw", "x", {"--triangle", "lower"}), 2, {"--triangle"});
  expect_refused(factor("A.npy", "x", {"--by-rows"}), 2, {"--by-rows", ".raw"});
  std::vector<double> bad = a.values;
  bad[at(7 * kStoredOrder + 3)] = std::numeric_limits<double>::infinity();
  put("bad.raw", bad);
  expect_refused(factor("bad.raw", "x"), 3, {"(3, 7)", "not finite"});
  EXPECT_FALSE(std::filesystem::exists(path("x")));
}

TEST_F(CliStoredFactor, NamesTheRowWhereTheTransposeIsFactored) {
  DenseMatrix<double> singular = a;
  for (std::int64_t j = 0; j < kStoredOrder; ++j) singular.values[at(j * kStoredOrder + 7)] = 0;
  write_rows(scratch, "S.npy", singular);
  expect_refused(factor("S.npy", "s", {"--storage", path("s")}), 1, {"the pivot of row 7 is zero"});
  const Outcome told = run_program(factor("S.npy", "t", {"--storage", path("t"), "--json"}));
  const Json object = Json::parse(told.out);
  EXPECT_TRUE(object["storage"]["transposed"].get<bool>());
  EXPECT_EQ(object["factor"]["zero_pivot"].get<int>(), 7);
}

TEST_F(CliStoredFactor, DamageIsNeverAWrongNumber) {
  (void)expect_done(factor("A.npy", "f", {"--storage", path("f"), "--tile", "30"}));
  (void)expect_done(solve("f"));
  const std::string blocks = path("f") + "/0.blocks";
  for (const std::int64_t at : {std::int64_t{100}, std::int64_t{50'000}}) {
    std::fstream file(blocks, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const auto old = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(old ^ 4));
    file.close();
    expect_refused(solve("f"), 3, {"0.blocks", "not what was written", "byte"});
    std::fstream back(blocks, std::ios::binary | std::ios::in | std::ios::out);
    back.seekp(at);
    back.put(old);
  }
  (void)expect_done(solve("f"));
  std::filesystem::remove(blocks);
  expect_refused(solve("f"), 3, {"0.blocks"});
}

/// Its condition is one that fp64 bears; a factor in fp32 has lost its determinant.
TEST_F(CliStoredFactor, ADeterminantOfWhichNoDigitIsKnownIsSaidWithStatus1) {
  const std::int64_t n = 9;
  DenseMatrix<double> hilbert{{}, n, n};
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      hilbert.values.push_back(1 / static_cast<double>(i + j + 1));
  write_npy(path("H.npy"), std::as_const(hilbert).view());
  const auto expect_unknown = [this](const Words& words) {
    SCOPED_TRACE(testing::PrintToString(words));
    const Outcome text = run_program(words);
    EXPECT_EQ(text.status, 1);
    expect_pieces(text.out, {"of which not a digit is known, nor its sign"});
    expect_pieces(text.err, {"strata: not a digit of the log-determinant", "--precision fp64"});
    std::filesystem::remove_all(path("G"));
    const Outcome outcome = run_program(words + Words{"--json"});
    EXPECT_EQ(outcome.status, 1);
    const Json object = json_of(outcome.out);
    EXPECT_TRUE(object.at("log_determinant_error").is_null());
    EXPECT_EQ(object.at("numerically_singular"), false);
  };
  const Words lu{"--method", "lu"};
  expect_unknown(factor("H.npy", "G", lu + Words{"--precision", "fp32"}));
  ASSERT_TRUE(std::filesystem::exists(path("G"))) << "written all the same";
  const Words logdet{"logdet", path("G"), "--devices", "host:1"};
  const Outcome saved = run_program(logdet);
  EXPECT_EQ(saved.status, 1);
  expect_pieces(saved.out, {"of which not a digit is known, nor its sign"});
  expect_pieces(saved.err, {"strata: not a digit of the log-determinant", "--precision fp64"});
  EXPECT_EQ(run_program(logdet + Words{"--json"}).status, 1);
  (void)expect_done(factor("H.npy", "W", lu));
  (void)expect_done({"logdet", path("W"), "--devices", "host:1"});
}

}  // namespace
}  // namespace strata::test
