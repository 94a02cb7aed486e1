#include "lib/planning/algorithms/feng/division_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "lib/base/rng.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

TwoTerminalGraph TwoTerminalOf(const TensorGraph& graph) {
  return MakeTwoTerminal(graph, VertexGraph(graph));
}

DivisionTree TreeOf(const TwoTerminalGraph& graph) { return *DivideGraph(graph, {}); }

// Makes n nodes whose results are read in reverse order, so that close sets are nested.
TensorGraph NestedGraph(int n) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 2 * n; ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(1), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
    if (i > n) edges.emplace_back(2 * n - 1 - i, i);
  }
  return GraphFromVertices("nested", vertices, edges);
}

// Writes a tree as "S(e B(S(e e) S(e e)) e)": S splittable, B branched, N non-branched, e an edge.
std::string Shape(const DivisionTree& tree, int32_t index = 0) {
  const CloseSet& set = tree.close_sets[static_cast<size_t>(index)];
  if (set.kind == CloseSetKind::kEdge) return "e";
  const char letter = set.kind == CloseSetKind::kSplittable ? 'S'
                      : set.kind == CloseSetKind::kBranched ? 'B'
                                                            : 'N';
  std::string shape = {letter, '('};
  for (const int32_t child : set.children) {
    if (shape.back() != '(') shape += ' ';
    shape += Shape(tree, child);
  }
  shape += ')';
  return shape;
}

std::string ShapeOf(const std::string& text) {
  return Shape(TreeOf(TwoTerminalOf(GraphFromText(text))));
}

// Returns all vertices strictly between the ends of a close set.
std::set<VertexId> VerticesIn(const DivisionTree& tree, int32_t index) {
  const CloseSet& set = tree.close_sets[static_cast<size_t>(index)];
  std::set<VertexId> vertices(set.inner.begin(), set.inner.end());
  for (const int32_t child : set.children) vertices.merge(VerticesIn(tree, child));
  return vertices;
}

// Checks Definition 1, except for what always holds in a graph with one source and one target.
bool IsClosed(const TwoTerminalGraph& graph, VertexId begin, VertexId end,
              const std::set<VertexId>& inside) {
  for (const VertexId v : inside) {
    for (const VertexId w : graph.vertices[v].predecessors) {
      if (w != begin && inside.count(w) == 0) return false;
    }
    for (const VertexId w : graph.vertices[v].successors) {
      if (w != end && inside.count(w) == 0) return false;
    }
  }
  return true;
}

// Returns the inside of every close set [begin, end], by trying all pairs.
std::vector<std::set<VertexId>> AllCloseSets(const TwoTerminalGraph& graph) {
  std::vector<std::set<VertexId>> all;
  for (const VertexId begin : graph.vertices.ids()) {
    for (const VertexId end : graph.vertices.ids()) {
      if (end <= begin) continue;
      std::set<VertexId> inside;
      for (VertexId v(begin.index() + 1); v < end; ++v) inside.insert(v);
      for (bool shrinks = true; shrinks;) {
        shrinks = false;
        for (const VertexId v : std::set<VertexId>(inside)) {
          if (IsClosed(graph, begin, end, {v})) continue;
          const auto leaves = [&](VertexId w) {
            return w != begin && w != end && inside.count(w) == 0;
          };
          const auto& vertex = graph.vertices[v];
          if (std::any_of(vertex.predecessors.begin(), vertex.predecessors.end(), leaves) ||
              std::any_of(vertex.successors.begin(), vertex.successors.end(), leaves) ||
              std::count(vertex.predecessors.begin(), vertex.predecessors.end(), end) > 0) {
            inside.erase(v);
            shrinks = true;
          }
        }
      }
      if (!inside.empty()) all.push_back(inside);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("division tree: the three types of close sets") {
  CHECK(ShapeOf("s:1 -> t:1") == "e");
  CHECK(ShapeOf("s:1 -> a:1 -> t:1") == "S(e e)");
  CHECK(ShapeOf("s:1 -> a:1 -> t:1; s -> t") == "B(e S(e e))");
  CHECK(ShapeOf("s:1 -> a:1 -> c:1 -> e:1 -> t:1; a -> d:1 -> e") == "S(e B(S(e e) S(e e)) e)");
}

//        v2 (Fig. 4 c, with a vertex on each of its five members)
//      /  |  \.
//    v1   |   v4
//      \  v  /
//        v3
TEST_CASE("division tree: the maximal split of a non-branched close set") {
  CHECK(ShapeOf("v1:1 -> v2:1 -> v4:1; v1 -> v3:1 -> v4; v2 -> v3") == "N(e e e e e)");
  const TwoTerminalGraph graph = TwoTerminalOf(GraphFromText(
      "v1:1 -> a:1 -> v2:1 -> b:1 -> v4:1; v1 -> c:1 -> v3:1 -> d:1 -> v4; v2 -> e:1 -> v3"));
  const DivisionTree tree = TreeOf(graph);
  CHECK(Shape(tree) == "N(S(e e) S(e e) S(e e) S(e e) S(e e))");
  CHECK(tree.close_sets[0].inner.size() == 2);
}

TEST_CASE("division tree: a member of a maximal split may be branched or split again") {
  // Between v2 and v3 lies another such bridge, with a direct edge beside it.
  CHECK(ShapeOf("v1:1 -> v2:1 -> v4:1; v1 -> v3:1 -> v4; v2 -> v3; "
                "v2 -> a:1 -> b:1 -> v3; a -> c:1 -> v3; v2 -> c; a -> b; v2 -> b") ==
        "N(e e B(e N(e e e e e e e)) e e)");
}

TEST_CASE(
    "division tree: every edge occurs once, all members are closed, no close set straddles two") {
  int non_branched = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto edge_percent = static_cast<int>(rng.Between(15, 45));
    const auto nodes = static_cast<int>(rng.Between(2, 11));
    const TensorGraph random = RandomDag(rng, nodes, edge_percent, 20, 9);
    const TwoTerminalGraph graph = TwoTerminalOf(random);
    const DivisionTree tree = TreeOf(graph);
    std::map<std::pair<VertexId, VertexId>, int> edges;
    std::vector<std::set<VertexId>> inside;
    for (size_t i = 0; i < tree.close_sets.size(); ++i) {
      const CloseSet& set = tree.close_sets[i];
      inside.push_back(VerticesIn(tree, static_cast<int32_t>(i)));
      CHECK(IsClosed(graph, set.begin, set.end, inside[i]));
      Bytes memory;
      for (const VertexId v : inside[i]) memory += graph.vertices[v].memory;
      CHECK(set.memory == memory);
      if (set.kind == CloseSetKind::kEdge) ++edges[{set.begin, set.end}];
      non_branched += set.kind == CloseSetKind::kNonBranched;
    }
    for (const VertexId v : graph.vertices.ids()) {
      for (const VertexId w : graph.vertices[v].successors) CHECK(edges[{v, w}] == 1);
    }
    // The paper's Theorem 1: a close set is inside a member, around a member, or a run of members.
    for (const std::set<VertexId>& close : AllCloseSets(graph)) {
      for (size_t i = 0; i < tree.close_sets.size(); ++i) {
        const CloseSet& set = tree.close_sets[i];
        if (set.kind != CloseSetKind::kNonBranched) continue;
        const bool is_within =
            std::includes(inside[i].begin(), inside[i].end(), close.begin(), close.end());
        if (!is_within || close == inside[i]) continue;
        int holders = 0;
        for (const int32_t child : set.children) {
          const auto& member = inside[static_cast<size_t>(child)];
          holders += std::includes(member.begin(), member.end(), close.begin(), close.end());
        }
        CHECK(holders == 1);
      }
    }
  }
  CHECK(non_branched > 300);
}

TEST_CASE("two-terminal graph: several sources and targets, in-place, no gradient") {
  SUBCASE("two sources get a virtual one; the last vertex is the target") {
    const TwoTerminalGraph graph = TwoTerminalOf(GraphFromText("a:1 -> c:1 -> d:1; b:1 -> c"));
    CHECK(graph.vertices.size() == 5);
    CHECK(graph.is_virtual(graph.source()));
    CHECK_FALSE(graph.is_virtual(graph.target()));
  }
  SUBCASE("a result without readers is tied to the next splitting vertex") {
    const TwoTerminalGraph graph =
        TwoTerminalOf(GraphFromText("a:1 -> b:1 -> dead:1; b -> c:1 -> d:1 -> e:1"));
    CHECK(graph.vertices.size() == 6);
    CHECK(Shape(TreeOf(graph)) == "S(e B(e S(e e)) e e)");
  }
  SUBCASE("a single vertex is a source, and its target is virtual") {
    const TwoTerminalGraph graph = TwoTerminalOf(GraphFromText("a:7"));
    CHECK(graph.vertices.size() == 2);
    CHECK(graph.is_virtual(graph.target()));
    CHECK(Shape(TreeOf(graph)) == "e");
  }
  SUBCASE("the batch is the source where there is one") {
    TensorGraphParts parts = PartsOf(GraphFromText("a:7 -> b:7"));
    Tensor batch;
    batch.file_id = 9;
    batch.name = "x";
    batch.kind = TensorKind::kInput;
    parts.nodes[NodeId(0)].inputs = {parts.tensors.push_back(batch)};
    const TwoTerminalGraph graph = TwoTerminalOf(*TensorGraph::Create(std::move(parts)));
    CHECK(graph.vertices.size() == 3);
    CHECK(graph.is_virtual(graph.source()));
    CHECK_FALSE(graph.is_virtual(graph.target()));
  }
  SUBCASE("a tensor that is overwritten in place shares its vertex") {
    TensorGraphParts parts = PartsOf(GraphFromText("a:3 -> b:5 -> c:5 -> d:1"));
    for (Node& node : parts.nodes) node.backward_reads = node.outputs;
    parts.nodes[NodeId(1)].backward_reads.clear();
    parts.nodes[NodeId(2)].in_place = {{TensorId(2), TensorId(1)}};
    const TwoTerminalGraph graph = TwoTerminalOf(*TensorGraph::Create(std::move(parts)));
    REQUIRE(graph.vertices.size() == 3);
    CHECK(graph.vertices[VertexId(1)].nodes == std::vector{NodeId(1), NodeId(2)});
    CHECK(graph.vertices[VertexId(1)].memory == Bytes(5));
  }
  SUBCASE("nodes without a gradient are not vertices") {
    TensorGraphParts parts = PartsOf(GraphFromText("a:3 -> b:5 -> c:5; mask:2 -> b; mask -> c"));
    for (Tensor& tensor : parts.tensors) tensor.requires_grad = tensor.bytes != Bytes(2);
    const TwoTerminalGraph graph = TwoTerminalOf(*TensorGraph::Create(std::move(parts)));
    CHECK(graph.vertices.size() == 3);
    CHECK(graph.memory_aside == Bytes(2));
  }
}

TEST_CASE("division tree: more steps than allowed are refused, however deep the graph") {
  const TwoTerminalGraph small = TwoTerminalOf(NestedGraph(10));
  CHECK(DivideGraph(small, {}).ok());
  CHECK(DivideGraph(small, {}, 10).error().code == ErrorCode::kUnsupported);
  const TwoTerminalGraph large = TwoTerminalOf(NestedGraph(20'000));
  CHECK(DivideGraph(large, {}).error().code == ErrorCode::kUnsupported);
}

}  // namespace ckplan
