#include "lib/problem/graph/saved_for_backward.h"

#include <vector>

namespace ckplan {

Bytes SavedForBackward(const TensorGraph& graph) {
  IdVector<TensorId, char> is_saved(graph.tensors().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const TensorId tensor : node.backward_reads) is_saved[tensor] = true;
  }
  Bytes saved;
  for (const TensorId tensor : graph.tensors().ids()) {
    if (is_saved[tensor]) saved += graph.tensor(tensor).bytes;
  }
  return saved;
}

}  // namespace ckplan
