#include "lib/executor/cuda/gpu/cudnn_attention.h"

#include <limits>
#include <vector>

#include "lib/executor/cuda/gpu/cudnn_attention_graph.h"
#include "lib/executor/cuda/workspace.h"

namespace ckplan::cuda {

namespace {

// Returns the bytes that an engine needs which keeps dS. One that does not keep it adds to dQ in
// any order, or computes it in a way of which cuDNN says nothing.
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
    rules.may_use_tensor_cores = true;
    rules.workspace_limit = options_.workspace_limit;
    rules.least_workspace = is_forward ? 0 : ScoreGradientBytes(shape);
    return FindCudnnPlan(api_, target_, graph, rules);
  };
  auto known = plans_.find({shape, pass});
  if (known == plans_.end()) known = plans_.emplace(std::pair(shape, pass), find()).first;
  if (!known->second.ok()) return known->second.error();
  return std::unique_ptr<LibraryAttention>(
      std::make_unique<CudnnAttention>(api_, target_.handle, shape, pass, known->second.value()));
}

}  // namespace ckplan::cuda
