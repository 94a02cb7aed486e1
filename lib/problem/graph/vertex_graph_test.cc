#include "lib/problem/graph/vertex_graph.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/testing/graph_text.h"

namespace ckplan {

TEST_CASE("chain: splitting vertices and blocks of a diamond between two chains") {
  //        ┌─ c ─┐
  //   a ─ b      e ─ f
  //        └─ d ─┘
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> c:1 -> e:1 -> f:1; b -> d:1 -> e");
  const Chain chain = FindChain(graph, VertexGraph(graph));
  std::vector<std::string> names;
  for (const NodeId v : chain.splitting) names.push_back(graph.node(v).name);
  CHECK(names == std::vector<std::string>{"a", "b", "e", "f"});
  CHECK(chain.block_count == 4);
}

TEST_CASE("chain: an edge over everything leaves only the two ends") {
  const TensorGraph graph = GraphFromText("a:1 -> b:1 -> c:1 -> d:1; a -> d");
  CHECK(FindChain(graph, VertexGraph(graph)).splitting.size() == 2);
}

}  // namespace ckplan
