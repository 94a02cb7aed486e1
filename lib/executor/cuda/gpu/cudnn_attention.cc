#include "lib/executor/cuda/gpu/cudnn_attention.h"

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/libraries.h"

namespace ckplan::cuda {

namespace {

// Builds operation graphs with cuDNN's backend interface: tensors with four axes, and operations on
// them. Tensors are numbered as they are added; the caller chooses their ids in a variant pack.
class CudnnGraphBuilder {
 public:
  using Tensor = size_t;
  using Axes = std::array<int64_t, 4>;
  static constexpr Tensor kNone = static_cast<Tensor>(-1);

  explicit CudnnGraphBuilder(const CudnnApi& api) : api_(api) {}

  // A tensor in memory. Strides are in elements.
  Tensor Stored(int64_t id, cudnnDataType_t type, const Axes& dims, const Axes& strides);
  // A float32 scalar, passed in a variant pack by its host address.
  Tensor Number(int64_t id);
  // A result that other operations read and that need not be stored.
  Tensor Virtual(cudnnDataType_t type, const Axes& dims, const Axes& strides);
  // As above, row-major and dense.
  Tensor Virtual(const Axes& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // Multiplies a [.., m, k] by b [.., k, n].
  void Multiply(Tensor a, Tensor b, Tensor product);
  // An elementwise operation of one, two or three operands, which are broadcast. `axis` is only
  // used by CUDNN_POINTWISE_GEN_INDEX.
  struct Elementwise {
    cudnnPointwiseMode_t mode;
    Tensor x = kNone, y = kNone, third = kNone, result = kNone;
    cudnnDataType_t computed_as = CUDNN_DATA_FLOAT;
    int64_t axis = -1;
  };
  void Apply(const Elementwise& operation);
  // Reduces the axes along which the result has one element.
  void Reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor result);
  // Reinterprets the elements of x with other dimensions and strides.
  void Reshape(Tensor x, Tensor result);

  // kUnsupported: cuDNN rejects a descriptor; the message has its reason.
  Result<CudnnDescriptor> Finish(const CudnnTarget& target);

 private:
  Tensor Add(int64_t id, cudnnDataType_t type, const Axes& dims, const Axes& strides,
             bool is_virtual, bool is_number);
  void Keep(CudnnDescriptor descriptor, std::vector<CudnnDescriptor>& to);

  const CudnnApi& api_;
  int64_t next_id_ = 1000;  // The id of the next virtual tensor.
  std::vector<CudnnDescriptor> tensors_, parts_, operations_;
  Result<Done> result_ = Done{};
};

CudnnGraphBuilder::Axes PackedStrides(const CudnnGraphBuilder::Axes& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

std::vector<int64_t> ListOf(const CudnnGraphBuilder::Axes& axes) {
  return {axes.begin(), axes.end()};
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Stored(int64_t id, cudnnDataType_t type,
                                                    const Axes& dims, const Axes& strides) {
  return Add(id, type, dims, strides, false, false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Number(int64_t id) {
  return Add(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Virtual(cudnnDataType_t type, const Axes& dims,
                                                     const Axes& strides) {
  return Add(next_id_++, type, dims, strides, true, false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Virtual(const Axes& dims, cudnnDataType_t type) {
  return Virtual(type, dims, PackedStrides(dims));
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Add(int64_t id, cudnnDataType_t type, const Axes& dims,
                                                 const Axes& strides, bool is_virtual,
                                                 bool is_number) {
  CudnnDescriptor tensor(api_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, ListOf(dims))
      .Set(CUDNN_ATTR_TENSOR_STRIDES, ListOf(strides))
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  if (is_virtual) tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (is_number) tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  Keep(std::move(tensor), tensors_);
  return tensors_.size() - 1;
}

void CudnnGraphBuilder::Multiply(Tensor a, Tensor b, Tensor product) {
  CudnnDescriptor how(api_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  Keep(std::move(how), parts_);
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[product])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, parts_.back());
  Keep(std::move(operation), operations_);
}

void CudnnGraphBuilder::Apply(const Elementwise& operation) {
  CudnnDescriptor how(api_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, operation.mode)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, operation.computed_as);
  if (operation.axis >= 0) how.Set(CUDNN_ATTR_POINTWISE_AXIS, operation.axis);
  Keep(std::move(how), parts_);
  CudnnDescriptor made(api_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.back())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[operation.x])
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[operation.result]);
  if (operation.y != kNone) {
    made.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[operation.y]);
  }
  if (operation.third != kNone) {
    made.Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[operation.third]);
  }
  Keep(std::move(made), operations_);
}

void CudnnGraphBuilder::Reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor result) {
  CudnnDescriptor reduction(api_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
  Keep(std::move(reduction), parts_);
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, parts_.back())
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x])
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[result]);
  Keep(std::move(operation), operations_);
}

void CudnnGraphBuilder::Reshape(Tensor x, Tensor result) {
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_[x])
      .Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_[result]);
  Keep(std::move(operation), operations_);
}

Result<CudnnDescriptor> CudnnGraphBuilder::Finish(const CudnnTarget& target) {
  CKPLAN_RETURN_IF_ERROR(result_);
  return MakeOperationGraph(api_, target, operations_);
}

void CudnnGraphBuilder::Keep(CudnnDescriptor descriptor, std::vector<CudnnDescriptor>& to) {
  const Result<Done> finished = descriptor.Finalize();
  if (result_.ok() && !finished.ok()) result_ = finished;
  to.push_back(std::move(descriptor));
}

// The operation graphs that request forward and backward attention from cuDNN. Its fused attention
// engines recognize these graphs, operation by operation, as composed by NVIDIA's cudnn-frontend.
// composes them.
//
//   forward     S = Q Kᵀ, scale, bias, mask;  m = max S, e = exp(S - m), s = Σ e;
//               log_sums = m + log s;  Y = (e / s) V
//   backward    dots = Σ dY Y;  P = exp(S - log_sums), which is masked last;
//               dV = Pᵀ dY;  dS = (dY Vᵀ - dots) P scale;  dK = dSᵀ Q;  dQ = dS K
//
// dQ is the result of one product, not of an accumulator that blocks add to in any order: this is
// how a deterministic engine is asked for. Such an engine keeps dS in its workspace.

// The tensors' ids in a variant pack. The last ones are host scalars, except kIdOfDots, which is
// float32 [batch, heads, queries] in the workspace.
enum AttentionId : int64_t {
  kIdOfQ = 1,
  kIdOfK,
  kIdOfV,
  kIdOfOutput,
  kIdOfLogSums,
  kIdOfBias,
  kIdOfDy,
  kIdOfDq,
  kIdOfDk,
  kIdOfDv,
  kIdOfDots,
  kIdOfScale,
  kIdOfHidden,  // -infinity
  kIdOfOne,
};

using Tensor = CudnnGraphBuilder::Tensor;
using Axes = CudnnGraphBuilder::Axes;

class AttentionGraph {
 public:
  AttentionGraph(const CudnnApi& api, const LibraryAttentionShape& shape)
      : shape_(shape),
        graph_(api),
        scores_dims_{shape.batch, shape.heads, shape.queries, shape.keys},
        sums_dims_{shape.batch, shape.heads, shape.queries, 1} {
    q_ = Rows(kIdOfQ, shape.q, shape.queries, shape.size);
    k_transposed_ = Transposed(kIdOfK, shape.k, shape.keys, shape.size);
    y_ = Rows(kIdOfOutput, shape.y, shape.queries, shape.value_size);
    log_sums_ = Sums(kIdOfLogSums);
    scale_ = graph_.Number(kIdOfScale);
    if (shape.has_bias) bias_ = Bias();
    if (shape.is_causal) hidden_ = graph_.Number(kIdOfHidden);
  }

  Result<CudnnDescriptor> Forward(const CudnnTarget& target) {
    const Tensor v = Rows(kIdOfV, shape_.v, shape_.keys, shape_.value_size);
    const Tensor scores = MaskLaterKeys(BiasedScores());
    const Tensor highest = graph_.Virtual(sums_dims_);
    graph_.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, highest);
    const Tensor powers = Exponentials(Binary(CUDNN_POINTWISE_SUB, scores, highest));
    const Tensor sums = graph_.Virtual(sums_dims_);
    graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sums);
    const Tensor logs = graph_.Virtual(sums_dims_);
    graph_.Apply({.mode = CUDNN_POINTWISE_LOG, .x = sums, .result = logs});
    graph_.Apply({.mode = CUDNN_POINTWISE_ADD, .x = highest, .y = logs, .result = log_sums_});
    const Tensor p = graph_.Virtual(scores_dims_, CUDNN_DATA_BFLOAT16);
    graph_.Apply({.mode = CUDNN_POINTWISE_DIV, .x = powers, .y = sums, .result = p});
    graph_.Multiply(p, v, y_);
    return graph_.Finish(target);
  }

  Result<CudnnDescriptor> Backward(const CudnnTarget& target) {
    const Tensor dy = Rows(kIdOfDy, shape_.y, shape_.queries, shape_.value_size);
    const Tensor v_transposed = Transposed(kIdOfV, shape_.v, shape_.keys, shape_.value_size);
    const Tensor dots = Dots(dy);
    const Tensor p =
        Exponentials(MaskLaterKeys(Binary(CUDNN_POINTWISE_SUB, BiasedScores(), log_sums_)));
    const Tensor p_transposed = TransposedHalves(p);
    const Tensor dv = Rows(kIdOfDv, shape_.v, shape_.keys, shape_.value_size);
    graph_.Multiply(p_transposed, dy, dv);
    const Tensor arriving = graph_.Virtual(scores_dims_);
    graph_.Multiply(dy, v_transposed, arriving);
    const Tensor less = Binary(CUDNN_POINTWISE_SUB, arriving, dots);
    const Tensor weighted = Binary(CUDNN_POINTWISE_MUL, less, p);
    const Tensor ds = Binary(CUDNN_POINTWISE_MUL, weighted, scale_);
    const Tensor ds_transposed = TransposedHalves(ds);
    const Tensor dk = Rows(kIdOfDk, shape_.k, shape_.keys, shape_.size);
    graph_.Multiply(ds_transposed, q_, dk);
    const Tensor k =
        graph_.Virtual(CUDNN_DATA_FLOAT, {shape_.batch, shape_.heads, shape_.keys, shape_.size},
                       {shape_.k.batch_stride, shape_.k.head_stride, shape_.k.row_stride, 1});
    graph_.Reshape(k_transposed_, k);
    graph_.Multiply(ds, k, Rows(kIdOfDq, shape_.q, shape_.queries, shape_.size));
    return graph_.Finish(target);
  }

 private:
  Tensor Rows(int64_t id, const LibraryRows& rows, int64_t count, int64_t size) {
    return graph_.Stored(id, CUDNN_DATA_BFLOAT16, {shape_.batch, shape_.heads, count, size},
                         {rows.batch_stride, rows.head_stride, rows.row_stride, 1});
  }
  Tensor Transposed(int64_t id, const LibraryRows& rows, int64_t count, int64_t size) {
    return graph_.Stored(id, CUDNN_DATA_BFLOAT16, {shape_.batch, shape_.heads, size, count},
                         {rows.batch_stride, rows.head_stride, 1, rows.row_stride});
  }
  Tensor Sums(int64_t id) {
    return graph_.Stored(id, CUDNN_DATA_FLOAT, sums_dims_,
                         {shape_.heads * shape_.queries, shape_.queries, 1, 1});
  }
  Tensor Bias() {
    const int64_t head_stride = shape_.queries * shape_.keys;
    return graph_.Stored(
        kIdOfBias,
        shape_.bias_type == ElementType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT,
        {shape_.bias_batch, shape_.bias_heads, shape_.queries, shape_.keys},
        {shape_.bias_heads * head_stride, head_stride, shape_.keys, 1});
  }

  // The result has the dimensions of the scores.
  Tensor Binary(cudnnPointwiseMode_t mode, Tensor x, Tensor y) {
    const Tensor result = graph_.Virtual(scores_dims_);
    graph_.Apply({.mode = mode, .x = x, .y = y, .result = result});
    return result;
  }
  Tensor Exponentials(Tensor x) {
    const Tensor result = graph_.Virtual(scores_dims_);
    graph_.Apply({.mode = CUDNN_POINTWISE_EXP, .x = x, .result = result});
    return result;
  }

  Tensor BiasedScores() {
    const Tensor products = graph_.Virtual(scores_dims_);
    graph_.Multiply(q_, k_transposed_, products);
    const Tensor scaled = Binary(CUDNN_POINTWISE_MUL, products, scale_);
    return shape_.has_bias ? Binary(CUDNN_POINTWISE_ADD, scaled, bias_) : scaled;
  }

  Tensor MaskLaterKeys(Tensor scores) {
    if (!shape_.is_causal) return scores;
    const auto places = [&](int64_t axis) {
      const Tensor result = graph_.Virtual(scores_dims_, CUDNN_DATA_INT32);
      graph_.Apply(
          {.mode = CUDNN_POINTWISE_GEN_INDEX, .x = scores, .result = result, .axis = axis});
      return result;
    };
    const Tensor row = places(2), column = places(3);
    const Tensor is_seen = graph_.Virtual(scores_dims_, CUDNN_DATA_BOOLEAN);
    graph_.Apply({.mode = CUDNN_POINTWISE_CMP_GE,
                  .x = row,
                  .y = column,
                  .result = is_seen,
                  .computed_as = CUDNN_DATA_BOOLEAN});
    const Tensor result = graph_.Virtual(scores_dims_);
    graph_.Apply({.mode = CUDNN_POINTWISE_BINARY_SELECT,
                  .x = scores,
                  .y = hidden_,
                  .third = is_seen,
                  .result = result});
    return result;
  }

  // The product by one is in the place where the engines expect Dropout's scale.
  Tensor Dots(Tensor dy) {
    const Tensor products =
        graph_.Virtual({shape_.batch, shape_.heads, shape_.queries, shape_.value_size});
    graph_.Apply({.mode = CUDNN_POINTWISE_MUL, .x = dy, .y = y_, .result = products});
    const Tensor sums = graph_.Virtual(sums_dims_);
    graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
    const Tensor dots = Sums(kIdOfDots);
    graph_.Apply(
        {.mode = CUDNN_POINTWISE_MUL, .x = sums, .y = graph_.Number(kIdOfOne), .result = dots});
    return dots;
  }

  Tensor TransposedHalves(Tensor x) {
    const int64_t area = shape_.queries * shape_.keys;
    const Tensor result = graph_.Virtual(CUDNN_DATA_BFLOAT16,
                                         {shape_.batch, shape_.heads, shape_.keys, shape_.queries},
                                         {shape_.heads * area, area, 1, shape_.keys});
    graph_.Reshape(x, result);
    return result;
  }

  const LibraryAttentionShape& shape_;
  CudnnGraphBuilder graph_;
  Axes scores_dims_, sums_dims_;
  Tensor q_, k_transposed_, y_, log_sums_, scale_;
  Tensor bias_ = CudnnGraphBuilder::kNone, hidden_ = CudnnGraphBuilder::kNone;
};

// kUnsupported: cuDNN rejects a descriptor; the message has its reason.
Result<CudnnDescriptor> DescribeAttention(const CudnnApi& api, const CudnnTarget& target,
                                          const LibraryAttentionShape& shape, AttentionPass pass) {
  AttentionGraph graph(api, shape);
  return pass == AttentionPass::kForward ? graph.Forward(target) : graph.Backward(target);
}

// Returns the bytes that an engine needs to keep dS. An engine that doesn't keep it adds to dQ in
// any order, or in a way that cuDNN doesn't document.
int64_t ScoreGradientBytes(const LibraryAttentionShape& shape) {
  constexpr int64_t kHalfBytes = 2;
  return shape.batch * shape.heads * shape.queries * shape.keys * kHalfBytes;
}

class CudnnAttention final : public LibraryAttention {
 public:
  CudnnAttention(const CudnnApi& api, cudnnHandle_t handle, const LibraryAttentionShape& shape,
                 AttentionPass pass, std::shared_ptr<const CudnnPlan> plan)
      : api_(api),
        handle_(handle),
        shape_(shape),
        pass_(pass),
        plan_(std::move(plan)),
        choice_(plan_->choice) {
    WorkspacePlan places;
    places.Add(plan_->choice.workspace);
    if (pass == AttentionPass::kBackward) {
      dots_ = places.AddFloats(shape.batch * shape.heads * shape.queries);
    }
    choice_.workspace = places.total();
  }

  const EngineChoice& choice() const override { return choice_; }

  void Run(const AttentionTensors& tensors, void* workspace) override {
    const auto writable = [](const void* data) { return const_cast<void*>(data); };  // NOLINT
    std::vector<int64_t> ids = {kIdOfQ, kIdOfK, kIdOfV, kIdOfOutput, kIdOfLogSums, kIdOfScale};
    std::vector<void*> data = {writable(tensors.q), writable(tensors.k), writable(tensors.v),
                               tensors.y,           tensors.log_sums,    &shape_.scale};
    const auto add = [&](int64_t id, void* at) {
      ids.push_back(id);
      data.push_back(at);
    };
    if (shape_.has_bias) add(kIdOfBias, writable(tensors.bias));
    if (shape_.is_causal) add(kIdOfHidden, &hidden_);
    if (pass_ == AttentionPass::kBackward) {
      add(kIdOfDy, writable(tensors.dy));
      add(kIdOfDq, tensors.dq);
      add(kIdOfDk, tensors.dk);
      add(kIdOfDv, tensors.dv);
      add(kIdOfDots, BufferAt(workspace, dots_));
      add(kIdOfOne, &one_);
    }
    ExecuteCudnnPlan(api_, handle_, *plan_, ids, data, workspace);
  }

 private:
  const CudnnApi& api_;
  cudnnHandle_t handle_;
  LibraryAttentionShape shape_;
  AttentionPass pass_;
  std::shared_ptr<const CudnnPlan> plan_;
  EngineChoice choice_;
  int64_t dots_ = 0;  // Offset in the workspace.
  float one_ = 1, hidden_ = -std::numeric_limits<float>::infinity();
};

}  // namespace

Result<std::unique_ptr<LibraryAttention>> CudnnAttentions::Prepare(
    const LibraryAttentionShape& shape, AttentionPass pass) {
  const auto find = [&]() -> Result<std::shared_ptr<const CudnnPlan>> {
    CKPLAN_ASSIGN_OR_RETURN(const CudnnDescriptor graph,
                            DescribeAttention(api_, target_, shape, pass));
    const bool is_forward = pass == AttentionPass::kForward;
    EngineRules rules;
    rules.what = is_forward ? "attention" : "the gradients of attention";
    rules.allows_tensor_cores = true;
    rules.workspace_limit = options_.workspace_limit;
    rules.min_workspace = is_forward ? 0 : ScoreGradientBytes(shape);
    return FindCudnnPlan(api_, target_, graph, rules);
  };
  auto known = plans_.find({shape, pass});
  if (known == plans_.end()) known = plans_.emplace(std::pair(shape, pass), find()).first;
  if (!known->second.ok()) return known->second.error();
  return std::unique_ptr<LibraryAttention>(
      std::make_unique<CudnnAttention>(api_, target_.handle, shape, pass, known->second.value()));
}

}  // namespace ckplan::cuda
