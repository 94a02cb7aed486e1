// Attention, one head of one sample after the other:
//
//   P = softmax(scale Q Kᵀ + mask),  Y = P V
//   dV = Pᵀ dY,  dS = P (dP - sum of dP P) with dP = dY Vᵀ,  dQ = scale dS K,  dK = scale dSᵀ Q
//
// The probabilities P are the statistic. Heads of queries that share keys and values add their
// gradients up. dS is made again for dK: kept, it would be as large as all of P.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lib/cpu/families.h"
#include "lib/cpu/dnnl_support.h"
#include "lib/cpu/floats.h"
#include "lib/cpu/matmul_kernel.h"
#include "lib/cpu/ops/softmax_row.h"
#include "lib/cpu/parallel.h"

namespace ckplan::cpu {

namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// A tensor of heads, [batch, heads, rows, size] or [batch, rows, heads * size].
struct Heads {
  int64_t heads = 1, rows = 1, size = 1;
  int64_t sample_stride = 0, head_stride = 0, row_stride = 0;

  int64_t at(int64_t sample, int64_t head) const {
    return sample * sample_stride + head * head_stride;
  }
};

Heads ReadHeads(const Operand& operand, int64_t heads) {
  const std::vector<int64_t>& dims = operand.dims;
  Heads of;
  if (dims.size() == 4) {
    of.heads = dims[1];
    of.rows = dims[2];
    of.size = dims[3];
    of.row_stride = of.size;
    of.head_stride = of.rows * of.size;
  } else {
    of.heads = heads;
    of.rows = dims[1];
    of.size = dims[2] / heads;
    of.row_stride = dims[2];
    of.head_stride = of.size;
  }
  of.sample_stride = of.heads * of.rows * of.size;
  return of;
}

// The mask, broadcast to [batch, heads, queries, keys]: added, or false where a key is hidden.
struct Mask {
  bool is_present = false;
  bool is_bool = false;
  std::array<int64_t, 4> strides = {};

  explicit Mask(const Operand& operand)
      : is_present(operand.is_present), is_bool(operand.type == ElementType::kBool) {
    int64_t stride = 1;
    for (size_t i = 0; i < operand.dims.size(); ++i) {
      const int64_t dim = operand.dims[operand.dims.size() - 1 - i];
      strides[3 - i] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }

  void AddTo(float* row, const void* mask, int64_t offset, int64_t count) const {
    const int64_t step = strides[3];
    if (is_bool) {
      const bool* is_seen = static_cast<const bool*>(mask) + offset;
      for (int64_t i = 0; i < count; ++i) row[i] = is_seen[i * step] ? row[i] : kMasked;
    } else {
      const float* term = Floats(mask) + offset;
      for (int64_t i = 0; i < count; ++i) row[i] += term[i * step];
    }
  }
};

struct Shape {
  int64_t batch = 1;
  Heads q, k, v, y;
  float scale = 1;
  bool is_causal = false;

  int64_t scores() const { return q.rows * k.rows; }  // Of one head.
  int64_t KeyHead(int64_t head) const { return head / (q.heads / k.heads); }
  bool IsFirstOfKey(int64_t head) const { return head % (q.heads / k.heads) == 0; }
};

Shape ReadShape(const OpSpec& spec) {
  Shape shape;
  const int64_t q_heads = spec.Int("q_num_heads", 1);
  const int64_t k_heads = spec.Int("kv_num_heads", 1);
  shape.batch = spec.input(0).dims[0];
  shape.q = ReadHeads(spec.input(0), q_heads);
  shape.k = ReadHeads(spec.input(1), k_heads);
  shape.v = ReadHeads(spec.input(2), k_heads);
  shape.y = ReadHeads(spec.output(0), q_heads);
  const double usual = 1 / std::sqrt(static_cast<double>(shape.q.size));
  shape.scale = static_cast<float>(spec.Float("scale", usual));
  shape.is_causal = spec.Int("is_causal", 0) != 0;
  return shape;
}

class AttentionOp final : public PreparedOp {
 public:
  AttentionOp(const OpSpec& spec, const Shape& shape)
      : shape_(shape),
        mask_(spec.input(3)),
        has_statistic_(spec.statistic_bytes > 0),
        scores_({.m = shape.q.rows,
                 .n = shape.k.rows,
                 .k = shape.q.size,
                 .a = {.row_stride = shape.q.row_stride},
                 .b = {.is_transposed = true, .row_stride = shape.k.row_stride},
                 .alpha = shape.scale}),
        output_({.m = shape.q.rows,
                 .n = shape.v.size,
                 .k = shape.k.rows,
                 .b = {.row_stride = shape.v.row_stride},
                 .c = {.row_stride = shape.y.row_stride}}) {
    const int64_t bytes = shape_.scores() * kFloatBytes;
    if (!has_statistic_) probabilities_ = forward_plan_.Add(bytes);
    forward_scratch_ = forward_plan_.Add(std::max(scores_.workspace(), output_.workspace()));
    if (spec.input(0).has_gradient || spec.input(1).has_gradient) MakeScoreGradients();
    if (spec.input(2).has_gradient) MakeValueGradient();
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
      const int64_t key_head = shape_.KeyHead(h);
      float* p = has_statistic_
                     ? Floats(call.statistic) + (n * shape_.q.heads + h) * shape_.scores()
                     : FloatsAt(call.workspace, probabilities_);
      scores_.Run(Floats(call.inputs[0]) + shape_.q.at(n, h),
                  Floats(call.inputs[1]) + shape_.k.at(n, key_head), p, scratch);
      MakeProbabilities(p, mask, n, h);
      if (call.outputs[0] == nullptr) return;
      output_.Run(p, Floats(call.inputs[2]) + shape_.v.at(n, key_head),
                  Floats(call.outputs[0]) + shape_.y.at(n, h), scratch);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    float* result = Floats(gradient);
    void* scratch = FloatsAt(call.workspace, backward_scratch_);
    ForHeads([&](int64_t n, int64_t h) {
      const int64_t key_head = shape_.KeyHead(h);
      const bool is_first = shape_.IsFirstOfKey(h);
      const float* p = Floats(call.statistic) + (n * shape_.q.heads + h) * shape_.scores();
      const float* dy = Floats(call.output_gradients[0]) + shape_.y.at(n, h);
      if (position == 2) {
        const MatMulKernel& product = is_first ? *value_ : *adding_value_;
        product.Run(p, dy, result + shape_.v.at(n, key_head), scratch);
        return;
      }
      float* ds = FloatsAt(call.workspace, gradients_);
      arriving_->Run(dy, Floats(call.inputs[2]) + shape_.v.at(n, key_head), ds, scratch);
      PassSoftmax(p, ds);
      if (position == 0) {
        query_->Run(ds, Floats(call.inputs[1]) + shape_.k.at(n, key_head),
                    result + shape_.q.at(n, h), scratch);
      } else {
        const MatMulKernel& product = is_first ? *key_ : *adding_key_;
        product.Run(ds, Floats(call.inputs[0]) + shape_.q.at(n, h),
                    result + shape_.k.at(n, key_head), scratch);
      }
    });
  }

 private:
  static std::unique_ptr<MatMulKernel> Make(const MatMulShape& shape) {
    return std::make_unique<MatMulKernel>(shape);
  }

  void MakeScoreGradients() {
    const Heads& q = shape_.q;
    const Heads& k = shape_.k;
    arriving_ = Make({.m = q.rows,
                      .n = k.rows,
                      .k = shape_.v.size,
                      .a = {.row_stride = shape_.y.row_stride},
                      .b = {.is_transposed = true, .row_stride = shape_.v.row_stride}});
    query_ = Make({.m = q.rows,
                   .n = q.size,
                   .k = k.rows,
                   .b = {.row_stride = k.row_stride},
                   .c = {.row_stride = q.row_stride},
                   .alpha = shape_.scale});
    MatMulShape key = {.m = k.rows,
                       .n = q.size,
                       .k = q.rows,
                       .a = {.is_transposed = true},
                       .b = {.row_stride = q.row_stride},
                       .c = {.row_stride = k.row_stride},
                       .alpha = shape_.scale};
    key_ = Make(key);
    key.adds = true;
    if (q.heads > k.heads) adding_key_ = Make(key);
  }

  void MakeValueGradient() {
    MatMulShape value = {.m = shape_.k.rows,
                         .n = shape_.v.size,
                         .k = shape_.q.rows,
                         .a = {.is_transposed = true},
                         .b = {.row_stride = shape_.y.row_stride},
                         .c = {.row_stride = shape_.v.row_stride}};
    value_ = Make(value);
    value.adds = true;
    if (shape_.q.heads > shape_.k.heads) adding_value_ = Make(value);
  }

  template <typename Body>
  void ForHeads(const Body& body) const {
    for (int64_t n = 0; n < shape_.batch; ++n) {
      for (int64_t h = 0; h < shape_.q.heads; ++h) body(n, h);
    }
  }

  template <typename Body>
  void ForQueries(const Body& body) const {
    ParallelFor(shape_.q.rows, std::max<int64_t>(1, kGrain / 8 / shape_.k.rows),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) body(row);
                });
  }

  // From scores, in place. Zero for a query to which no key is shown.
  void MakeProbabilities(float* scores, const void* mask, int64_t n, int64_t h) const {
    const int64_t keys = shape_.k.rows;
    ForQueries([&](int64_t row) {
      float* at = scores + row * keys;
      if (mask_.is_present) {
        const auto& strides = mask_.strides;
        mask_.AddTo(at, mask, n * strides[0] + h * strides[1] + row * strides[2], keys);
      }
      if (shape_.is_causal && row + 1 < keys) std::fill(at + row + 1, at + keys, kMasked);
      if (HighestOf(at, keys) == kMasked) {
        std::fill(at, at + keys, 0.0F);
      } else {
        SoftmaxRow(at, at, keys);
      }
    });
  }

  void PassSoftmax(const float* p, float* gradients) const {
    const int64_t keys = shape_.k.rows;
    ForQueries([&](int64_t row) {
      const int64_t at = row * keys;
      SoftmaxRowGradient(p + at, gradients + at, gradients + at, keys);
    });
  }

  Shape shape_;
  Mask mask_;
  bool has_statistic_;
  MatMulKernel scores_, output_;
  std::unique_ptr<MatMulKernel> arriving_, query_, key_, adding_key_, value_, adding_value_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t probabilities_ = 0, forward_scratch_ = 0;  // Offsets in the workspaces.
  int64_t gradients_ = 0, backward_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  if (spec.input(4).is_present || spec.input(5).is_present || spec.input(6).is_present) {
    return Unsupported(spec, "it has a cache of past keys and values");
  }
  for (size_t i = 1; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].is_present) return Unsupported(spec, "it has a second output");
  }
  if (spec.Float("softcap", 0) != 0) return Unsupported(spec, "its scores are capped");
  if (spec.Int("left_window_size", -1) >= 0 || spec.Int("right_window_size", -1) >= 0) {
    return Unsupported(spec, "its window slides");
  }
  const Operand& mask = spec.input(3);
  if (mask.has_gradient) return Unsupported(spec, "its mask gets a gradient");
  const Shape shape = ReadShape(spec);
  if (mask.is_present) {
    const bool is_known = mask.type == ElementType::kBool || mask.type == ElementType::kFloat32;
    const bool is_full =
        mask.dims.empty() || mask.dims.back() == 1 || mask.dims.back() == shape.k.rows;
    if (!is_known || !is_full || mask.dims.size() > 4) {
      return Unsupported(spec, "its mask is of an integer type or does not fit the keys");
    }
  }
  if (spec.output(0).elements() == 0 || shape.scores() == 0)
    return Unsupported(spec, "it is empty");
  return Guarded(spec, [&] { return std::make_unique<AttentionOp>(spec, shape); });
}

constexpr OpRow kOps[] = {
    {"Attention", Prepare, true, "one output, no cache, cap or window; the mask gets no gradient"}};

}  // namespace

std::span<const OpRow> AttentionOps() { return kOps; }

}  // namespace ckplan::cpu
