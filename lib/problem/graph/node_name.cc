#include "lib/problem/graph/node_name.h"

#include <fmt/format.h>

namespace ckplan {

std::string ShownName(const TensorGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.name.empty()) return node.name;
  const std::string output = node.outputs.empty() ? "" : graph.tensor(node.outputs.front()).name;
  return output.empty() ? fmt::format("node {}", node.file_id) : output;
}

std::string ShownName(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  if (!op.name.empty()) return op.name;
  const std::string write = op.writes.empty() ? "" : graph.value(op.writes.front()).name;
  return write.empty() ? fmt::format("operation {}", op.file_id) : write;
}

}  // namespace ckplan
