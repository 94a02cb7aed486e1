// Fused attention: the operator around the kernels of flash_kernels.h, or around a library where it
// takes the operator (library_attention.h).
//
// The gradients of keys and values come from one kernel. If both are asked for, that of the values
// waits in the workspace for its turn.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/ops/flash_kernels.h"
#include "lib/executor/cuda/ops/library_attention.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan::cuda {

namespace {

FlashRows FlashRowsOf(const HeadRows& rows) {
  return {rows.batch_stride, rows.head_stride, rows.row_stride};
}

FlashTerm TermOf(const AttentionTerm& term) {
  FlashTerm made;
  made.is_bool = term.is_bool();
  made.is_half = term.type == ElementType::kBFloat16;
  made.hides = term.hides;
  made.samples = term.samples;
  std::copy(term.strides.begin(), term.strides.end(), made.strides);
  return made;
}

FlashTask TaskOf(const FusedAttentionShape& shape, ElementType type, const DeviceOptions& options) {
  FlashTask task;
  task.batch = shape.batch;
  task.heads = shape.heads;
  task.key_heads = shape.key_heads;
  task.queries = shape.queries;
  task.keys = shape.keys;
  task.size = shape.size;
  task.value_size = shape.value_size;
  task.q_rows = FlashRowsOf(shape.q);
  task.k_rows = FlashRowsOf(shape.k);
  task.v_rows = FlashRowsOf(shape.v);
  task.y_rows = FlashRowsOf(shape.y);
  task.mask = TermOf(shape.mask);
  task.bias = TermOf(shape.bias);
  task.scale = shape.scale;
  task.fill = shape.fill;
  task.is_causal = shape.is_causal;
  task.is_tf32 = options.allow_tf32_products;
  // All strides are multiples of the sizes of rows.
  const int64_t chunk = 16 / SizeOf(type);
  task.is_wide = shape.size % chunk == 0 && shape.value_size % chunk == 0;
  return task;
}

// Starts a kernel for the type and for the sizes of rows.
enum class FlashKernel { kForward, kQueries, kKeys };

template <typename T, int kSize>
void StartFlash(Device& device, FlashKernel kernel, const FlashTask& task) {
  const auto grid = [&](int64_t heads, int64_t length, int64_t rows) {
    const int64_t blocks = task.batch * heads * CeilDiv(length, rows);
    return Grid{std::min(blocks, kMaxBlocks), FlashThreads(static_cast<int>(rows))};
  };
  constexpr int kForwardRows = ForwardTiles<T, kSize>::kRows;
  constexpr int kBackwardRows = BackwardTiles<T, kSize>::kRows;
  switch (kernel) {
    case FlashKernel::kForward:
      return Launch(device, FlashForwardKernel<T, kSize>,
                    grid(task.heads, task.queries, kForwardRows), task);
    case FlashKernel::kQueries:
      return Launch(device, FlashQueriesKernel<T, kSize>,
                    grid(task.heads, task.queries, kBackwardRows), task);
    case FlashKernel::kKeys:
      return Launch(device, FlashKeysKernel<T, kSize>,
                    grid(task.key_heads, task.keys, kBackwardRows), task);
  }
}

template <typename T>
void StartFlash(Device& device, FlashKernel kernel, const FlashTask& task) {
  if (std::max(task.size, task.value_size) <= 64) {
    StartFlash<T, 64>(device, kernel, task);
  } else {
    StartFlash<T, 128>(device, kernel, task);
  }
}

template <typename T, int kSize>
void StartTerm(Device& device, const FlashTask& task, const FlashTermGradient& term) {
  using Tiles = BackwardTiles<T, kSize>;
  const int64_t blocks = term.samples * term.heads * CeilDiv(task.queries, Tiles::kRows) *
                         CeilDiv(task.keys, Tiles::kSpan);
  Launch(device, FlashTermKernel<T, kSize>,
         Grid{std::min(blocks, kMaxBlocks), FlashThreads(Tiles::kRows)}, task, term);
}

// Computes D, the dot products of the rows of y and dy.
void MakeDots(Device& device, const FusedAttentionShape& shape, FloatsIn y, FloatsIn dy,
              float* dots) {
  const FlashRows rows = FlashRowsOf(shape.y);
  const int64_t heads = shape.heads, queries = shape.queries, size = shape.value_size;
  ForRowsByWarps(device, shape.rows(), [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
    const int64_t head = row / queries;
    const int64_t at = rows.At(head / heads, head % heads, row % queries);
    const float sum = team.Sum(size, [&](int64_t i) { return y[at + i] * dy[at + i]; });
    if (team.IsFirst()) dots[row] = sum;
  });
}

class FusedAttentionOp final : public PreparedOp, public MayHaveOwnKernels {
 public:
  FusedAttentionOp(const OpSpec& spec, Device& device, const FusedAttentionShape& shape)
      : device_(device),
        shape_(shape),
        type_(CommonType(
            {spec.input(0).type, spec.input(1).type, spec.input(2).type, spec.output(0).type})),
        task_(TaskOf(shape, type_, device.options())) {
    for (size_t i = 0; i < 3; ++i) {
      const Operand& input = spec.input(i);
      forward_inputs_[i] = Conversion(input.elements(), input.type, type_, forward_plan_);
      wants_[i] = input.has_gradient;
    }
    const Operand& y = spec.output(0);
    forward_output_ = Conversion(y.elements(), y.type, type_, forward_plan_);
    if (NeedsGradient(spec)) PlanBackward(spec);
    auto library = AttentionByLibrary::Prepare(spec, device, shape, task_);
    if (library.ok()) {
      library_ = std::move(library).value();
    } else {
      why_own_kernels_ = library.error().message;
    }
  }

  OpWorkspace workspace() const override {
    if (library_) return library_->workspace();
    return {forward_plan_.total(), backward_plan_.total()};
  }
  std::vector<LibraryCall> LibraryCalls() const override {
    return library_ ? library_->Calls() : std::vector<LibraryCall>();
  }
  std::string WhyOwnKernels() const override { return why_own_kernels_; }

  // Where only the statistic is read, kernels of our own compute it. They need no workspace for
  // operators that a library takes.
  void Forward(const ForwardCall& call) override {
    if (library_ && call.outputs[0] != nullptr) return library_->Forward(call);
    FlashTask task = TaskWith(call.inputs);
    task.q = forward_inputs_[0].Apply(device_, call.inputs[0], call.workspace);
    task.k = forward_inputs_[1].Apply(device_, call.inputs[1], call.workspace);
    task.v = forward_inputs_[2].Apply(device_, call.inputs[2], call.workspace);
    const bool is_read = call.outputs[0] != nullptr;
    if (is_read) task.y = forward_output_.Target(call.outputs[0], call.workspace);
    if (shape_.has_statistic) task.log_sums = static_cast<float*>(call.statistic);
    Start(FlashKernel::kForward, task);
    if (is_read) forward_output_.Return(device_, call.outputs[0], call.workspace);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (library_) return library_->BackwardInput(call, position, gradient);
    FlashTask task = TaskWith(call.inputs);
    const bool is_first = position == first_;
    std::array<const void*, 3> in = {};
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = is_first ? backward_inputs_[i].Apply(device_, call.inputs[i], call.workspace)
                       : backward_inputs_[i].Applied(call.inputs[i], call.workspace);
    }
    task.q = in[0];
    task.k = in[1];
    task.v = in[2];
    const void* arriving = call.output_gradients[0];
    task.dy = is_first ? arriving_.Apply(device_, arriving, call.workspace)
                       : arriving_.Applied(arriving, call.workspace);
    // Backward only reads them.
    task.log_sums = const_cast<float*>(static_cast<const float*>(call.statistic));  // NOLINT
    float* dots = FloatsAt(call.workspace, dots_);
    task.dots = dots;
    if (is_first) {
      MakeDots(device_, shape_, FloatsIn(call.outputs[0], y_type_), FloatsIn(arriving, y_type_),
               dots);
    }
    if (position > 2) return SumTerm(task, position == 3 ? shape_.mask : shape_.bias, gradient);
    const Conversion& result = gradients_[position];
    void* target = result.Target(gradient, call.workspace);
    if (position == 0) {
      task.dq = target;
      Start(FlashKernel::kQueries, task);
    } else if (position == 1 || !wants_[1]) {
      task.dk = position == 1 ? target : nullptr;
      task.dv = position == 2 ? target : (wants_[2] ? BufferAt(call.workspace, kept_) : nullptr);
      Start(FlashKernel::kKeys, task);
    } else {
      Convert(device_, shape_.batch * shape_.key_heads * shape_.keys * shape_.value_size,
              BufferAt(call.workspace, kept_), type_, gradient, gradient_types_[position]);
      return;
    }
    result.Return(device_, gradient, call.workspace);
  }

 private:
  void PlanBackward(const OpSpec& spec) {
    const Operand& y = spec.output(0);
    y_type_ = y.type;
    arriving_ = Conversion(y.elements(), y.type, type_, backward_plan_);
    dots_ = backward_plan_.AddFloats(shape_.rows());
    for (size_t i = 0; i < 3; ++i) {
      const Operand& input = spec.input(i);
      backward_inputs_[i] = Conversion(input.elements(), input.type, type_, backward_plan_);
      gradient_types_[i] = input.type;
      if (!wants_[i]) continue;
      gradients_[i] = Conversion(input.elements(), input.type, type_, backward_plan_);
    }
    if (wants_[1] && wants_[2]) {
      kept_ = backward_plan_.Add(spec.input(2).elements() * SizeOf(type_));
    }
    for (size_t i = spec.inputs.size(); i-- > 0;) {
      if (spec.input(i).has_gradient) first_ = i;
    }
    for (size_t i = 3; i < spec.inputs.size(); ++i) term_types_[i - 3] = spec.input(i).type;
  }

  FlashTask TaskWith(std::span<const void* const> inputs) const {
    FlashTask task = task_;
    task.mask.at = shape_.mask.is_present ? inputs[3] : nullptr;
    task.bias.at = shape_.bias.is_present ? inputs[4] : nullptr;
    return task;
  }

  void Start(FlashKernel kernel, const FlashTask& task) const {
    if (type_ == ElementType::kBFloat16) {
      StartFlash<uint16_t>(device_, kernel, task);
    } else {
      StartFlash<float>(device_, kernel, task);
    }
  }

  void SumTerm(const FlashTask& task, const AttentionTerm& of, void* gradient) const {
    const ElementType type = &of == &shape_.mask ? term_types_[0] : term_types_[1];
    const FlashTermGradient term = {FloatsOut(gradient, type), of.dims[0], of.dims[1]};
    const bool is_short = std::max(task.size, task.value_size) <= 64;
    if (type_ == ElementType::kBFloat16) {
      is_short ? StartTerm<uint16_t, 64>(device_, task, term)
               : StartTerm<uint16_t, 128>(device_, task, term);
    } else {
      is_short ? StartTerm<float, 64>(device_, task, term)
               : StartTerm<float, 128>(device_, task, term);
    }
  }

  Device& device_;
  FusedAttentionShape shape_;
  ElementType type_;  // The type of factors.
  FlashTask task_;    // Without addresses.
  WorkspacePlan forward_plan_, backward_plan_;
  std::array<Conversion, 3> forward_inputs_, backward_inputs_, gradients_;
  Conversion forward_output_, arriving_;
  std::array<bool, 3> wants_ = {};
  size_t first_ = 0;  // The first input whose gradient is asked for.
  ElementType y_type_ = ElementType::kFloat32;
  std::array<ElementType, 3> gradient_types_ = {};
  std::array<ElementType, 2> term_types_ = {};
  int64_t dots_ = 0, kept_ = 0;                  // Offsets in the workspace.
  std::unique_ptr<AttentionByLibrary> library_;  // Null where kernels of our own run.
  std::string why_own_kernels_;
};

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const FusedAttentionShape shape, ReadFusedAttentionShape(spec));
  if (shape.dropout > 0) return Unsupported(spec, "its probabilities pass through a Dropout");
  return Prepared<FusedAttentionOp>(spec, device, shape);
}

}  // namespace ckplan::cuda
