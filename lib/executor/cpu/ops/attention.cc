// Attention, computed head by head and sample by sample:
//
//   P = softmax(scale Q Kᵀ + mask),  Y = P V
//   dV = Pᵀ dY,  dS = P (dP - sum of dP P) with dP = dY Vᵀ,  dQ = scale dS K,  dK = scale dSᵀ Q
//
// The probabilities P are the saved statistic. Query heads that share keys and values sum their
// gradients. dS is recomputed for dK because keeping it would take as much memory as P.
#include "lib/problem/ops/attention.h"

#include <algorithm>
#include <limits>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/ops/softmax.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan::cpu {

namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The layout of a tensor of heads: [batch, heads, rows, size] or [batch, rows, heads * size].
struct Heads {
  int64_t heads = 1, rows = 1, size = 1;
  int64_t sample_stride = 0, head_stride = 0, row_stride = 0;

  int64_t at(int64_t sample, int64_t head) const {
    return sample * sample_stride + head * head_stride;
  }
};

Heads HeadsOf(const AttentionShape& shape, int64_t heads, int64_t rows, int64_t size) {
  Heads of = {heads, rows, size};
  of.row_stride = shape.is_head_major ? size : heads * size;
  of.head_stride = shape.is_head_major ? rows * size : size;
  of.sample_stride = heads * rows * size;
  return of;
}

// Adds the mask to a row of scores; `offset` is the row's offset in the mask.
void AddMask(const AttentionMask& of, float* row, const void* mask, int64_t offset, int64_t count) {
  const int64_t step = of.strides[3];
  if (of.is_bool()) {
    const bool* is_seen = static_cast<const bool*>(mask) + offset;
    for (int64_t i = 0; i < count; ++i) row[i] = is_seen[i * step] ? row[i] : kMasked;
  } else {
    const float* term = Floats(mask) + offset;
    for (int64_t i = 0; i < count; ++i) row[i] += term[i * step];
  }
}

// Strides of the tensors in memory.
struct AttentionLayout {
  AttentionShape shape;
  Heads q, k, v, y;

  explicit AttentionLayout(const AttentionShape& of)
      : shape(of),
        q(HeadsOf(of, of.heads, of.queries, of.size)),
        k(HeadsOf(of, of.key_heads, of.keys, of.size)),
        v(HeadsOf(of, of.key_heads, of.keys, of.value_size)),
        y(HeadsOf(of, of.heads, of.queries, of.value_size)) {}

  int64_t scores() const { return shape.scores(); }
  int64_t KeyHead(int64_t head) const { return head / shape.group(); }
  bool IsFirstOfKey(int64_t head) const { return head % shape.group() == 0; }
};

class AttentionOp final : public PreparedOp {
 public:
  AttentionOp(const OpSpec& spec, const AttentionShape& shape)
      : layout_(shape),
        mask_(shape.mask),
        has_statistic_(shape.has_statistic),
        scores_({.m = shape.queries,
                 .n = shape.keys,
                 .k = shape.size,
                 .a = {.row_stride = layout_.q.row_stride},
                 .b = {.is_transposed = true, .row_stride = layout_.k.row_stride},
                 .alpha = shape.scale}),
        output_({.m = shape.queries,
                 .n = shape.value_size,
                 .k = shape.keys,
                 .b = {.row_stride = layout_.v.row_stride},
                 .c = {.row_stride = layout_.y.row_stride}}) {
    const int64_t bytes = layout_.scores() * kFloatBytes;
    if (!has_statistic_) probabilities_ = forward_plan_.Add(bytes);
    forward_scratch_ = forward_plan_.Add(std::max(scores_.workspace(), output_.workspace()));
    if (spec.input(0).has_gradient || spec.input(1).has_gradient) ComputeScoreGradients();
    if (spec.input(2).has_gradient) ComputeValueGradient();
    int64_t scratch = 0;
    for (const auto* kernel : {arriving_.get(), query_.get(), key_.get(), adding_key_.get(),
                               value_.get(), adding_value_.get()}) {
      if (kernel != nullptr) scratch = std::max(scratch, kernel->workspace());
    }
    if (arriving_) gradients_ = backward_plan_.Add(bytes);
    backward_scratch_ = backward_plan_.Add(scratch);
  }

  OpWorkspace workspace() const override { return {forward_plan_.total(), backward_plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    const void* mask = call.inputs.size() > 3 ? call.inputs[3] : nullptr;
    void* scratch = FloatsAt(call.workspace, forward_scratch_);
    ForHeads([&](int64_t n, int64_t h) {
      const int64_t key_head = layout_.KeyHead(h);
      float* p = has_statistic_
                     ? Floats(call.statistic) + (n * layout_.q.heads + h) * layout_.scores()
                     : FloatsAt(call.workspace, probabilities_);
      scores_.Run(Floats(call.inputs[0]) + layout_.q.at(n, h),
                  Floats(call.inputs[1]) + layout_.k.at(n, key_head), p, scratch);
      ComputeProbabilities(p, mask, n, h);
      if (call.outputs[0] == nullptr) return;
      output_.Run(p, Floats(call.inputs[2]) + layout_.v.at(n, key_head),
                  Floats(call.outputs[0]) + layout_.y.at(n, h), scratch);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    float* result = Floats(gradient);
    void* scratch = FloatsAt(call.workspace, backward_scratch_);
    ForHeads([&](int64_t n, int64_t h) {
      const int64_t key_head = layout_.KeyHead(h);
      const bool is_first = layout_.IsFirstOfKey(h);
      const float* p = Floats(call.statistic) + (n * layout_.q.heads + h) * layout_.scores();
      const float* dy = Floats(call.output_gradients[0]) + layout_.y.at(n, h);
      if (position == 2) {
        const MatMulKernel& product = is_first ? *value_ : *adding_value_;
        product.Run(p, dy, result + layout_.v.at(n, key_head), scratch);
        return;
      }
      float* ds = FloatsAt(call.workspace, gradients_);
      arriving_->Run(dy, Floats(call.inputs[2]) + layout_.v.at(n, key_head), ds, scratch);
      BackwardSoftmax(p, ds);
      if (position == 0) {
        query_->Run(ds, Floats(call.inputs[1]) + layout_.k.at(n, key_head),
                    result + layout_.q.at(n, h), scratch);
      } else {
        const MatMulKernel& product = is_first ? *key_ : *adding_key_;
        product.Run(ds, Floats(call.inputs[0]) + layout_.q.at(n, h),
                    result + layout_.k.at(n, key_head), scratch);
      }
    });
  }

 private:
  static std::unique_ptr<MatMulKernel> Make(const ProductShape& shape) {
    return std::make_unique<MatMulKernel>(shape);
  }

  void ComputeScoreGradients() {
    const Heads& q = layout_.q;
    const Heads& k = layout_.k;
    arriving_ = Make({.m = q.rows,
                      .n = k.rows,
                      .k = layout_.v.size,
                      .a = {.row_stride = layout_.y.row_stride},
                      .b = {.is_transposed = true, .row_stride = layout_.v.row_stride}});
    query_ = Make({.m = q.rows,
                   .n = q.size,
                   .k = k.rows,
                   .b = {.row_stride = k.row_stride},
                   .c = {.row_stride = q.row_stride},
                   .alpha = layout_.shape.scale});
    ProductShape key = {.m = k.rows,
                        .n = q.size,
                        .k = q.rows,
                        .a = {.is_transposed = true},
                        .b = {.row_stride = q.row_stride},
                        .c = {.row_stride = k.row_stride},
                        .alpha = layout_.shape.scale};
    key_ = Make(key);
    key.adds = true;
    if (q.heads > k.heads) adding_key_ = Make(key);
  }

  void ComputeValueGradient() {
    ProductShape value = {.m = layout_.k.rows,
                          .n = layout_.v.size,
                          .k = layout_.q.rows,
                          .a = {.is_transposed = true},
                          .b = {.row_stride = layout_.y.row_stride},
                          .c = {.row_stride = layout_.v.row_stride}};
    value_ = Make(value);
    value.adds = true;
    if (layout_.q.heads > layout_.k.heads) adding_value_ = Make(value);
  }

  template <typename Body>
  void ForHeads(const Body& body) const {
    for (int64_t n = 0; n < layout_.shape.batch; ++n) {
      for (int64_t h = 0; h < layout_.q.heads; ++h) body(n, h);
    }
  }

  template <typename Body>
  void ForQueries(const Body& body) const {
    ParallelFor(layout_.q.rows, std::max<int64_t>(1, kGrain / 8 / layout_.k.rows),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) body(row);
                });
  }

  // Turns scores into probabilities in place. A query whose keys are all masked gets a row of
  // zeros.
  void ComputeProbabilities(float* scores, const void* mask, int64_t n, int64_t h) const {
    const int64_t keys = layout_.k.rows;
    ForQueries([&](int64_t row) {
      float* at = scores + row * keys;
      if (mask_.is_present) {
        const auto& strides = mask_.strides;
        AddMask(mask_, at, mask, n * strides[0] + h * strides[1] + row * strides[2], keys);
      }
      if (layout_.shape.is_causal && row + 1 < keys) std::fill(at + row + 1, at + keys, kMasked);
      if (MaxElement(at, keys) == kMasked) {
        std::fill(at, at + keys, 0.0F);
      } else {
        SoftmaxRow(at, at, keys);
      }
    });
  }

  void BackwardSoftmax(const float* p, float* gradients) const {
    const int64_t keys = layout_.k.rows;
    ForQueries([&](int64_t row) {
      const int64_t at = row * keys;
      SoftmaxRowGradient(p + at, gradients + at, gradients + at, keys);
    });
  }

  AttentionLayout layout_;
  AttentionMask mask_;
  bool has_statistic_;
  MatMulKernel scores_, output_;
  std::unique_ptr<MatMulKernel> arriving_, query_, key_, adding_key_, value_, adding_value_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t probabilities_ = 0, forward_scratch_ = 0;  // Offsets in the workspaces.
  int64_t gradients_ = 0, backward_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> PrepareAttention(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttentionShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<AttentionOp>(spec, shape); });
}

constexpr OpRow kAttentionOps[] = {{"Attention", PrepareAttention},
                                   {"FusedAttention", PrepareFusedAttention}};

}  // namespace

std::span<const OpRow> AttentionOps() { return kAttentionOps; }

// RotaryEmbedding: rotates pairs of features by an angle that grows with the position. Backward
// rotates the gradient by the negative angle.

namespace {

class RotaryOp final : public PreparedOp {
 public:
  explicit RotaryOp(const RotaryShape& shape) : shape_(shape) {}

  void Forward(const ForwardCall& call) override {
    Rotate(call.inputs, 1.0F, call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Rotate(call.inputs, -1.0F, call.output_gradients[0], gradient);
  }

 private:
  void Rotate(std::span<const void* const> inputs, float direction, const void* from,
              void* to) const {
    const auto* cosines = static_cast<const float*>(inputs[1]);
    const auto* sines = static_cast<const float*>(inputs[2]);
    const auto* positions =
        shape_.cache_rows > 0 ? static_cast<const int64_t*>(inputs[3]) : nullptr;
    const RotaryShape s = shape_;
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s.features));
    ParallelFor(s.batch * s.length * s.heads, grain, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t sample = row / (s.length * s.heads);
        const int64_t place = s.is_head_major ? row % s.length : row / s.heads % s.length;
        int64_t cached = sample * s.length + place;
        if (positions != nullptr) {
          cached = std::clamp<int64_t>(positions[cached], 0, s.cache_rows - 1);
        }
        RotateRow(s, cosines + cached * (s.rotated / 2), sines + cached * (s.rotated / 2),
                  direction, static_cast<const float*>(from) + row * s.features,
                  static_cast<float*>(to) + row * s.features);
      }
    });
  }

  static void RotateRow(const RotaryShape& s, const float* cosines, const float* sines,
                        float direction, const float* x, float* y) {
    const int64_t half = s.rotated / 2;
    const int64_t step = s.is_interleaved ? 2 : 1;
    const int64_t apart = s.is_interleaved ? 1 : half;
    for (int64_t i = 0; i < half; ++i) {
      const float first = x[i * step];
      const float second = x[i * step + apart];
      const float sine = direction * sines[i];
      y[i * step] = first * cosines[i] - second * sine;
      y[i * step + apart] = first * sine + second * cosines[i];
    }
    std::copy(x + s.rotated, x + s.features, y + s.rotated);
  }

  RotaryShape shape_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRotary(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const RotaryShape shape, ReadRotaryShape(spec));
  return Prepared<RotaryOp>(shape);
}

constexpr OpRow kRotaryOps[] = {{"RotaryEmbedding", PrepareRotary}};

}  // namespace

std::span<const OpRow> RotaryOps() { return kRotaryOps; }

}  // namespace ckplan::cpu
