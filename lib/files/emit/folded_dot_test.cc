#include "lib/files/emit/folded_dot.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// Makes a chain of `count` nodes, named by the function.
template <typename NameOf>
TensorGraph Chain(int32_t count, NameOf name_of) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < count; ++i) {
    vertices.push_back({name_of(i), Bytes(1024), Cost(1)});
    if (i > 0) edges.emplace_back(i - 1, i);
  }
  return GraphFromVertices("chain", vertices, edges);
}

int Count(const std::string& text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string Folded(const TensorGraph& graph, const Plan* plan = nullptr) {
  return WriteFoldedDot(graph, plan);
}

}  // namespace

TEST_CASE("folded dot: boxes are the deepest modules that are not too many") {
  // There are 4 stages of 10 blocks of 10 nodes: the 40 blocks become boxes, the 400 nodes would be
  // too many.
  const TensorGraph graph = Chain(400, [](int32_t i) {
    return "/stage" + std::to_string(i / 100) + "/block" + std::to_string(i / 10) + "/op" +
           std::to_string(i) + "/run";
  });
  const std::string text = Folded(graph);
  CHECK(Count(text, "10 nodes") == 40);
  CHECK(text.find("m0 [label=\"/stage0/block0\\n10 nodes\", shape=box];") != std::string::npos);
  CHECK(Count(text, " -> ") == 39);
  CHECK(Count(text, "label=\"1.00 KiB\"") == 39);
}

TEST_CASE("folded dot: without modules, segments of the plan or runs of nodes") {
  const TensorGraph graph = Chain(400, [](int32_t i) { return "op" + std::to_string(i); });
  const std::string text = Folded(graph);
  CHECK(Count(text, "7 nodes\"") == 57);  // One node remains for a last box.
  CHECK(text.find("op0 ... op6\\n7 nodes") != std::string::npos);
  IdVector<NodeId, bool> is_kept;
  IdVector<NodeId, int32_t> segment_of;
  for (int32_t i = 0; i < 400; ++i) {
    is_kept.push_back(i % 2 == 0 || i >= 200);
    segment_of.push_back(i / 100);
  }
  const Plan plan =
      AssemblePlan(graph, LowerStrategy(graph, KeptSet{is_kept}), std::move(segment_of));
  const std::string planned = Folded(graph, &plan);
  CHECK(planned.find("segment 0\\n100 nodes, 50 run again\\nkeeps 50.00 KiB") != std::string::npos);
  CHECK(planned.find("segment 3\\n100 nodes, 0 run again") != std::string::npos);
  CHECK(Count(planned, "#56B4E9:#E69F00") == 2);
}

}  // namespace ckplan
