#include "lib/testing/small_ops.h"

#include <utility>

namespace ckplan {

JointGraph GraphOfOps(const std::vector<SmallOp>& ops, std::optional<size_t> first_backward) {
  JointGraphParts parts;
  for (size_t i = 0; i < ops.size(); ++i) {
    Value value;
    value.file_id = static_cast<int64_t>(i);
    value.name = ops[i].op;
    value.bytes = Bytes(ops[i].bytes);
    const ValueId id = parts.values.push_back(std::move(value));
    Operation op;
    op.file_id = static_cast<int64_t>(i);
    op.name = ops[i].op;
    op.op = ops[i].op;
    op.phase = first_backward && i >= *first_backward ? Phase::kBackward : Phase::kForward;
    op.cost = Cost(ops[i].cost);
    for (const int32_t read : ops[i].reads) op.reads.emplace_back(read);
    op.writes.push_back(id);
    parts.ops.push_back(std::move(op));
    parts.results = {id};
  }
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
