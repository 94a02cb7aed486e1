#include "lib/problem/runs/takeovers.h"

namespace ckplan {
namespace {

bool IsReadTwice(const JointGraph& graph, const Operation& op, ValueId storage) {
  ValueId first;
  for (const ValueId read : op.reads) {
    if (graph.value(read).storage != storage || read == first) continue;
    if (!first.is_none()) return true;
    first = read;
  }
  return false;
}

}  // namespace

std::vector<InPlaceWrite> PossibleTakeovers(const JointGraph& graph, OpId id) {
  const Operation& op = graph.op(id);
  std::vector<InPlaceWrite> takeovers;
  for (const ValueId write : op.writes) {
    const int64_t bytes = graph.counted_bytes(write).count();
    if (bytes == 0) continue;
    for (const InPlaceWrite& pair : op.in_place) {
      const ValueId storage = graph.value(pair.read).storage;
      if (pair.write != write || bytes != graph.counted_bytes(storage).count()) continue;
      if (!IsReadTwice(graph, op, storage)) takeovers.push_back({write, storage});
    }
  }
  return takeovers;
}

}  // namespace ckplan
