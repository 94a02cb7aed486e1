// Graphs for tests, drawn on one line: bytes @ cost, as in the papers' figures.
//
//   GraphFromText("a:4@1 -> b:2@3 -> c:1@1; a -> c")
//
//        a ──▶ b ──▶ c          a makes 4 bytes at cost 1, b makes 2 bytes at cost 3, ...
//        └───────────▲          c reads b and a
//
// A node is declared at its first mention, `name:bytes@cost`, or `name:bytes` for cost 1; later
// mentions are the bare name. `;` ends a path; a path of one node is a node without edges.
//
// The text means the same as the minimal form of graph.json: each node has one output, and there
// are no inputs. Backward costs as much as forward and reads all inputs and the node's own output.
// The outputs of the graph are the tensors that no node reads. Node i makes tensor i, and both have
// the file id i.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// A text that cannot be read stops the program through CKPLAN_CHECK, because the test itself is
// wrong.
TensorGraph GraphFromText(std::string_view text);

// Builds a graph with the same meaning from lists. Edges are positions in `vertices`; a node's
// inputs are in the order of `edges`.
struct TextVertex {
  std::string name;
  Bytes bytes;
  Cost cost;
};
TensorGraph GraphFromVertices(std::string name, const std::vector<TextVertex>& vertices,
                              const std::vector<std::pair<int32_t, int32_t>>& edges);

// Builds the chain n0 -> n1 -> ... of nodes with these sizes and a cost of 1 each.
TensorGraph ChainOf(const std::vector<int64_t>& bytes);

// A schedule as text, for tests.

// "fa fb loss bb ba": `f` before the name of a node is its forward, `b` its backward.
inline std::string StepsOf(const TensorGraph& graph, const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += text.empty() ? "" : " ";
    text += step.kind == StepKind::kLoss
                ? "loss"
                : (step.kind == StepKind::kForward ? "f" : "b") + graph.node(step.node()).name;
  }
  return text;
}

// Joint graphs for tests, written as a list of operations.
struct SmallOp {
  std::string op;  // Both the name and the type of the operation.
  int64_t bytes = 0;
  int64_t cost = 0;
  std::vector<int32_t> reads;  // Positions of the operations whose values it reads.
};

// Makes a graph with one value for each operation; the last value is the result. Operations from
// `first_backward` on belong to the backward phase.
JointGraph GraphOfOps(const std::vector<SmallOp>& ops,
                      std::optional<size_t> first_backward = std::nullopt);

}  // namespace ckplan
