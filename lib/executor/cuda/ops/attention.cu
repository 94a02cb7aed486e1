// Attention, computed by matrix products for many heads at once:
//
//   P = softmax(scale Q Kᵀ + mask),  Y = P V
//   dV = Pᵀ dY,  dS = P (dP - sum of dP P) with dP = dY Vᵀ,  dQ = scale dS K,  dK = scale dSᵀ Q
//
// The probabilities P are the saved statistic, in float32. Other buffers of that size (copies of P
// in bfloat16, and dS) are made for one block of heads at a time. If there is more than one block,
// dS is recomputed for dK.
#include <algorithm>
#include <array>
#include <memory>

#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/libraries.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan::cuda {

namespace {

// Memory layout of the heads of an Attention, and its matrix products.
//
// A unit is one head of the keys together with all query heads that share it. If the tensor is
// [batch, heads, rows, size], the query heads of a unit are contiguous and form one matrix with
// more rows, and all units of all samples are one batch. If the tensor is [batch, rows, heads *
// size], the query heads are separate parts of the unit, each multiplied separately, and samples
// are processed one by one.

// A range of units of one sample that are multiplied in one call.
struct HeadBlock {
  int64_t sample = 0, unit = 0, units = 0;
};

// The layout of a tensor of heads. Strides are in elements.
struct Heads {
  int64_t rows = 1, size = 1;  // The matrix of one part of a unit.
  int64_t row_stride = 0, part_stride = 0, unit_stride = 0, sample_stride = 0;

  int64_t at(const HeadBlock& block) const {
    return block.sample * sample_stride + block.unit * unit_stride;
  }
};

struct AttentionLayout {
  AttentionLayout(const OpSpec& spec, const AttentionShape& shape);

  int64_t samples = 1, units = 1, parts = 1;
  int64_t heads = 1, queries = 1, keys = 1;  // Heads of the queries; rows per head.
  Heads q, k, v, y, p;                       // p has the scores: [batch, heads, queries, keys].
  ElementType type = ElementType::kFloat32;  // Type of the factors of products.
  ElementType q_type, k_type, v_type, y_type;
  float scale = 1;
  bool is_causal = false;
};

struct HeadProduct {
  GemmShape gemm;           // `batch` is set at each call.
  bool sums_parts = false;  // All parts of a unit add to one result.
};

struct AttentionProducts {
  explicit AttentionProducts(const AttentionLayout& layout);

  HeadProduct scores, output;               // Forward.
  HeadProduct arriving, query, key, value;  // dP, dQ, dK, dV.
};

// `group` is the number of heads of this tensor in a unit.
Heads HeadsOf(const AttentionShape& shape, int64_t heads, int64_t rows, int64_t size,
              int64_t group) {
  Heads of;
  of.size = size;
  if (shape.is_head_major) {
    of.rows = group * rows;
    of.row_stride = size;
    of.unit_stride = of.rows * size;
    return of;
  }
  of.rows = rows;
  of.row_stride = heads * size;
  of.part_stride = group > 1 ? size : 0;
  of.unit_stride = group * size;
  of.sample_stride = rows * of.row_stride;
  return of;
}

MatrixView View(const Heads& heads, ElementType type, bool is_transposed = false) {
  return {type, is_transposed, heads.row_stride, heads.unit_stride};
}

AttentionLayout::AttentionLayout(const OpSpec& spec, const AttentionShape& shape)
    : samples(shape.is_head_major ? 1 : shape.batch),
      units(shape.is_head_major ? shape.batch * shape.key_heads : shape.key_heads),
      parts(shape.is_head_major ? 1 : shape.group()),
      heads(shape.heads),
      queries(shape.queries),
      keys(shape.keys),
      q(HeadsOf(shape, shape.heads, shape.queries, shape.size, shape.group())),
      k(HeadsOf(shape, shape.key_heads, shape.keys, shape.size, 1)),
      v(HeadsOf(shape, shape.key_heads, shape.keys, shape.value_size, 1)),
      y(HeadsOf(shape, shape.heads, shape.queries, shape.value_size, shape.group())),
      q_type(spec.input(0).type),
      k_type(spec.input(1).type),
      v_type(spec.input(2).type),
      y_type(spec.output(0).type),
      scale(shape.scale),
      is_causal(shape.is_causal) {
  p.rows = q.rows;
  p.size = keys;
  p.row_stride = keys;
  p.part_stride = shape.scores();
  p.unit_stride = shape.group() * shape.scores();
  p.sample_stride = units * p.unit_stride;
  type = CommonType({q_type, k_type, v_type, y_type});
}

AttentionProducts::AttentionProducts(const AttentionLayout& layout) {
  const ElementType type = layout.type;
  const MatrixView sums = View(layout.p, ElementType::kFloat32);
  const int64_t rows = layout.q.rows;
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    HeadProduct made;
    made.gemm.m = m;
    made.gemm.n = n;
    made.gemm.k = k;
    return made;
  };
  scores = product(rows, layout.keys, layout.q.size);
  scores.gemm.a = View(layout.q, type);
  scores.gemm.b = View(layout.k, type, true);
  scores.gemm.c = sums;
  scores.gemm.alpha = layout.scale;

  output = product(rows, layout.v.size, layout.keys);
  output.gemm.a = View(layout.p, type);
  output.gemm.b = View(layout.v, type);
  output.gemm.c = View(layout.y, layout.y_type);

  arriving = product(rows, layout.keys, layout.v.size);
  arriving.gemm.a = View(layout.y, type);
  arriving.gemm.b = View(layout.v, type, true);
  arriving.gemm.c = sums;

  query = product(rows, layout.q.size, layout.keys);
  query.gemm.a = View(layout.p, type);
  query.gemm.b = View(layout.k, type);
  query.gemm.c = View(layout.q, layout.q_type);
  query.gemm.alpha = layout.scale;

  key = product(layout.keys, layout.q.size, rows);
  key.gemm.a = View(layout.p, type, true);
  key.gemm.b = View(layout.q, type);
  key.gemm.c = View(layout.k, layout.k_type);
  key.gemm.alpha = layout.scale;
  key.sums_parts = true;

  value = product(layout.keys, layout.v.size, rows);
  value.gemm.a = View(layout.p, type, true);
  value.gemm.b = View(layout.y, type);
  value.gemm.c = View(layout.v, layout.v_type);
  value.sums_parts = true;
}

// Maximum size in bytes of the scores of one block of heads.
constexpr int64_t kBlockBytes = int64_t{32} << 20;

// The mask, broadcast to [batch, heads, queries, keys]: added to the scores or, if boolean, false
// where a key is masked.
struct Mask {
  bool is_present = false;
  bool is_bool = false;
  ElementType type = ElementType::kFloat32;
  int64_t strides[4] = {0, 0, 0, 0};

  explicit Mask(const AttentionMask& mask)
      : is_present(mask.is_present), is_bool(mask.is_bool()), type(mask.type) {
    std::copy(mask.strides.begin(), mask.strides.end(), strides);
  }
};

// Computes the score of a key after applying the mask; -infinity if the key is masked.
struct MaskedScore {
  Mask mask;
  const uint8_t* seen;  // Used if the mask is boolean; otherwise:
  FloatsIn terms;
  bool is_causal;
  Divider queries, heads;

  struct Row {
    int64_t query, offset;  // Offset in the mask.
  };
  // `row` counts the rows of all heads of all samples.
  CKPLAN_DEVICE Row Find(int64_t row) const {
    int64_t query = row;
    int64_t head = queries.Split(query);
    const int64_t sample = heads.Split(head);
    return {query, sample * mask.strides[0] + head * mask.strides[1] + query * mask.strides[2]};
  }
  CKPLAN_DEVICE float operator()(const Row& row, int64_t key, float score) const {
    if (is_causal && key > row.query) return -HUGE_VALF;
    if (!mask.is_present) return score;
    const int64_t at = row.offset + key * mask.strides[3];
    if (!mask.is_bool) return score + terms[at];
    return seen[at] != 0 ? score : -HUGE_VALF;
  }
};

// Turns scores into probabilities in place, and also writes them to `copy` if that is not null.
// `first` is the index of the first row. The row of a query whose keys are all masked is zero.
void MakeProbabilities(Device& device, const MaskedScore& masked, int64_t first, int64_t rows,
                       int64_t keys, float* scores, FloatsOut copy) {
  ForRows(device, rows, keys, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
    const MaskedScore::Row place = masked.Find(first + row);
    float* at = scores + row * keys;
    const float highest = team.Reduce(
        keys, -HUGE_VALF, [&](int64_t i) { return masked(place, i, at[i]); }, LargerOf());
    const bool is_seen = highest != -HUGE_VALF;
    const float sum = team.Sum(
        keys, [&](int64_t i) { return is_seen ? Exp(masked(place, i, at[i]) - highest) : 0.0F; });
    const float scale = is_seen ? 1 / sum : 0.0F;
    team.ForEach(keys, [&](int64_t i) {
      const float p = is_seen ? Exp(masked(place, i, at[i]) - highest) * scale : 0.0F;
      at[i] = p;
      if (!copy.is_null()) copy.Set(row * keys + i, p);
    });
  });
}

// Computes dS from P and dP; dS may alias dP.
void PassSoftmax(Device& device, int64_t rows, int64_t keys, const float* probabilities,
                 const float* arriving, FloatsOut gradients) {
  ForRows(device, rows, keys, [=] CKPLAN_KERNEL(const Team& team, int64_t row) {
    const float* p = probabilities + row * keys;
    const float* dp = arriving + row * keys;
    const float sum = team.Sum(keys, [&](int64_t i) { return p[i] * dp[i]; });
    team.ForEach(keys, [&](int64_t i) { gradients.Set(row * keys + i, p[i] * (dp[i] - sum)); });
  });
}

class AttentionOp final : public PreparedOp {
 public:
  AttentionOp(const OpSpec& spec, Device& device, const AttentionShape& shape)
      : device_(device),
        layout_(spec, shape),
        mask_(shape.mask),
        has_statistic_(shape.has_statistic),
        is_half_(layout_.type == ElementType::kBFloat16),
        block_units_(std::clamp(kBlockBytes / (layout_.p.unit_stride * kFloatBytes), int64_t{1},
                                layout_.units)),
        products_(layout_) {
    PlanForward(spec);
    PlanBackward(spec);
  }

  OpWorkspace workspace() const override { return {forward_plan_.total(), backward_plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    const void* mask = call.inputs.size() > 3 ? call.inputs[3] : nullptr;
    const MaskedScore masked{mask_,
                             static_cast<const uint8_t*>(mask),
                             FloatsIn(mask, mask_.type),
                             layout_.is_causal,
                             Divider(layout_.queries),
                             Divider(layout_.heads)};
    std::array<const void*, 3> in = {};
    for (size_t i = 0; i < 3; ++i) {
      in[i] = forward_inputs_[i].Apply(device_, call.inputs[i], call.workspace);
    }
    void* scratch = BufferAt(call.workspace, forward_scratch_);
    void* copy = is_half_ ? BufferAt(call.workspace, forward_copy_) : nullptr;
    ForBlocks([&](const HeadBlock& block) {
      float* p = has_statistic_ ? static_cast<float*>(call.statistic) + layout_.p.at(block)
                                : FloatsAt(call.workspace, probabilities_);
      Multiply(products_.scores, block, In(layout_.q, in[0]), In(layout_.k, in[1]), Own(p),
               scratch);
      MakeProbabilities(device_, masked, layout_.p.at(block) / layout_.keys, RowsOf(block),
                        layout_.keys, p, FloatsOut(copy, ElementType::kBFloat16));
      if (call.outputs[0] == nullptr) return;
      Multiply(products_.output, block, is_half_ ? Own(copy) : Own(p), In(layout_.v, in[2]),
               In(layout_.y, call.outputs[0]), scratch);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    void* workspace = call.workspace;
    void* scratch = BufferAt(workspace, backward_scratch_);
    const Factor dy = In(layout_.y, call.output_gradients[0]);
    std::array<const void*, 3> in = {};
    if (position != 2) {
      for (const size_t i : {1 - position, size_t{2}}) {
        in[i] = backward_inputs_[i].Apply(device_, call.inputs[i], workspace);
      }
    }
    ForBlocks([&](const HeadBlock& block) {
      const float* p = static_cast<const float*>(call.statistic) + layout_.p.at(block);
      void* copy = BufferAt(workspace, backward_copy_);
      if (position == 2) {
        if (is_half_) {
          Convert(device_, block.units * layout_.p.unit_stride, p, ElementType::kFloat32, copy,
                  ElementType::kBFloat16);
        }
        Multiply(products_.value, block, is_half_ ? Own(copy) : Own(p), dy, In(layout_.v, gradient),
                 scratch);
        return;
      }
      float* arriving = FloatsAt(workspace, gradients_);
      void* ds = is_half_ ? copy : arriving;
      if (position == 0 || !keeps_gradients_) {
        Multiply(products_.arriving, block, dy, In(layout_.v, in[2]), Own(arriving), scratch);
        PassSoftmax(device_, RowsOf(block), layout_.keys, p, arriving, FloatsOut(ds, layout_.type));
      }
      if (position == 0) {
        Multiply(products_.query, block, Own(ds), In(layout_.k, in[1]), In(layout_.q, gradient),
                 scratch);
      } else {
        Multiply(products_.key, block, Own(ds), In(layout_.q, in[0]), In(layout_.k, gradient),
                 scratch);
      }
    });
  }

 private:
  // A factor or result of a product: a tensor of heads, or the scores of one block.
  struct Factor {
    const Heads* heads;  // Null for the scores.
    const void* data;
  };
  static Factor In(const Heads& heads, const void* data) { return {&heads, data}; }
  static Factor Own(const void* data) { return {nullptr, data}; }

  const void* At(const Factor& factor, ElementType type, const HeadBlock& block,
                 int64_t part) const {
    if (factor.heads == nullptr) return From(factor.data, type, part * layout_.p.part_stride);
    return From(factor.data, type, factor.heads->at(block) + part * factor.heads->part_stride);
  }

  // Multiplies for all heads of the block, and sums over the parts that share a result.
  void Multiply(const HeadProduct& product, const HeadBlock& block, const Factor& a,
                const Factor& b, const Factor& c, void* scratch) const {
    GemmShape gemm = product.gemm;
    gemm.batch = block.units;
    for (int64_t part = 0; part < layout_.parts; ++part) {
      gemm.beta = product.sums_parts && part > 0 ? 1.0F : 0.0F;
      void* to = const_cast<void*>(At(c, gemm.c.type, block, part));  // NOLINT: C is written.
      device_.libraries().Gemm(gemm, At(a, gemm.a.type, block, part),
                               At(b, gemm.b.type, block, part), to, scratch);
    }
  }

  int64_t RowsOf(const HeadBlock& block) const {
    return block.units * layout_.p.unit_stride / layout_.keys;
  }

  template <typename Body>
  void ForBlocks(const Body& body) const {
    for (int64_t sample = 0; sample < layout_.samples; ++sample) {
      for (int64_t unit = 0; unit < layout_.units; unit += block_units_) {
        body(HeadBlock{sample, unit, std::min(block_units_, layout_.units - unit)});
      }
    }
  }

  int64_t ScratchOf(std::initializer_list<const HeadProduct*> products) const {
    int64_t bytes = 0;
    for (const HeadProduct* product : products) {
      GemmShape gemm = product->gemm;
      for (const int64_t batch : {block_units_, layout_.units % block_units_}) {
        if (batch == 0) continue;
        gemm.batch = batch;
        bytes = std::max(bytes, device_.libraries().GemmWorkspace(gemm));
      }
    }
    return bytes;
  }

  void PlanForward(const OpSpec& spec) {
    WorkspacePlan& plan = forward_plan_;
    const int64_t scores = block_units_ * layout_.p.unit_stride;
    for (size_t i = 0; i < 3; ++i) {
      const Operand& input = spec.input(i);
      forward_inputs_[i] = Conversion(input.elements(), input.type, layout_.type, plan);
    }
    if (!has_statistic_) probabilities_ = plan.AddFloats(scores);
    if (is_half_) forward_copy_ = plan.Add(scores * SizeOf(layout_.type));
    forward_scratch_ = plan.Add(ScratchOf({&products_.scores, &products_.output}));
  }

  void PlanBackward(const OpSpec& spec) {
    const bool needs_q = spec.input(0).has_gradient;
    const bool needs_k = spec.input(1).has_gradient;
    const bool needs_v = spec.input(2).has_gradient;
    if (!needs_q && !needs_k && !needs_v) return;
    WorkspacePlan& plan = backward_plan_;
    const int64_t scores = block_units_ * layout_.p.unit_stride;
    const bool is_read[] = {needs_k, needs_q, needs_q || needs_k};
    for (size_t i = 0; i < 3; ++i) {
      const Operand& input = spec.input(i);
      if (is_read[i]) {
        backward_inputs_[i] = Conversion(input.elements(), input.type, layout_.type, plan);
      }
    }
    if (needs_q || needs_k) gradients_ = plan.AddFloats(scores);
    if (is_half_) backward_copy_ = plan.Add(scores * SizeOf(layout_.type));
    const auto& products = products_;
    backward_scratch_ =
        plan.Add(ScratchOf({&products.arriving, &products.query, &products.key, &products.value}));
    keeps_gradients_ = needs_q && layout_.samples == 1 && block_units_ == layout_.units;
  }

  Device& device_;
  AttentionLayout layout_;
  Mask mask_;
  bool has_statistic_;
  bool is_half_;
  int64_t block_units_;
  AttentionProducts products_;
  WorkspacePlan forward_plan_, backward_plan_;
  std::array<Conversion, 3> forward_inputs_, backward_inputs_;
  bool keeps_gradients_ = false;  // dS computed for the first gradient is reused for the second.
  int64_t probabilities_ = 0, forward_copy_ = 0, forward_scratch_ = 0;  // Offsets.
  int64_t gradients_ = 0, backward_copy_ = 0, backward_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> PrepareAttention(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const AttentionShape shape, ReadAttentionShape(spec));
  return Prepared<AttentionOp>(spec, device, shape);
}

constexpr OpRow kAttentionOps[] = {{"Attention", PrepareAttention},
                                   {"FusedAttention", PrepareFusedAttention}};

}  // namespace

std::span<const OpRow> AttentionOps() { return kAttentionOps; }

}  // namespace ckplan::cuda
