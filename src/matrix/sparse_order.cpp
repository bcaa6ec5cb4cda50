// The reverse Cuthill–McKee order (Cuthill, McKee, "Reducing the bandwidth of sparse symmetric
// matrices", 1969; reversed by George, 1971), by Boost.Graph. Rows that follow each other in it are
// neighbours in the graph, so that blocks of rows share few of them.

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/cuthill_mckee_ordering.hpp>
#include <boost/graph/properties.hpp>

#include "base/check.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

std::vector<std::int32_t> reverse_cuthill_mckee(const SparseMatrix& a) {
  require(a.rows == a.cols, ErrorKind::misuse, "sparse",
          "only a square matrix has an order, this one is {} by {}", a.rows, a.cols);
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS,
                            boost::property<boost::vertex_color_t, boost::default_color_type>>;
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;  // of the lower triangle of A + Aᵀ
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
         k < a.start[static_cast<std::size_t>(i + 1)]; ++k) {
      const std::int32_t j = a.column[static_cast<std::size_t>(k)];
      if (i != j)
        edges.emplace_back(std::max(static_cast<std::int32_t>(i), j),
                           std::min(static_cast<std::int32_t>(i), j));
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  Graph graph(edges.begin(), edges.end(), static_cast<std::size_t>(a.rows));
  std::vector<std::int32_t> order(static_cast<std::size_t>(a.rows));
  boost::cuthill_mckee_ordering(graph, order.rbegin(), boost::get(boost::vertex_color, graph),
                                boost::make_degree_map(graph));
  return order;
}

}  // namespace strata
