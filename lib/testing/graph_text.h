// Parses graphs for tests from one line of text. Nodes have "bytes@cost" labels, as in the papers'
// figures.
//
//   GraphFromText("a:4@1 -> b:2@3 -> c:1@1; a -> c")
//
//        a ──▶ b ──▶ c          a writes 4 bytes at cost 1, b writes 2 bytes at cost 3, ...
//        └───────────▲          c reads b and a
//
// A node's first mention declares it as `name:bytes@cost`, or `name:bytes` for cost 1; later
// mentions use the name alone. `;` ends a path; a path of one node adds no edges.
//
// The text has the meaning of the minimal form of graph.json: each node has one output, and the
// graph has no inputs. Backward costs as much as forward and reads all inputs and the node's own
// output. Tensors that no node reads are outputs of the graph. Node i writes tensor i, and both
// have the file id i.
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

// A malformed text fails a CKPLAN_CHECK, because the test itself is wrong.
TensorGraph GraphFromText(std::string_view text);

// Builds such a graph from lists. Edges are positions in `vertices`; each node's inputs follow the
// order of `edges`.
struct TextVertex {
  std::string name;
  Bytes bytes;
  Cost cost;
};
TensorGraph GraphFromVertices(std::string name, const std::vector<TextVertex>& vertices,
                              const std::vector<std::pair<int32_t, int32_t>>& edges);

// Builds the chain n0 -> n1 -> ... with these sizes, where each node costs 1.
TensorGraph ChainOf(const std::vector<int64_t>& bytes);

// Returns a schedule as text such as "fa fb loss bb ba", where "fa" is the forward step of node a,
// and "ba" is its backward step.
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

// One operation of a small joint graph.
struct SmallOp {
  std::string op;  // Both the name and the type of the operation.
  int64_t bytes = 0;
  int64_t cost = 0;
  std::vector<int32_t> reads;  // Positions of the operations that write the values it reads.
};

// Builds a graph in which each operation writes one value. The last value is the result. Operations
// from `first_backward` on belong to the backward phase.
JointGraph GraphOfOps(const std::vector<SmallOp>& ops,
                      std::optional<size_t> first_backward = std::nullopt);

}  // namespace ckplan
