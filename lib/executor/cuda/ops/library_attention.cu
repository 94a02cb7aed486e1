#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/ops/library_attention.h"
#include "lib/executor/cuda/registry.h"

namespace ckplan::cuda {

namespace {

// The bias of a hidden key. Adding it to a score leaves it as it is, and its power of e is 0.
constexpr float kHiddenBias = -1e30F;

Error NotTaken(std::string why) { return MakeError(ErrorCode::kUnsupported, std::move(why)); }

// Fails if the operator is none that a library computes.
Result<Done> CheckTaken(const OpSpec& spec, const FusedAttentionShape& shape) {
  for (const Operand* operand : {&spec.input(0), &spec.input(1), &spec.input(2), &spec.output(0)}) {
    if (operand->type != ElementType::kBFloat16) {
      return NotTaken("it is not in bfloat16, which cuDNN's attention wants");
    }
    if (operand->elements() > std::numeric_limits<int>::max()) {
      return NotTaken("cuDNN takes tensors below 2^31 elements");
    }
  }
  if (shape.size % 8 != 0 || shape.value_size % 8 != 0) {
    return NotTaken("its heads have " + std::to_string(shape.size) + " and " +
                    std::to_string(shape.value_size) + " elements, and cuDNN takes multiples of 8");
  }
  if (shape.heads != shape.key_heads) return NotTaken("its heads share keys and values");
  const bool has_term = shape.mask.is_present || shape.bias.is_present;
  if (shape.mask.is_present && shape.bias.is_present) return NotTaken("it has a mask and a bias");
  if (has_term && shape.is_causal) return NotTaken("it is causal and has a mask");
  if (shape.mask.is_present && shape.mask.is_bool() && shape.fill > kHiddenBias) {
    return NotTaken("keys that its mask hides keep a probability");
  }
  for (size_t i = 3; i < spec.inputs.size(); ++i) {
    if (spec.input(i).has_gradient) return NotTaken("its mask or bias gets a gradient");
  }
  return Done{};
}

LibraryRows LibraryRowsOf(const FlashRows& rows) {
  return {rows.batch_stride, rows.head_stride, rows.row_stride};
}

LibraryAttentionShape ShapeOf(const FusedAttentionShape& shape, const FlashTask& task,
                              const AttentionTerm* term) {
  LibraryAttentionShape made;
  made.batch = shape.batch;
  made.heads = shape.heads;
  made.queries = shape.queries;
  made.keys = shape.keys;
  made.size = shape.size;
  made.value_size = shape.value_size;
  made.q = LibraryRowsOf(task.q_rows);
  made.k = LibraryRowsOf(task.k_rows);
  made.v = LibraryRowsOf(task.v_rows);
  made.y = LibraryRowsOf(task.y_rows);
  made.scale = shape.scale;
  made.is_causal = shape.is_causal;
  if (term == nullptr) return made;
  made.has_bias = true;
  made.bias_type = term->type == ElementType::kFloat32 ? term->type : ElementType::kBFloat16;
  made.bias_batch = term->samples == 1 ? 1 : shape.batch;
  made.bias_heads = term->dims[1];
  return made;
}

// Makes the bias of a mask or bias, and notes of each of its rows whether it shows a key. `fill` is
// the score of keys that booleans hide.
void MakeBias(Device& device, const LibraryAttentionShape& shape, const FlashTerm& term, float fill,
              void* made, float* is_seen) {
  const FloatsOut bias(made, shape.bias_type);
  const int64_t heads = shape.bias_heads, queries = shape.queries, keys = shape.keys;
  const int64_t rows = shape.bias_batch * heads * queries;
  ForRowsByWarps(device, rows, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
    const int64_t head = row / queries;
    const int64_t from = term.Row(head / heads, head % heads, row % queries);
    const float seen = team.Reduce(
        keys, 0.0F,
        [&](int64_t key) {
          const int64_t at = from + key * term.strides[3];
          float value = term.is_bool ? (term.Hides(at) ? fill : 0) : term.Number(at);
          const bool is_hidden = value == -HUGE_VALF;
          if (value < kHiddenBias) value = kHiddenBias;  // NaN stays.
          bias.Set(row * keys + key, value);
          return is_hidden ? 0.0F : 1.0F;
        },
        LargerOf());
    if (team.IsFirst()) is_seen[row] = seen;
  });
}

// Makes rows zeros whose row of the bias shows no key.
void ClearUnseenRows(Device& device, const LibraryAttentionShape& shape, const FlashRows& y_rows,
                     const float* is_seen, void* y, float* log_sums) {
  const int64_t heads = shape.heads, queries = shape.queries, size = shape.value_size;
  const int64_t bias_batch = shape.bias_batch, bias_heads = shape.bias_heads;
  const FloatsOut to(y, ElementType::kBFloat16);
  ForRowsByWarps(device, shape.batch * heads * queries,
                 [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
                   const int64_t query = row % queries;
                   const int64_t head = row / queries % heads;
                   const int64_t sample = row / queries / heads;
                   const int64_t bias_row =
                       (sample % bias_batch * bias_heads + head % bias_heads) * queries + query;
                   if (is_seen[bias_row] != 0) return;
                   const int64_t at = y_rows.At(sample, head, query);
                   team.ForEach(size, [&](int64_t i) { to.Set(at + i, 0); });
                   if (team.IsFirst()) log_sums[row] = HUGE_VALF;
                 });
}

}  // namespace

Result<std::unique_ptr<AttentionByLibrary>> AttentionByLibrary::Prepare(
    const OpSpec& spec, Device& device, const FusedAttentionShape& shape, const FlashTask& task) {
  CKPLAN_RETURN_IF_ERROR(CheckTaken(spec, shape));
  Libraries& libraries = device.libraries();
  std::unique_ptr<AttentionByLibrary> made(new AttentionByLibrary(spec, device, shape, task));
  CKPLAN_ASSIGN_OR_RETURN(made->forward_,
                          libraries.PrepareAttention(made->shape_, AttentionPass::kForward));
  WorkspacePlan& forward = made->forward_plan_;
  made->forward_places_.library = forward.Add(made->forward_->workspace());
  made->PlanTerm(made->forward_places_, forward);
  if (!made->keeps_log_sums_) made->log_sums_ = forward.AddFloats(shape.rows());
  const bool wants_any =
      std::find(made->wants_.begin(), made->wants_.end(), true) != made->wants_.end();
  if (!wants_any) return Result<std::unique_ptr<AttentionByLibrary>>(std::move(made));
  CKPLAN_ASSIGN_OR_RETURN(made->backward_,
                          libraries.PrepareAttention(made->shape_, AttentionPass::kBackward));
  WorkspacePlan& backward = made->backward_plan_;
  made->backward_places_.library = backward.Add(made->backward_->workspace());
  made->PlanTerm(made->backward_places_, backward);
  for (size_t i = 0; i < made->waiting_.size(); ++i) {
    if (i != made->first_) made->waiting_[i] = backward.Add(made->elements_[i] * 2);
  }
  return Result<std::unique_ptr<AttentionByLibrary>>(std::move(made));
}

AttentionByLibrary::AttentionByLibrary(const OpSpec& spec, Device& device,
                                       const FusedAttentionShape& shape, const FlashTask& task)
    : device_(device), task_(task), keeps_log_sums_(shape.has_statistic) {
  const AttentionTerm* term = nullptr;
  if (shape.mask.is_present) {
    term = &shape.mask;
    term_ = task.mask;
    term_position_ = 3;
  } else if (shape.bias.is_present) {
    term = &shape.bias;
    term_ = task.bias;
    term_position_ = 4;
  }
  shape_ = ShapeOf(shape, task, term);
  for (size_t i = wants_.size(); i-- > 0;) {
    wants_[i] = spec.input(i).has_gradient;
    elements_[i] = spec.input(i).elements();
    if (wants_[i]) first_ = i;
  }
}

std::vector<LibraryCall> AttentionByLibrary::Calls() const {
  std::vector<LibraryCall> calls = {{"forward", forward_->choice()}};
  if (backward_) calls.push_back({"gradients", backward_->choice()});
  return calls;
}

void AttentionByLibrary::Forward(const ForwardCall& call) const {
  void* const log_sums = keeps_log_sums_ ? call.statistic : BufferAt(call.workspace, log_sums_);
  AttentionTensors tensors;
  tensors.q = call.inputs[0];
  tensors.k = call.inputs[1];
  tensors.v = call.inputs[2];
  tensors.y = call.outputs[0];
  tensors.log_sums = log_sums;
  tensors.bias = PrepareBias(call.inputs, forward_places_, call.workspace);
  forward_->Run(tensors, BufferAt(call.workspace, forward_places_.library));
  if (term_position_ > 0) {
    ClearUnseenRows(device_, shape_, task_.y_rows,
                    FloatsAt(call.workspace, forward_places_.is_seen), call.outputs[0],
                    static_cast<float*>(log_sums));
  }
}

void AttentionByLibrary::BackwardInput(const BackwardCall& call, size_t position,
                                       void* gradient) const {
  if (position != first_) {
    Convert(device_, elements_[position], BufferAt(call.workspace, waiting_[position]),
            ElementType::kBFloat16, gradient, ElementType::kBFloat16);
    return;
  }
  // Backward only reads the output and the logarithms.
  const auto only_read = [](const void* data) { return const_cast<void*>(data); };  // NOLINT
  const auto target = [&](size_t i) {
    return i == first_ ? gradient : BufferAt(call.workspace, waiting_[i]);
  };
  AttentionTensors tensors;
  tensors.q = call.inputs[0];
  tensors.k = call.inputs[1];
  tensors.v = call.inputs[2];
  tensors.y = only_read(call.outputs[0]);
  tensors.dy = call.output_gradients[0];
  tensors.log_sums = only_read(call.statistic);
  tensors.dq = target(0);
  tensors.dk = target(1);
  tensors.dv = target(2);
  tensors.bias = PrepareBias(call.inputs, backward_places_, call.workspace);
  backward_->Run(tensors, BufferAt(call.workspace, backward_places_.library));
}

void AttentionByLibrary::PlanTerm(Places& places, WorkspacePlan& plan) const {
  if (term_position_ == 0) return;
  const int64_t rows = shape_.bias_batch * shape_.bias_heads * shape_.queries;
  places.bias = plan.Add(rows * shape_.keys * SizeOf(shape_.bias_type));
  places.is_seen = plan.AddFloats(rows);
}

const void* AttentionByLibrary::PrepareBias(std::span<const void* const> inputs,
                                            const Places& places, void* workspace) const {
  if (term_position_ == 0) return nullptr;
  FlashTerm term = term_;
  term.at = inputs[term_position_];
  void* const bias = BufferAt(workspace, places.bias);
  const float fill = term_position_ == 3 ? task_.fill : -HUGE_VALF;  // A bias hides wholly.
  MakeBias(device_, shape_, term, fill, bias, FloatsAt(workspace, places.is_seen));
  return bias;
}

}  // namespace ckplan::cuda
