// Gather, GatherND and ScatterND: rows selected by indices.
#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/ops/gather_ops.h"
#include "lib/problem/ops/gather.h"

namespace ckplan::cuda {

namespace {

Result<Done> RequireShortTuples(const OpSpec& spec, const GatherShape& shape) {
  if (shape.indexed.size() <= kMaxAxes) return Done{};
  return Unsupported(spec, "its tuples of indices are longer than its kernel reads");
}

// If each outer index has its own tuples, all tuples are joined into one list over the rows of all
// outer indices.
Result<std::unique_ptr<PreparedOp>> PrepareGather(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadGatherShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireShortTuples(spec, shape));
  const RowTarget target(shape.indexed, shape.count);
  if (shape.is_shared) {
    const ScatterShape rows{shape.outer, shape.rows(), shape.count, shape.inner};
    return MakeGather(spec, device, rows, target);
  }
  const ScatterShape rows{1, shape.outer * shape.rows(), shape.outer * shape.count, shape.inner};
  return MakeGather(spec, device, rows, target);
}

Result<std::unique_ptr<PreparedOp>> PrepareScatterND(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GatherShape shape, ReadScatterNdShape(spec));
  CKPLAN_RETURN_IF_ERROR(RequireShortTuples(spec, shape));
  const ScatterShape rows{1, shape.rows(), shape.count, shape.inner};
  return MakeScatter(spec, device, rows, RowTarget(shape.indexed, shape.count));
}

constexpr OpRow kGatherOps[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGather},
    {"ScatterND", PrepareScatterND},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kGatherOps; }

}  // namespace ckplan::cuda
