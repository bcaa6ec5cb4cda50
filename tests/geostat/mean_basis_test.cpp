// Linear means where their columns nearly depend on each other: a stray point, points along a line,
// projected coordinates of a road, covariates in two units, a town or a building on the sphere.
// Likelihoods, predictions and observations that are left out, against generalized least squares in
// 100 digits: all have to be within what is stated of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "geostat/mean_basis.hpp"
#include "tests/geostat/fifty_digits.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

/// Columns of a building on the sphere are dependent up to 1e-19, systems up to its square.
using Wide = boost::multiprecision::cpp_bin_float_100;
using Row = std::vector<Wide>;

const Wide kRadian = boost::math::constants::pi<Wide>() / 180;

Row unit_vector(const Points& p, std::size_t i) {
  const Wide longitude = Wide(p.x[i]) * kRadian;
  const Wide latitude = Wide(p.y[i]) * kRadian;
  return {cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)};
}

/// The correlation of smoothness 1/2.
Wide exponential(const MaternParameters& p, const Points& a, std::size_t i, const Points& b,
                 std::size_t j) {
  if (p.separation.distance == Distance::euclidean) return Wide(correlation(p, a, i, b, j));
  const Row u = unit_vector(a, i);
  const Row v = unit_vector(b, j);
  Wide near = 0;
  Wide far = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    near += (u[k] - v[k]) * (u[k] - v[k]);
    far += (u[k] + v[k]) * (u[k] + v[k]);
  }
  const Wide angle = 2 * atan2(Wide(sqrt(near)), Wide(sqrt(far)));
  return exp(Wide(-angle * Wide(kEarthRadiusKm) / Wide(p.range)));
}

Row mean_row(const Points& p, Distance distance, std::size_t i) {
  Row row{Wide(1)};
  if (distance == Distance::euclidean)
    row.insert(row.end(), {Wide(p.x[i]), Wide(p.y[i])});
  else
    for (const Wide& c : unit_vector(p, i)) row.push_back(c);
  for (const std::vector<double>& c : p.covariates) row.push_back(Wide(c[i]));
  return row;
}

/// a ← a⁻¹·b by elimination with pivots.
Row solved(std::vector<Row> a, Row b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i)
      if (abs(a[i][k]) > abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const Wide factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// Universal kriging by its whole system [[Σ, X], [Xᵀ, 0]].
class Universal {
 public:
  Universal(const Points& points, const std::vector<double>& values, const MaternParameters& p)
      : points_(points), p_(p), n_(values.size()) {
    const std::size_t columns = mean_row(points, p.separation.distance, 0).size();
    system_.assign(n_ + columns, Row(n_ + columns));
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j)
        system_[i][j] = Wide(p.variance) * exponential(p, points, i, points, j) +
                        (i == j ? Wide(p.nugget) : Wide(0));
      const Row row = mean_row(points, p.separation.distance, i);
      for (std::size_t k = 0; k < columns; ++k) system_[i][n_ + k] = system_[n_ + k][i] = row[k];
    }
    z_.assign(values.begin(), values.end());
    z_.resize(n_ + columns);
  }

  /// (z − Xβ)ᵀΣ⁻¹(z − Xβ).
  [[nodiscard]] Wide quadratic_form() const {
    const Row x = solved(system_, z_);
    Wide sum = 0;
    for (std::size_t i = 0; i < n_; ++i) sum += z_[i] * x[i];
    return sum;
  }
  struct Predicted {
    Wide mean = 0;
    Wide variance = 0;  // of the process
  };
  [[nodiscard]] Predicted at(const Points& targets, std::size_t t) const {
    Row right;
    for (std::size_t i = 0; i < n_; ++i)
      right.push_back(Wide(p_.variance) * exponential(p_, points_, i, targets, t));
    const Row row = mean_row(targets, p_.separation.distance, t);
    right.insert(right.end(), row.begin(), row.end());
    const Row weights = solved(system_, right);
    Predicted out{0, Wide(p_.variance)};
    for (std::size_t i = 0; i < n_; ++i) out.mean += weights[i] * z_[i];
    for (std::size_t i = 0; i < right.size(); ++i) out.variance -= weights[i] * right[i];
    return out;
  }

 private:
  const Points& points_;
  const MaternParameters& p_;
  std::size_t n_;
  std::vector<Row> system_;
  Row z_;
};

struct NearlyDependent {
  std::string name;
  Points points;
  Points targets;
  Distance distance = Distance::euclidean;
  double range = 0.3;
};

std::vector<NearlyDependent> cases(std::uint64_t seed) {
  constexpr std::int64_t kPoints = 11;
  std::vector<NearlyDependent> out;
  const Points unit = random_points(kPoints, seed);
  const Points off = random_points(3, seed + 1);
  const auto mapped = [](Points p, const std::function<void(double&, double&)>& map) {
    for (std::size_t i = 0; i < p.x.size(); ++i) map(p.x[i], p.y[i]);
    return p;
  };
  for (const double stray : {1e2, 1e4, 1e6, 1e10}) {
    NearlyDependent c{"stray", unit, off};
    c.points.x.push_back(stray);
    c.points.y.push_back(stray);
    c.targets.x.push_back(stray / 2);
    c.targets.y.push_back(-stray);
    out.push_back(c);
    c.points.y.back() = 0.3;
    c.name = "stray along x";
    out.push_back(c);
  }
  for (const double width : {1e-3, 1e-6, 1e-9}) {
    const auto to_line = [&](double& x, double& y) { y = 2 * x + width * y; };
    out.push_back({"line", mapped(unit, to_line), mapped(off, to_line)});
    const auto to_road = [&](double& x, double& y) {
      y = 5e6 + 1000 * (x + 1e3 * width * y);
      x = 4e5 + 1000 * x;
    };
    out.push_back({"road", mapped(unit, to_road), mapped(off, to_road), Distance::euclidean, 300});
  }
  for (const double extent : {40., 1., 1e-2, 1e-4, 1e-6}) {
    for (const auto& [longitude, latitude] :
         {std::pair{7.4, 46.9}, {179.99999, -16.8}, {-70., 89.9}}) {
      if (extent > 1 && latitude > 80) continue;
      const auto to_town = [&, x0 = longitude, y0 = latitude](double& x, double& y) {
        x = x0 + extent * (x - 0.5);
        if (x > 180) x -= 360;
        y = y0 + extent * (y - 0.5) / 8;
      };
      out.push_back({"town", mapped(unit, to_town), mapped(off, to_town), Distance::great_circle,
                     30 * extent});
    }
  }
  // Heights in metres and, rounded, in feet.
  NearlyDependent heights{"heights", unit, off};
  for (Points* p : {&heights.points, &heights.targets}) {
    p->covariates.resize(2);
    for (std::size_t i = 0; i < p->x.size(); ++i) {
      const double metres = 400 + 100 * p->y[i] * p->x[i];
      p->covariates[0].push_back(metres);
      p->covariates[1].push_back(std::round(1e6 * metres / 0.3048) / 1e6);
    }
  }
  out.push_back(heights);
  return out;
}

TEST(MeanBasis, NearlyDependentColumnsCostNothing) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const std::uint64_t seeds = test::campaign(20, 1, 1);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const NearlyDependent& c : cases(100 * seed)) {
      MaternParameters p{2, c.range, 0.5, 0.1};
      p.separation.distance = c.distance;
      std::vector<double> values;
      for (std::size_t i = 0; i < c.points.x.size(); ++i)
        values.push_back(15 + random_normal(seed + 7, i));
      const std::string label = c.name + " " + std::to_string(seed) + " range " +
                                std::to_string(c.range) + " at " + std::to_string(c.points.y[0]);
      const Universal exact(c.points, values, p);
      const Likelihood got = log_likelihood(c.points, values, p, Mean::linear, host_options());
      EXPECT_LE(std::abs(static_cast<double>(Wide(got.quadratic_form) - exact.quadratic_form())),
                got.rounding.quadratic_form)
          << label;
      EXPECT_LE(got.rounding.quadratic_form, 1e-10 * got.quadratic_form) << label;
      const Model model{p, Mean::linear, {}, c.points, values};
      const Prediction predicted = predict(model, c.targets, host_options());
      for (std::size_t t = 0; t < c.targets.x.size(); ++t) {
        const Universal::Predicted truth = exact.at(c.targets, t);
        EXPECT_LE(std::abs(static_cast<double>(Wide(predicted.mean[t]) - truth.mean)),
                  predicted.rounding.mean_error)
            << label;
        EXPECT_LE(std::abs(static_cast<double>(Wide(predicted.process_standard_error[t]) -
                                               sqrt(truth.variance))),
                  predicted.rounding.standard_error_error)
            << label;
      }
      EXPECT_TRUE(predicted.rounding.ok()) << label;
      const CrossValidation left_out =
          leave_one_out(c.points, values, p, Mean::linear, host_options());
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::vector<std::int64_t> rows;
        Points others = c.points;
        std::vector<double> z = values;
        const auto drop = [&](std::vector<double>& v) {
          v.erase(v.begin() + static_cast<std::ptrdiff_t>(i));
        };
        drop(others.x);
        drop(others.y);
        drop(z);
        for (std::vector<double>& covariate : others.covariates) drop(covariate);
        const Universal::Predicted truth = Universal(others, z, p).at(c.points, i);
        EXPECT_LE(std::abs(static_cast<double>(Wide(left_out.mean[i]) - truth.mean)),
                  left_out.rounding.mean_error)
            << label << " without " << i;
        EXPECT_LE(std::abs(static_cast<double>(Wide(left_out.standard_error[i]) -
                                               sqrt(Wide(truth.variance + Wide(p.nugget))))),
                  left_out.rounding.standard_error_error)
            << label << " without " << i;
      }
    }
  }
}

TEST(MeanBasis, HasColumnsOfLengthOneAcrossEachOther) {
  for (const NearlyDependent& c : cases(5)) {
    const MeanBasis basis(Mean::linear, c.points, c.distance);
    const std::int64_t n = c.points.size();
    std::vector<double> design(static_cast<std::size_t>(n * basis.columns()));
    const MatrixView<double> q{design.data(), n, basis.columns(), n};
    basis.fill(c.points, q);
    for (std::int64_t j = 0; j < q.cols; ++j)
      for (std::int64_t k = 0; k <= j; ++k) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += q(i, j) * q(i, k);
        EXPECT_NEAR(sum / static_cast<double>(n), j == k ? 1 : 0, 1e-15 * static_cast<double>(n))
            << c.name << ' ' << j << ' ' << k;
      }
  }
}

TEST(MeanBasis, HasColumnsThatAreRightToARounding) {
  for (const std::uint64_t seed : {3, 1800}) {
    for (const NearlyDependent& c : cases(seed)) {
      const std::size_t n = c.points.x.size();
      // 1, then the others, across those before: of the sphere, turned so that its coordinates
      // come in the order of the basis: along the parallel, the meridian, below the plane.
      std::vector<Row> columns;
      for (std::size_t i = 0; i < n; ++i) {
        Row row = mean_row(c.points, c.distance, i);
        if (c.distance == Distance::great_circle) {
          const Row u(row.begin() + 1, row.begin() + 4);
          const Wide longitude = Wide(c.points.x[0]) * kRadian;
          const Wide latitude = Wide(c.points.y[0]) * kRadian;
          const Row away{cos(latitude) * cos(longitude), cos(latitude) * sin(longitude),
                         sin(latitude)};
          row[1] = cos(longitude) * u[1] - sin(longitude) * u[0];
          row[2] = cos(latitude) * u[2] -
                   sin(latitude) * (cos(longitude) * u[0] + sin(longitude) * u[1]);
          row[3] = 1 - (away[0] * u[0] + away[1] * u[1] + away[2] * u[2]);
        }
        columns.resize(row.size());
        for (std::size_t k = 0; k < row.size(); ++k) columns[k].push_back(row[k]);
      }
      const auto mean_product = [&](std::size_t j, std::size_t k) {
        Wide sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += columns[j][i] * columns[k][i];
        return Wide(sum / static_cast<double>(n));
      };
      const MeanBasis basis(Mean::linear, c.points, c.distance);
      for (std::size_t j = 0; j < columns.size(); ++j) {
        for (std::size_t k = 0; k < j; ++k) {
          const Wide along = mean_product(j, k);
          for (std::size_t i = 0; i < n; ++i) columns[j][i] -= along * columns[k][i];
        }
        const Wide length = sqrt(mean_product(j, j));
        for (std::size_t i = 0; i < n; ++i) {
          columns[j][i] /= length;
          EXPECT_LE(abs(Wide(Wide(basis.row(c.points, i)[j]) - columns[j][i])),
                    4 * 0x1p-53 * basis.roundings())
              << c.name << " at " << c.points.y[0] << " column " << j << " row " << i;
        }
      }
    }
  }
}

TEST(MeanBasis, TakesWhatIsRoundingForDependent) {
  // A line in projected coordinates, whose points are off it by rounding alone.
  Points line;
  for (int i = 0; i < 12; ++i) {
    line.x.push_back(4e5 + 7.1 * i);
    line.y.push_back(5e6 + 2.3 * line.x.back());
  }
  const MeanBasis basis(Mean::linear, line, Distance::euclidean);
  for (std::size_t i = 0; i < line.x.size(); ++i) EXPECT_EQ(basis.row(line, i)[2], 0);
  const std::vector<double> values(12, 1.0);
  EXPECT_EQ(kind_of_error([&] {
              (void)log_likelihood(line, values, {1, 10, 0.5, 0.1}, Mean::linear, host_options());
            }),
            ErrorKind::numerical);
}

TEST(MeanBasis, GivesCoefficientsOfWhatTheMeanIsLinearIn) {
  for (const NearlyDependent& c : cases(9)) {
    const MeanBasis basis(Mean::linear, c.points, c.distance);
    std::vector<double> of_columns;
    for (std::int64_t k = 0; k < basis.columns(); ++k)
      of_columns.push_back(1 + 0.5 * static_cast<double>(k));
    const std::vector<double> original = basis.in_original_units(of_columns);
    for (std::size_t i = 0; i < c.points.x.size(); ++i) {
      const std::vector<double> row = basis.row(c.points, i);
      double mean = 0;
      for (std::size_t k = 0; k < row.size(); ++k) mean += of_columns[k] * row[k];
      EXPECT_NEAR(mean_at(original, c.points, i), mean,
                  4 * 0x1p-53 * mean_terms_at(original, c.points, i) + 1e-14)
          << c.name << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace strata
