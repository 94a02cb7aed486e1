// Finds the nodes, tensors and modules that a name refers to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

// A node or tensor that the name refers to.
struct Subject {
  NodeId node;                    // None if the subject is a tensor.
  std::vector<TensorId> tensors;  // All outputs of the node, or the one tensor; may be empty.
  // Its name; for a tensor that is not in the graph, the requested name.
  std::string name;
  // Set if the tensor is not in the graph. `tensors` then has the tensor that it is a view of, if
  // any.
  const AbsentValue* absent = nullptr;
};

// Finds all nodes, tensors and absent values with exactly this name. If there are none, finds the
// nodes of the module with this path, or else the nodes and tensors that match the name as a
// pattern (lib/base/name_patterns.h). A tensor is omitted if its producer is found too. The
// prefixes "node:", "tensor:" and "module:" restrict the search. Results are in the order of the
// graph. Fails with kUsage if nothing is found, with similar names in the notes.
Result<std::vector<Subject>> FindSubjects(const TrainingStep& graph,
                                          std::span<const AbsentValue> absent,
                                          std::string_view name);

}  // namespace ckplan
