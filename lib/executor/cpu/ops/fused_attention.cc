// Fused attention, computed for a block of queries of one head at a time:
//
//   S = scale Q Kᵀ + terms,  L = log of the sum of e^S along rows,  P = e^(S - L),  Y = P V
//   dV = Pᵀ dY,  dS = P (dP - row sums of Y dY) with dP = dY Vᵀ,  dQ = scale dS K,
//   dK = scale dSᵀ Q
//
// A block has all keys of its queries, and few enough queries to stay in the cache. L is the saved
// statistic. Dropout applies to P in Y and dV, and to dP likewise; backward redraws the random
// numbers. The first requested gradient of Q, K and V computes all three in one pass, and leaves
// the others in the workspace.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/ops/softmax.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/executor/scalar/random.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan::cpu {

namespace {

constexpr float kHiddenKey = -std::numeric_limits<float>::infinity();
// A block of scores has about kBlockScores elements (1 MiB), but at least kMinQueries queries.
constexpr int64_t kBlockScores = int64_t{1} << 18;
constexpr int64_t kMinQueries = 16;

// Turns scores into probabilities in place and returns the logarithm of the sum of exponentials. A
// query without keys gets zeros and an infinite logarithm, so that backward also finds zeros.
CKPLAN_VECTOR_CLONES
float SoftmaxWithLogSum(float* row, int64_t keys) {
  const float highest = MaxElement(row, keys);
  if (highest == kHiddenKey) {
    std::fill(row, row + keys, 0.0F);
    return -kHiddenKey;
  }
  for (int64_t i = 0; i < keys; ++i) row[i] = Exp(row[i] - highest);
  const double sum = Sum(row, keys);
  const auto factor = static_cast<float>(1 / sum);
  for (int64_t i = 0; i < keys; ++i) row[i] *= factor;
  return highest + static_cast<float>(std::log(sum));
}

// Recomputes probabilities from scores.
CKPLAN_VECTOR_CLONES
void RecomputeSoftmax(float* row, int64_t keys, float log_sum) {
  for (int64_t i = 0; i < keys; ++i) row[i] = Exp(row[i] - log_sum);
}

// `ds` holds dP on entry and dS on return.
CKPLAN_VECTOR_CLONES
void BackwardSoftmaxRow(const float* p, float* ds, int64_t keys, float sum) {
  for (int64_t i = 0; i < keys; ++i) ds[i] = p[i] * (ds[i] - sum);
}

CKPLAN_VECTOR_CLONES
void AddRow(float* into, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) into[i] += from[i];
}

// A row of a term; `at` is null if the term is absent.
struct TermRow {
  const AttentionTerm* of = nullptr;
  const void* at = nullptr;
  int64_t offset = 0;

  bool hides() const { return at != nullptr && of->is_bool(); }
  bool Hides(int64_t key) const {
    return static_cast<const bool*>(at)[offset + key * of->strides[3]] == of->hides;
  }
};

void AddTermRow(const TermRow& term, float* row, int64_t keys) {
  if (term.at == nullptr || term.of->is_bool()) return;
  const float* numbers = Floats(term.at) + term.offset;
  const int64_t step = term.of->strides[3];
  for (int64_t i = 0; i < keys; ++i) row[i] += numbers[i * step];
}

// Sets a row's elements for hidden keys.
void HideKeys(const TermRow& term, float* row, int64_t keys, float value) {
  if (!term.hides()) return;
  for (int64_t i = 0; i < keys; ++i) row[i] = term.Hides(i) ? value : row[i];
}

// The products of blocks with `rows` queries.
struct BlockProducts {
  BlockProducts(const FusedAttentionShape& of, int64_t rows)
      : scores({.m = rows,
                .n = of.keys,
                .k = of.size,
                .a = {.row_stride = of.q.row_stride},
                .b = {.is_transposed = true, .row_stride = of.k.row_stride},
                .alpha = of.scale}),
        output({.m = rows,
                .n = of.value_size,
                .k = of.keys,
                .b = {.row_stride = of.v.row_stride},
                .c = {.row_stride = of.y.row_stride}}) {}

  int64_t workspace() const { return std::max(scores.workspace(), output.workspace()); }

  MatMulKernel scores, output;
};

struct BlockGradients {
  BlockGradients(const FusedAttentionShape& of, int64_t rows)
      : arriving({.m = rows,
                  .n = of.keys,
                  .k = of.value_size,
                  .a = {.row_stride = of.y.row_stride},
                  .b = {.is_transposed = true, .row_stride = of.v.row_stride}}),
        query({.m = rows,
               .n = of.size,
               .k = of.keys,
               .b = {.row_stride = of.k.row_stride},
               .c = {.row_stride = of.q.row_stride},
               .alpha = of.scale}),
        key(KeyShape(of, rows, false)),
        adding_key(KeyShape(of, rows, true)),
        value(ValueShape(of, rows, false)),
        adding_value(ValueShape(of, rows, true)) {}

  static ProductShape KeyShape(const FusedAttentionShape& of, int64_t rows, bool adds) {
    return {.m = of.keys,
            .n = of.size,
            .k = rows,
            .a = {.is_transposed = true},
            .b = {.row_stride = of.q.row_stride},
            .c = {.row_stride = of.k.row_stride},
            .alpha = of.scale,
            .adds = adds};
  }
  static ProductShape ValueShape(const FusedAttentionShape& of, int64_t rows, bool adds) {
    return {.m = of.keys,
            .n = of.value_size,
            .k = rows,
            .a = {.is_transposed = true},
            .b = {.row_stride = of.y.row_stride},
            .c = {.row_stride = of.v.row_stride},
            .adds = adds};
  }

  int64_t workspace() const {
    int64_t bytes = 0;
    for (const MatMulKernel* kernel :
         {&arriving, &query, &key, &adding_key, &value, &adding_value}) {
      bytes = std::max(bytes, kernel->workspace());
    }
    return bytes;
  }

  MatMulKernel arriving, query, key, adding_key, value, adding_value;
};

// A block of queries of one head of one sample.
struct QueryBlock {
  int64_t sample = 0, head = 0, first = 0, rows = 0;
};

class FusedAttentionOp final : public PreparedOp {
 public:
  FusedAttentionOp(const OpSpec& spec, const FusedAttentionShape& shape)
      : shape_(shape),
        drop_(shape.dropout),
        block_(std::clamp(kBlockScores / shape.keys, std::min(kMinQueries, shape.queries),
                          shape.queries)),
        rest_(shape.queries % block_) {
    products_[0].emplace(shape, block_);
    if (rest_ > 0) products_[1].emplace(shape, rest_);
    const int64_t scratch = WorkspaceOf(products_);
    scores_ = forward_plan_.Add(block_ * shape.keys * kFloatBytes);
    scratch_ = forward_plan_.Add(scratch);
    if (NeedsGradient(spec)) PlanBackward(spec, scratch);
  }

  OpWorkspace workspace() const override { return {forward_plan_.total(), backward_plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    void* scratch = FloatsAt(call.workspace, scratch_);
    float* scores = FloatsAt(call.workspace, scores_);
    ForBlocks([&](const QueryBlock& block) {
      ComputeScores(call.inputs, block, scores, scratch);
      ForQueries(block, [&](int64_t row) {
        const float log_sum = SoftmaxWithLogSum(scores + row * shape_.keys, shape_.keys);
        if (shape_.has_statistic) Floats(call.statistic)[StatisticAt(block) + row] = log_sum;
        DropRow(call.seed, block, row, scores + row * shape_.keys);
      });
      if (call.outputs[0] == nullptr) return;
      Of(products_, block)
          .output.Run(scores, Floats(call.inputs[2]) + ValuesAt(block),
                      Floats(call.outputs[0]) + OutputAt(block), scratch);
    });
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position > 2) {
      SumTermGradient(call, position == 3 ? shape_.mask : shape_.bias, Floats(gradient));
    } else if (position == first_) {
      ComputeGradients(call, Floats(gradient));
    } else {
      const float* kept = FloatsAt(call.workspace, kept_[position]);
      std::memcpy(gradient, kept, static_cast<size_t>(kept_bytes_[position]));
    }
  }

 private:
  template <typename Kernels>
  static int64_t WorkspaceOf(const std::array<std::optional<Kernels>, 2>& kernels) {
    int64_t bytes = 0;
    for (const auto& of : kernels) bytes = std::max(bytes, of ? of->workspace() : 0);
    return bytes;
  }
  template <typename Kernels>
  const Kernels& Of(const std::array<std::optional<Kernels>, 2>& kernels,
                    const QueryBlock& block) const {
    return *kernels[block.rows == block_ ? 0 : 1];
  }

  void PlanBackward(const OpSpec& spec, int64_t scratch) {
    gradients_[0].emplace(shape_, block_);
    if (rest_ > 0) gradients_[1].emplace(shape_, rest_);
    backward_scores_ = backward_plan_.Add(block_ * shape_.keys * kFloatBytes);
    arriving_ = backward_plan_.Add(block_ * shape_.keys * kFloatBytes);
    backward_scratch_ = backward_plan_.Add(std::max(scratch, WorkspaceOf(gradients_)));
    for (size_t i = 0; i < wants_.size(); ++i) {
      wants_[i] = spec.input(i).has_gradient;
      if (!wants_[i]) continue;
      if (first_ > i) {
        first_ = i;
        continue;
      }
      kept_bytes_[i] = spec.input(i).elements() * kFloatBytes;
      kept_[i] = backward_plan_.Add(kept_bytes_[i]);
    }
  }

  // ---- Places ---------------------------------------------------------------------------------

  int64_t KeyHead(const QueryBlock& block) const { return block.head / shape_.group(); }
  int64_t QueriesAt(const QueryBlock& block) const {
    return shape_.q.at(block.sample, block.head) + block.first * shape_.q.row_stride;
  }
  int64_t OutputAt(const QueryBlock& block) const {
    return shape_.y.at(block.sample, block.head) + block.first * shape_.y.row_stride;
  }
  int64_t KeysAt(const QueryBlock& block) const {
    return shape_.k.at(block.sample, KeyHead(block));
  }
  int64_t ValuesAt(const QueryBlock& block) const {
    return shape_.v.at(block.sample, KeyHead(block));
  }
  int64_t StatisticAt(const QueryBlock& block) const {
    return (block.sample * shape_.heads + block.head) * shape_.queries + block.first;
  }

  template <typename Body>
  void ForBlocksOf(int64_t sample, int64_t head, const Body& body) const {
    for (int64_t first = 0; first < shape_.queries; first += block_) {
      body(QueryBlock{sample, head, first, std::min(block_, shape_.queries - first)});
    }
  }
  template <typename Body>
  void ForBlocks(const Body& body) const {
    for (int64_t sample = 0; sample < shape_.batch; ++sample) {
      for (int64_t head = 0; head < shape_.heads; ++head) ForBlocksOf(sample, head, body);
    }
  }
  template <typename Body>
  void ForQueries(const QueryBlock& block, const Body& body) const {
    ParallelFor(block.rows, std::max<int64_t>(1, kGrain / 8 / shape_.keys),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) body(row);
                });
  }

  // ---- Scores ---------------------------------------------------------------------------------

  static TermRow RowOf(const AttentionTerm& term, std::span<const void* const> inputs,
                       size_t position, const QueryBlock& block, int64_t row) {
    if (!term.is_present) return {};
    return {&term, inputs[position],
            block.sample % term.samples * term.strides[0] + block.head * term.strides[1] +
                (block.first + row) * term.strides[2]};
  }

  void ComputeScores(std::span<const void* const> inputs, const QueryBlock& block, float* scores,
                     void* scratch) const {
    const int64_t keys = shape_.keys;
    Of(products_, block)
        .scores.Run(Floats(inputs[0]) + QueriesAt(block), Floats(inputs[1]) + KeysAt(block), scores,
                    scratch);
    ForQueries(block, [&](int64_t row) {
      float* at = scores + row * keys;
      const TermRow mask = RowOf(shape_.mask, inputs, 3, block, row);
      const TermRow bias = RowOf(shape_.bias, inputs, 4, block, row);
      AddTermRow(mask, at, keys);
      AddTermRow(bias, at, keys);
      HideKeys(bias, at, keys, kHiddenKey);
      HideKeys(mask, at, keys, shape_.fill);
      const int64_t seen = block.first + row + 1;
      if (shape_.is_causal && seen < keys) std::fill(at + seen, at + keys, kHiddenKey);
    });
  }

  // Each probability has its own random number, independent of the blocks.
  void DropRow(uint64_t seed, const QueryBlock& block, int64_t row, float* values) const {
    if (shape_.dropout == 0) return;
    const CounterRng rng(seed);
    const int64_t first = (StatisticAt(block) + row) * shape_.keys;
    for (int64_t i = 0; i < shape_.keys; ++i) values[i] = drop_(rng.Bits(first + i), values[i]);
  }

  // Computes P into `scores` and dS into `arriving`.
  void ComputeScoreGradients(const BackwardCall& call, const QueryBlock& block, float* scores,
                             float* arriving, void* scratch) const {
    const int64_t keys = shape_.keys;
    ComputeScores(call.inputs, block, scores, scratch);
    const float* dy = Floats(call.output_gradients[0]) + OutputAt(block);
    const float* y = Floats(call.outputs[0]) + OutputAt(block);
    const float* log_sums = Floats(call.statistic) + StatisticAt(block);
    Of(gradients_, block)
        .arriving.Run(dy, Floats(call.inputs[2]) + ValuesAt(block), arriving, scratch);
    ForQueries(block, [&](int64_t row) {
      float* p = scores + row * keys;
      float* ds = arriving + row * keys;
      const float* y_row = y + row * shape_.y.row_stride;
      const float* dy_row = dy + row * shape_.y.row_stride;
      const auto sum = static_cast<float>(
          SumTerms(shape_.value_size, [=](int64_t i) { return y_row[i] * dy_row[i]; }));
      RecomputeSoftmax(p, keys, log_sums[row]);
      DropRow(call.seed, block, row, ds);
      BackwardSoftmaxRow(p, ds, keys, sum);
      // The value that replaces a hidden key's score doesn't depend on the score.
      if (shape_.fill != kHiddenKey) {
        HideKeys(RowOf(shape_.mask, call.inputs, 3, block, row), ds, keys, 0);
      }
    });
  }

  // ---- Gradients ------------------------------------------------------------------------------

  // Computes the gradients of Q, K and V; `gradient` is the first one requested.
  void ComputeGradients(const BackwardCall& call, float* gradient) const {
    void* scratch = FloatsAt(call.workspace, backward_scratch_);
    float* p = FloatsAt(call.workspace, backward_scores_);
    float* ds = FloatsAt(call.workspace, arriving_);
    std::array<float*, 3> results = {};
    for (size_t i = 0; i < results.size(); ++i) {
      if (wants_[i]) results[i] = i == first_ ? gradient : FloatsAt(call.workspace, kept_[i]);
    }
    ForBlocks([&](const QueryBlock& block) {
      const BlockGradients& products = Of(gradients_, block);
      const bool is_first = block.first == 0 && block.head % shape_.group() == 0;
      ComputeScoreGradients(call, block, p, ds, scratch);
      if (wants_[0]) {
        products.query.Run(ds, Floats(call.inputs[1]) + KeysAt(block),
                           results[0] + QueriesAt(block), scratch);
      }
      if (wants_[1]) {
        (is_first ? products.key : products.adding_key)
            .Run(ds, Floats(call.inputs[0]) + QueriesAt(block), results[1] + KeysAt(block),
                 scratch);
      }
      if (wants_[2]) {
        ForQueries(block,
                   [&](int64_t row) { DropRow(call.seed, block, row, p + row * shape_.keys); });
        (is_first ? products.value : products.adding_value)
            .Run(p, Floats(call.output_gradients[0]) + OutputAt(block),
                 results[2] + ValuesAt(block), scratch);
      }
    });
  }

  // Sums dS over all samples and heads that share an element of the term.
  void SumTermGradient(const BackwardCall& call, const AttentionTerm& term, float* gradient) const {
    void* scratch = FloatsAt(call.workspace, backward_scratch_);
    float* p = FloatsAt(call.workspace, backward_scores_);
    float* ds = FloatsAt(call.workspace, arriving_);
    const int64_t heads_of_term = term.dims[1];
    ForBlocks([&](const QueryBlock& block) {
      ComputeScoreGradients(call, block, p, ds, scratch);
      const bool is_first = block.sample < term.samples && (heads_of_term > 1 || block.head == 0);
      float* into = gradient + block.sample % term.samples * term.strides[0] +
                    block.head * term.strides[1] + block.first * shape_.keys;
      ForQueries(block, [&](int64_t row) {
        const float* from = ds + row * shape_.keys;
        float* to = into + row * shape_.keys;
        if (is_first) {
          std::copy(from, from + shape_.keys, to);
        } else {
          AddRow(to, from, shape_.keys);
        }
      });
    });
  }

  FusedAttentionShape shape_;
  scalar::Drop drop_;
  int64_t block_, rest_;  // Queries per block, and in the last block if it is shorter.
  std::array<std::optional<BlockProducts>, 2> products_;
  std::array<std::optional<BlockGradients>, 2> gradients_;
  WorkspacePlan forward_plan_, backward_plan_;
  std::array<bool, 3> wants_ = {};
  size_t first_ = 3;                  // The first of Q, K and V whose gradient is requested.
  int64_t scores_ = 0, scratch_ = 0;  // Offsets in the workspaces.
  int64_t backward_scores_ = 0, arriving_ = 0, backward_scratch_ = 0;
  std::array<int64_t, 3> kept_ = {}, kept_bytes_ = {};
};

}  // namespace

Result<std::unique_ptr<PreparedOp>> PrepareFusedAttention(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const FusedAttentionShape shape, ReadFusedAttentionShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<FusedAttentionOp>(spec, shape); });
}

}  // namespace ckplan::cpu
