// Gather, GatherND and ScatterND: rows that are named by indices.
#include <algorithm>

#include "lib/cuda/families.h"
#include "lib/cuda/ops/gather_ops.h"
#include "lib/ops/axes.h"

namespace ckplan::cuda {

namespace {

Result<std::unique_ptr<PreparedOp>> PrepareGather(const OpSpec& spec, Device& device) {
  const Dims& dims = spec.input(0).dims;
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis, NormalAxis(spec, spec.Int("axis", 0), dims.size()));
  const AxisView view = ViewAlong(dims, axis);
  const int64_t count = spec.input(1).elements();
  const ScatterShape shape{view.outer, view.size, count, view.inner};
  return MakeGather(spec, device, shape, RowTarget({dims[axis]}, count));
}

// The members of a tuple index the dimensions from `begin` on.
Result<Dims> TupleDims(const OpSpec& spec, size_t begin) {
  const Dims& data = spec.input(0).dims;
  const Dims& indices = spec.input(1).dims;
  const size_t tuple = indices.empty() ? 0 : static_cast<size_t>(indices.back());
  if (indices.size() <= begin || begin + tuple > data.size()) {
    return Unsupported(spec, "its tuples of indices are longer than its data has axes");
  }
  if (tuple > kMostAxes) {
    return Unsupported(spec, "its tuples of indices are longer than its kernel reads");
  }
  const auto first = data.begin() + static_cast<std::ptrdiff_t>(begin);
  return Dims(first, first + static_cast<std::ptrdiff_t>(tuple));
}

// Each outer index has tuples of its own: all of them together are one list, of rows of all.
Result<std::unique_ptr<PreparedOp>> PrepareGatherND(const OpSpec& spec, Device& device) {
  const auto batch = static_cast<size_t>(spec.Int("batch_dims", 0));
  CKPLAN_ASSIGN_OR_RETURN(const Dims indexed, TupleDims(spec, batch));
  const Dims& indices = spec.input(1).dims;
  int64_t outer = 1, count = 1;
  for (size_t i = 0; i + 1 < indices.size(); ++i) (i < batch ? outer : count) *= indices[i];
  const RowTarget target(indexed, count);
  const int64_t rows = outer * target.rows;
  const int64_t inner = spec.input(0).elements() / std::max<int64_t>(1, rows);
  return MakeGather(spec, device, ScatterShape{1, rows, outer * count, inner}, target);
}

Result<std::unique_ptr<PreparedOp>> PrepareScatterND(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const Dims indexed, TupleDims(spec, 0));
  const Dims& indices = spec.input(1).dims;
  const int64_t count = Product(Dims(indices.begin(), indices.end() - 1));
  const RowTarget target(indexed, count);
  const int64_t inner = spec.input(0).elements() / std::max<int64_t>(1, target.rows);
  return MakeScatter(spec, device, ScatterShape{1, target.rows, count, inner}, target);
}

constexpr OpRow kRows[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGatherND},
    {"ScatterND", PrepareScatterND, true, "no gradient of reductions other than none and add"},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kRows; }

}  // namespace ckplan::cuda
