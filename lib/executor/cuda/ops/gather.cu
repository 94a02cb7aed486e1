// Gather and GatherND: rows selected by indices.
#include <algorithm>
#include <memory>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/cuda/scatter.h"
#include "lib/problem/ops/gather.h"
#include "lib/problem/ops/layout.h"

namespace ckplan::cuda {

namespace {

bool FitsSort(const ScatterShape& shape) { return shape.rows < kMaxRows && shape.count < kMaxRows; }

constexpr std::string_view kTooManyRows = "it has more rows than its kernel can sort";

class GatherOp final : public PreparedOp {
 public:
  GatherOp(const OpSpec& spec, Device& device, const ScatterShape& shape, const RowTarget& target)
      : device_(device),
        shape_(shape),
        target_(target),
        x_type_(spec.input(0).type),
        index_type_(spec.input(1).type),
        y_type_(spec.output(0).type),
        has_gradient_(spec.input(0).has_gradient) {}

  OpWorkspace workspace() const override {
    if (!has_gradient_) return {};
    return {0, SortWorkspace(shape_.slab()) + ChunksWorkspace(shape_)};
  }

  void Forward(const ForwardCall& call) override {
    RowTarget target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    GatherRows(device_, shape_, target, call.inputs[0], x_type_, call.outputs[0], y_type_);
  }

  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    device_.Zero(gradient, shape_.data() * SizeOf(x_type_));
    if (shape_.updates() == 0) return;
    RowTarget target = target_;
    target.indices = IntegersIn(call.inputs[1], index_type_);
    const FloatsIn g(call.output_gradients[0], y_type_);
    const FloatsOut dx(gradient, x_type_);
    void* sums = static_cast<char*>(call.workspace) + SortWorkspace(shape_.slab());
    const int64_t slab = shape_.slab();
    for (int64_t first = 0; first < shape_.count; first += slab) {
      const int64_t count = std::min(slab, shape_.count - first);
      AddRows(device_, shape_,
              SortIndices(device_, target, shape_.rows, first, count, call.workspace), g, dx, sums);
    }
  }

 private:
  Device& device_;
  ScatterShape shape_;
  RowTarget target_;
  ElementType x_type_, index_type_, y_type_;
  bool has_gradient_;
};

Result<std::unique_ptr<PreparedOp>> MakeGather(const OpSpec& spec, Device& device,
                                               const ScatterShape& shape, const RowTarget& target) {
  if (spec.input(0).has_gradient && !FitsSort(shape)) return Unsupported(spec, kTooManyRows);
  return Prepared<GatherOp>(spec, device, shape, target);
}

Result<Done> RequireShortTuples(const OpSpec& spec, const GatherShape& shape) {
  if (shape.indexed.size() <= kMaxAxes) return Done{};
  return Unsupported(spec, "its index tuples are longer than its kernel supports");
}

// If each outer index has its own tuples, all tuples form one list over the rows of all outer
// indices.
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

constexpr OpRow kGatherOps[] = {
    {"Gather", PrepareGather},
    {"GatherND", PrepareGather},
};

}  // namespace

std::span<const OpRow> GatherOps() { return kGatherOps; }

}  // namespace ckplan::cuda
