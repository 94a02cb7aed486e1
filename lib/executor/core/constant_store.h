// Memory that a step holds throughout: parameters, their gradients, other constants, and the input
// batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"
#include "lib/files/model/weights.h"

namespace ckplan {

// A piece of device memory, released when the object is destroyed.
class DeviceBlock {
 public:
  static Result<DeviceBlock> Allocate(Backend& backend, Bytes bytes) {
    CKPLAN_ASSIGN_OR_RETURN(void* memory, backend.Allocate(bytes.count()));
    return DeviceBlock(backend, memory);
  }
  DeviceBlock(DeviceBlock&& other) noexcept
      : backend_(other.backend_), memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceBlock& operator=(DeviceBlock&&) = delete;
  ~DeviceBlock() { backend_.Release(memory_); }

  void* get() const { return memory_; }

 private:
  DeviceBlock(Backend& backend, void* memory) : backend_(backend), memory_(memory) {}

  Backend& backend_;
  void* memory_;
};

// How the gradient of a constant operand reaches the trained leaves that it is computed from.
//
//   W ─▶ Transpose ─▶ Wt ─▶ MatMul        backward of MatMul writes dWt into scratch,
//                                         backward of Transpose turns it into dW, added to W's
//
// The gradient of a trained constant (leaf) that only one node reads, directly or through a view,
// is written in place. All other gradients are computed in scratch memory, which is part of the
// node's workspace, and added up in the order of the backward steps. That order is the same in all
// plans (Node::shared_parameters), so results don't depend on what a plan recomputes.

// The alignment of memory that no plan places: a cache line, so that blocks don't share one, or
// more if the backend requires it.
int64_t BufferAlignment(const Backend& backend);
int64_t AlignedBytes(int64_t bytes, const Backend& backend);  // Rounded up to BufferAlignment.

class ConstantGradients {
 public:
  ConstantGradients(const Backend& backend, const StepGraph& step,
                    const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  // True if backward may write this constant's gradient directly into its leaf's gradient.
  bool IsDirect(ConstantId constant) const;
  // Returns the bytes of scratch memory for the gradients of the node's constants; 0 if all of them
  // are direct.
  int64_t ScratchBytes(const StepNode& node) const;
  // Returns how many gradients the constant operators compute in one step, at most kCallsCap. Each
  // contribution takes every path to the leaves separately, and the number of paths may be
  // exponential: w2 = w + w, w4 = w2 + w2, and so on.
  int64_t calls() const { return calls_; }
  static constexpr int64_t kCallsCap = int64_t{1} << 40;

 private:
  void CountContributions();
  void SumScratch(const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  const Backend& backend_;
  const StepGraph& step_;
  // The number of contributions that each root's gradient receives in one step, at most kCallsCap.
  IdVector<ConstantId, int64_t> contributions_;
  // The bytes of scratch memory for a root's gradient and for all gradients computed from it on the
  // way to the leaves.
  IdVector<ConstantId, int64_t> scratch_;
  int64_t calls_ = 0;
};

struct ConstantUsage {
  // Float leaves: trained ones, and others such as running statistics.
  Bytes parameters;
  Bytes parameter_gradients;  // One per trained leaf.
  // Constants computed from other constants, the statistics saved for their backward, and integers
  // and masks.
  Bytes derived;
  Bytes inputs;  // The input batch.
  int64_t leaves_from_file = 0;
  int64_t leaves_from_seed = 0;
  // Leaves with random contents, counted by AbsentWeight: why the file lacks their contents.
  std::array<int64_t, kAbsentWeightKinds> absent = {};
};

class ConstantStore {
 public:
  // Uploads the leaves, evaluates the constant operators and fills the input batch. `step` and
  // `operators` must outlive the store. kInfeasible: the device has too little memory; nothing is
  // allocated if the known total is already too much. kInvalidInput: see WeightFile::Read.
  static Result<ConstantStore> Create(Backend& backend, const StepGraph& step,
                                      const StepOperators& operators, const WeightFile& weights,
                                      uint64_t seed);
  ConstantStore(ConstantStore&&) noexcept;
  ~ConstantStore();

  const ConstantUsage& usage() const { return usage_; }
  // Returns null for constants that are never read after evaluation.
  const void* constant(ConstantId id) const;
  const void* input(TensorId tensor) const;
  const void* gradient(ConstantId leaf) const;  // `leaf` must be trained.

  // Zeroes all gradients, because backward adds to those that it doesn't write directly.
  void ClearGradients();
  // Runs the backward of `call` for the constant at input `position`, and propagates the result to
  // the leaf gradients. `scratch` is the node's scratch memory for gradients.
  void BackwardConstant(const StepNode& node, PreparedOp& op, const BackwardCall& call,
                        size_t position, void* scratch);

  // Trained leaves, in constant order.
  const std::vector<ConstantId>& trained() const { return trained_; }
  std::vector<float> DownloadGradient(ConstantId leaf) const;  // A copy on the host.
  // Subtracts rate * gradient from all trained leaves, then reevaluates the constants computed from
  // them; random operators draw new numbers. kInfeasible: the device has no memory for an
  // operator's workspace.
  Result<Done> Descend(float rate);

 private:
  ConstantStore(Backend& backend, const StepGraph& step, const StepOperators& operators,
                uint64_t seed);
  Result<Done> CheckMemory() const;
  Result<void*> Allocate(int64_t bytes, Bytes& counted);
  Result<Done> FillLeaves(const WeightFile& weights);
  Result<std::vector<std::byte>> ReadOrGenerate(const StepConstant& constant,
                                                const WeightFile& weights);
  Result<Done> AllocateGradients();
  Result<Done> FillInputs();
  Result<Done> Evaluate(bool only_trained);
  Result<Done> Evaluate(size_t op);
  uint64_t SeedOf(const ConstantOp& op) const;
  void DropUnread();
  void PropagateGradient(ConstantId root, char* gradient);
  char* PropagateThrough(ConstantId root, char* gradient, size_t position);

  Backend* backend_;
  const StepGraph* step_;
  const StepOperators* operators_;
  uint64_t seed_;
  uint64_t updates_ = 0;  // The number of calls of Descend.
  ConstantGradients gradients_of_;
  IdVector<ConstantId, void*> memory_;     // Null for views.
  IdVector<ConstantId, void*> gradients_;  // Null except for trained leaves.
  std::vector<void*> statistics_;          // By constant operator; null if it saves nothing.
  IdVector<TensorId, void*> inputs_;
  std::vector<ConstantId> trained_;
  ConstantUsage usage_;
};

}  // namespace ckplan
