#include "lib/executor/cuda/gpu/cudnn_attention_graph.h"

#include "lib/executor/cuda/gpu/cudnn_graph.h"

namespace ckplan::cuda {

namespace {

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
    const Tensor scores = WithoutLaterKeys(BiasedScores());
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
        Exponentials(WithoutLaterKeys(Binary(CUDNN_POINTWISE_SUB, BiasedScores(), log_sums_)));
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

  // The result has the dimensions of scores.
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

  Tensor WithoutLaterKeys(Tensor scores) {
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

  // The product by one stands where the engines have the scale of Dropout.
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

}  // namespace

Result<CudnnDescriptor> DescribeAttention(const CudnnApi& api, const CudnnTarget& target,
                                          const LibraryAttentionShape& shape, AttentionPass pass) {
  AttentionGraph graph(api, shape);
  return pass == AttentionPass::kForward ? graph.Forward(target) : graph.Backward(target);
}

}  // namespace ckplan::cuda
