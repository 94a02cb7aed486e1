// What people mean by a name: nodes, tensors, modules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/explain/planned_graph.h"
#include "lib/graph/absent_values.h"

namespace ckplan {

// One of the things that were meant.
struct Subject {
  NodeId node;                    // None if a tensor was meant.
  std::vector<TensorId> tensors;  // All outputs of the node, or the one tensor; may be empty.
  std::string name;               // As it is called; of a tensor that is not in the graph its own.
  // The tensor is a view of `tensors`, or none of the graph's at all: `tensors` is empty then.
  const AbsentValue* absent = nullptr;
};

// Nodes, tensors and absent values of that very name, all of them; else the nodes of the module of
// that path; else what the name matches as a pattern (lib/base/glob.h). A tensor is left out if the
// node that makes it is meant as well. "node:", "tensor:" and "module:" in front choose among them.
// In the order of the graph. kUsage: there is nothing; notes tell of names that are near.
Result<std::vector<Subject>> FindSubjects(const PlannedGraph& graph,
                                          std::span<const AbsentValue> absent,
                                          std::string_view name);

}  // namespace ckplan
