// Fused attention by a library (lib/executor/cuda/libraries.h): in bfloat16, with equal numbers of
// query and key heads, whose sizes are multiples of 8; either causal, or with one mask or bias
// without a gradient. The host computes what the library does not support (host_fallback.h).
//
// A mask or bias becomes a bias of all queries and keys in the workspace. Where it hides a key it
// is not -infinity but a number so low that the key's probability is 0: sums over hidden keys alone
// then are no NaN. Rows that see no key are made zeros afterwards, as the CPU's kernels make them.
// A mask that fills with a finite number must fill with one as low. A row that it hides wholly has
// equal probabilities then, and its gradient reaches queries and keys, unlike in the CPU's kernels.
//
// One call computes all gradients. Those whose turn comes later wait in the workspace.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/libraries.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/attention.h"

namespace ckplan::cuda {

namespace {

// A mask or a bias on the device.
struct DeviceTerm {
  const void* at = nullptr;
  bool is_bool = false, hides = false;
  FloatsIn numbers;
  int64_t samples = 1;
  int64_t strides[4] = {0, 0, 0, 0};

  DeviceTerm(const AttentionTerm& term, const void* data)
      : at(data),
        is_bool(term.is_bool()),
        hides(term.hides),
        numbers(data, term.type),
        samples(term.samples) {
    std::copy(term.strides.begin(), term.strides.end(), strides);
  }
  CKPLAN_DEVICE int64_t Row(int64_t sample, int64_t head, int64_t query) const {
    return sample % samples * strides[0] + head * strides[1] + query * strides[2];
  }
  CKPLAN_DEVICE bool Hides(int64_t i) const {
    return (static_cast<const uint8_t*>(at)[i] != 0) == hides;
  }
};

// How the rows of a tensor's heads lie in it, for kernels.
struct DeviceRows {
  int64_t batch_stride, head_stride, row_stride;

  explicit DeviceRows(const LibraryRows& rows)
      : batch_stride(rows.batch_stride),
        head_stride(rows.head_stride),
        row_stride(rows.row_stride) {}
  CKPLAN_DEVICE int64_t At(int64_t sample, int64_t head, int64_t row) const {
    return sample * batch_stride + head * head_stride + row * row_stride;
  }
};

// The bias of a hidden key: so low that adding a score doesn't change it, and its exponential is 0.
constexpr float kHiddenBias = -1e30F;

// Fails if no library computes the operator.
Result<Done> CheckLibrarySupport(const OpSpec& spec, const FusedAttentionShape& shape) {
  const auto reject = [&](std::string_view why) { return Unsupported(spec, why); };
  if (shape.dropout > 0) return reject("its probabilities pass through a Dropout");
  for (const Operand* operand : {&spec.input(0), &spec.input(1), &spec.input(2), &spec.output(0)}) {
    if (operand->type != ElementType::kBFloat16) {
      return reject("its type is not bfloat16, which cuDNN's attention requires");
    }
    if (operand->elements() > std::numeric_limits<int>::max()) {
      return reject("cuDNN only supports tensors with fewer than 2^31 elements");
    }
  }
  if (shape.size % 8 != 0 || shape.value_size % 8 != 0) {
    return reject("its heads have " + std::to_string(shape.size) + " and " +
                  std::to_string(shape.value_size) +
                  " elements, but cuDNN requires multiples of 8");
  }
  if (shape.heads != shape.key_heads) return reject("its heads share keys and values");
  const bool has_term = shape.mask.is_present || shape.bias.is_present;
  if (shape.mask.is_present && shape.bias.is_present) return reject("it has a mask and a bias");
  if (has_term && shape.is_causal) return reject("it is causal and has a mask");
  if (shape.mask.is_present && shape.mask.is_bool() && shape.fill > kHiddenBias) {
    return reject("its masked keys keep a probability above 0");
  }
  for (size_t i = 3; i < spec.inputs.size(); ++i) {
    if (spec.input(i).has_gradient) return reject("its mask or bias needs a gradient");
  }
  return Done{};
}

LibraryRows LibraryRowsOf(const HeadRows& rows) {
  return {rows.batch_stride, rows.head_stride, rows.row_stride};
}

LibraryAttentionShape ShapeOf(const FusedAttentionShape& shape, const AttentionTerm* term) {
  LibraryAttentionShape made;
  made.batch = shape.batch;
  made.heads = shape.heads;
  made.queries = shape.queries;
  made.keys = shape.keys;
  made.size = shape.size;
  made.value_size = shape.value_size;
  made.q = LibraryRowsOf(shape.q);
  made.k = LibraryRowsOf(shape.k);
  made.v = LibraryRowsOf(shape.v);
  made.y = LibraryRowsOf(shape.y);
  made.scale = shape.scale;
  made.is_causal = shape.is_causal;
  if (term == nullptr) return made;
  made.has_bias = true;
  made.bias_type = term->type == ElementType::kFloat32 ? term->type : ElementType::kBFloat16;
  made.bias_batch = term->samples == 1 ? 1 : shape.batch;
  made.bias_heads = term->dims[1];
  return made;
}

// Builds the bias tensor from a mask or bias, and records for each row whether it shows any key.
// `fill` is the score of keys that a boolean mask hides.
void MakeBias(Device& device, const LibraryAttentionShape& shape, const DeviceTerm& term,
              float fill, void* made, float* is_seen) {
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
          float value = term.is_bool ? (term.Hides(at) ? fill : 0) : term.numbers[at];
          const bool is_hidden = value == -HUGE_VALF;
          if (value < kHiddenBias) value = kHiddenBias;  // NaN stays.
          bias.Set(row * keys + key, value);
          return is_hidden ? 0.0F : 1.0F;
        },
        LargerOf());
    if (team.IsFirst()) is_seen[row] = seen;
  });
}

// Sets output rows to zero if their row of the bias shows no key.
void ClearUnseenRows(Device& device, const LibraryAttentionShape& shape, const DeviceRows& y_rows,
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

// Computes only the logarithms, with a warp for each row, if nothing else is read again.
void MakeLogSums(Device& device, const LibraryAttentionShape& shape, const AttentionTensors& in,
                 const float* is_seen) {
  const LibraryAttentionShape of = shape;
  const DeviceRows q_rows(shape.q), k_rows(shape.k);
  const FloatsIn q(in.q, ElementType::kBFloat16), k(in.k, ElementType::kBFloat16);
  const FloatsIn bias(in.bias, shape.bias_type);
  auto* const log_sums = static_cast<float*>(in.log_sums);
  ForRowsByWarps(
      device, of.batch * of.heads * of.queries, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
        const int64_t query = row % of.queries;
        const int64_t head = row / of.queries % of.heads;
        const int64_t sample = row / of.queries / of.heads;
        const int64_t bias_row =
            (sample % of.bias_batch * of.bias_heads + head % of.bias_heads) * of.queries + query;
        const int64_t from = q_rows.At(sample, head, query);
        const auto score = [&](int64_t key) {
          if (of.is_causal && key > query) return -HUGE_VALF;
          const int64_t to = k_rows.At(sample, head, key);
          float product = 0;
          for (int64_t i = 0; i < of.size; ++i) product += q[from + i] * k[to + i];
          return product * of.scale + (of.has_bias ? bias[bias_row * of.keys + key] : 0.0F);
        };
        const float highest = team.Reduce(of.keys, -HUGE_VALF, score, LargerOf());
        const float sum = team.Sum(of.keys, [&](int64_t i) { return Exp(score(i) - highest); });
        const bool is_hidden = of.has_bias && is_seen[bias_row] == 0;
        if (team.IsFirst()) log_sums[row] = is_hidden ? HUGE_VALF : highest + logf(sum);
      });
}

class FusedAttentionOp final : public PreparedOp {
 public:
  static Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec, Device& device,
                                                     const FusedAttentionShape& shape) {
    CKPLAN_RETURN_IF_ERROR(CheckLibrarySupport(spec, shape));
    std::unique_ptr<FusedAttentionOp> made(new FusedAttentionOp(spec, device, shape));
    CKPLAN_RETURN_IF_ERROR(made->AskLibrary(spec));
    return Result<std::unique_ptr<PreparedOp>>(std::move(made));
  }

  OpWorkspace workspace() const override { return {forward_plan_.total(), backward_plan_.total()}; }
  std::vector<LibraryCall> LibraryCalls() const override {
    std::vector<LibraryCall> calls = {{"forward", forward_->choice()}};
    if (backward_) calls.push_back({"gradients", backward_->choice()});
    return calls;
  }

  void Forward(const ForwardCall& call) override {
    AttentionTensors tensors = InputsOf(call.inputs);
    tensors.y = call.outputs[0];
    tensors.log_sums = keeps_log_sums_ ? call.statistic : BufferAt(call.workspace, log_sums_);
    tensors.bias = PrepareBias(call.inputs, forward_places_, call.workspace);
    const float* is_seen = FloatsAt(call.workspace, forward_places_.is_seen);
    if (tensors.y == nullptr) {
      if (keeps_log_sums_) MakeLogSums(device_, shape_, tensors, is_seen);
      return;
    }
    forward_->Run(tensors, BufferAt(call.workspace, forward_places_.library));
    if (term_position_ > 0) {
      ClearUnseenRows(device_, shape_, DeviceRows(shape_.y), is_seen, tensors.y,
                      static_cast<float*>(tensors.log_sums));
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
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
    AttentionTensors tensors = InputsOf(call.inputs);
    tensors.y = only_read(call.outputs[0]);
    tensors.dy = call.output_gradients[0];
    tensors.log_sums = only_read(call.statistic);
    tensors.dq = target(0);
    tensors.dk = target(1);
    tensors.dv = target(2);
    tensors.bias = PrepareBias(call.inputs, backward_places_, call.workspace);
    backward_->Run(tensors, BufferAt(call.workspace, backward_places_.library));
  }

 private:
  struct Places {  // Offsets in a workspace.
    int64_t library = 0, bias = 0, is_seen = 0;
  };

  FusedAttentionOp(const OpSpec& spec, Device& device, const FusedAttentionShape& shape)
      : device_(device), fill_(shape.fill), keeps_log_sums_(shape.has_statistic) {
    if (shape.mask.is_present) {
      term_ = shape.mask;
      term_position_ = 3;
    } else if (shape.bias.is_present) {
      term_ = shape.bias;
      term_position_ = 4;
    }
    shape_ = ShapeOf(shape, term_position_ == 0 ? nullptr : &term_);
    for (size_t i = wants_.size(); i-- > 0;) {
      wants_[i] = spec.input(i).has_gradient;
      elements_[i] = spec.input(i).elements();
      if (wants_[i]) first_ = i;
    }
  }

  Result<Done> AskLibrary(const OpSpec& spec) {
    const auto ask = [&](AttentionPass pass) -> Result<std::unique_ptr<LibraryAttention>> {
      auto attention = device_.libraries().PrepareAttention(shape_, pass);
      if (attention.ok() || attention.error().code != ErrorCode::kUnsupported) return attention;
      return Unsupported(spec, attention.error().message);
    };
    CKPLAN_ASSIGN_OR_RETURN(forward_, ask(AttentionPass::kForward));
    forward_places_.library = forward_plan_.Add(forward_->workspace());
    PlanTerm(forward_places_, forward_plan_);
    if (!keeps_log_sums_) {
      log_sums_ = forward_plan_.AddFloats(shape_.batch * shape_.heads * shape_.queries);
    }
    if (std::find(wants_.begin(), wants_.end(), true) == wants_.end()) return Done{};
    CKPLAN_ASSIGN_OR_RETURN(backward_, ask(AttentionPass::kBackward));
    backward_places_.library = backward_plan_.Add(backward_->workspace());
    PlanTerm(backward_places_, backward_plan_);
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (i != first_) waiting_[i] = backward_plan_.Add(elements_[i] * 2);
    }
    return Done{};
  }

  static AttentionTensors InputsOf(std::span<const void* const> inputs) {
    AttentionTensors tensors;
    tensors.q = inputs[0];
    tensors.k = inputs[1];
    tensors.v = inputs[2];
    return tensors;
  }

  void PlanTerm(Places& places, WorkspacePlan& plan) const {
    if (term_position_ == 0) return;
    const int64_t rows = shape_.bias_batch * shape_.bias_heads * shape_.queries;
    places.bias = plan.Add(rows * shape_.keys * SizeOf(shape_.bias_type));
    places.is_seen = plan.AddFloats(rows);
  }

  // Returns the bias in the workspace; null without one.
  const void* PrepareBias(std::span<const void* const> inputs, const Places& places,
                          void* workspace) const {
    if (term_position_ == 0) return nullptr;
    void* const bias = BufferAt(workspace, places.bias);
    const float fill = term_position_ == 3 ? fill_ : -HUGE_VALF;  // A bias masks with -inf.
    MakeBias(device_, shape_, DeviceTerm(term_, inputs[term_position_]), fill, bias,
             FloatsAt(workspace, places.is_seen));
    return bias;
  }

  Device& device_;
  LibraryAttentionShape shape_;
  AttentionTerm term_;
  size_t term_position_ = 0;  // The input with the bias or mask; 0 without one.
  float fill_;
  bool keeps_log_sums_;
  std::unique_ptr<LibraryAttention> forward_, backward_;
  WorkspacePlan forward_plan_, backward_plan_;
  Places forward_places_, backward_places_;
  int64_t log_sums_ = 0;  // Offset, if they are not kept.
  std::array<bool, 3> wants_ = {};
  size_t first_ = 0;                     // The first of q, k and v whose gradient is asked for.
  std::array<int64_t, 3> waiting_ = {};  // Offsets of gradients.
  std::array<int64_t, 3> elements_ = {};
};

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const FusedAttentionShape shape, ReadFusedAttentionShape(spec));
  return FusedAttentionOp::Prepare(spec, device, shape);
}

constexpr OpRow kAttentionOps[] = {{"FusedAttention", PrepareFusedAttention}};

}  // namespace

std::span<const OpRow> AttentionOps() { return kAttentionOps; }

}  // namespace ckplan::cuda
