// The memory that a step holds from beginning to end: parameters, their gradients, other constants,
// and the input batch.
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
// A trained constant (leaf) that a single node reads, itself or through a view, has its gradient
// written directly to where it is kept. All other gradients are computed in scratch memory, which
// is part of the node's workspace, and added up. They are added in the order of the backward steps,
// which is the same in all plans (Node::shared_parameters), so the result does not depend on what a
// plan recomputes.

// The alignment of memory that no plan places: a cache line, so that no two pieces share one, or
// more if the backend needs more.
int64_t BufferAlignment(const Backend& backend);
int64_t AlignedBytes(int64_t bytes, const Backend& backend);  // Rounded up to BufferAlignment.

class ConstantGradients {
 public:
  ConstantGradients(const Backend& backend, const StepGraph& step,
                    const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  // Returns whether backward may write this constant's gradient directly into its leaf's gradient.
  bool IsDirect(ConstantId constant) const;
  // Returns the bytes of scratch memory that the gradients of the node's constants need; 0 if all
  // of them are direct.
  int64_t ScratchBytes(const StepNode& node) const;
  // Returns how many gradients the constant operators compute in one step, at most kManyCalls. Each
  // contribution takes every path to the leaves separately, and there may be exponentially many
  // paths: w2 = w + w, w4 = w2 + w2, and so on.
  int64_t calls() const { return calls_; }
  static constexpr int64_t kManyCalls = int64_t{1} << 40;

 private:
  void CountContributions();
  void AddUpScratch(const std::vector<std::unique_ptr<PreparedOp>>& constant_ops);

  const Backend& backend_;
  const StepGraph& step_;
  // The number of contributions that each root's gradient receives in one step, at most kManyCalls.
  IdVector<ConstantId, int64_t> contributions_;
  // The bytes of scratch memory for the gradient of a root and for all gradients that are computed
  // from it on the way to the leaves.
  IdVector<ConstantId, int64_t> scratch_;
  int64_t calls_ = 0;
};

struct ConstantUsage {
  // Leaves that hold floats: trained ones, and others such as running statistics.
  Bytes parameters;
  Bytes parameter_gradients;  // One for each trained leaf.
  // Constants computed from other constants, the statistics that computing them saves for backward,
  // and integers and masks.
  Bytes derived;
  Bytes inputs;  // The input batch.
  int64_t leaves_from_file = 0;
  int64_t leaves_from_seed = 0;
  // The leaves from the seed, counted by AbsentWeight: why the file lacks their contents.
  std::array<int64_t, kAbsentWeightKinds> absent = {};
};

class ConstantStore {
 public:
  // Uploads the leaves, evaluates the constant operators and fills the input batch. `step` and
  // `operators` must outlive the store. kInfeasible: the device has too little memory; if the total
  // is known to be too much, nothing is allocated. kInvalidInput: see WeightFile::Read.
  static Result<ConstantStore> Create(Backend& backend, const StepGraph& step,
                                      const StepOperators& operators, const WeightFile& weights,
                                      uint64_t seed);
  ConstantStore(ConstantStore&&) noexcept;
  ~ConstantStore();

  const ConstantUsage& usage() const { return usage_; }
  // Returns null for constants that are not read after they were evaluated.
  const void* constant(ConstantId id) const;
  const void* input(TensorId tensor) const;
  const void* gradient(ConstantId leaf) const;  // `leaf` must be trained.

  // Sets all gradients to zero, because backward adds to those that it does not write directly.
  void ClearGradients();
  // Runs the backward of `call` for the constant at input `position`, and passes the result on to
  // the gradients of the leaves that it is computed from. `scratch` is the node's scratch memory
  // for gradients.
  void BackwardConstant(const StepNode& node, PreparedOp& op, const BackwardCall& call,
                        size_t position, void* scratch);

  // Trained leaves, in the order of the constants.
  const std::vector<ConstantId>& trained() const { return trained_; }
  std::vector<float> DownloadGradient(ConstantId leaf) const;  // A copy on the host.
  // Subtracts rate * gradient from all trained leaves, then evaluates again the constants computed
  // from them. Random operators then draw other numbers. kInfeasible: the device has no memory for
  // the workspace of an operator.
  Result<Done> Descend(float rate);

 private:
  ConstantStore(Backend& backend, const StepGraph& step, const StepOperators& operators,
                uint64_t seed);
  Result<Done> CheckRoom() const;
  Result<void*> Allocate(int64_t bytes, Bytes& counted);
  Result<Done> FillLeaves(const WeightFile& weights);
  Result<std::vector<std::byte>> ReadOrMakeUp(const StepConstant& constant,
                                              const WeightFile& weights);
  Result<Done> AllocateGradients();
  Result<Done> FillInputs();
  Result<Done> Evaluate(bool only_trained);
  Result<Done> Evaluate(size_t op);
  uint64_t SeedOf(const ConstantOp& op) const;
  void DropUnread();
  void PassOn(ConstantId root, char* gradient);
  char* PassThrough(ConstantId root, char* gradient, size_t position);

  Backend* backend_;
  const StepGraph* step_;
  const StepOperators* operators_;
  uint64_t seed_;
  uint64_t updates_ = 0;  // How often Descend was called.
  ConstantGradients gradients_of_;
  IdVector<ConstantId, void*> memory_;     // Null for constants that are views.
  IdVector<ConstantId, void*> gradients_;  // Null for all but trained leaves.
  std::vector<void*> statistics_;          // By constant operator; null where nothing is saved.
  IdVector<TensorId, void*> inputs_;
  std::vector<ConstantId> trained_;
  ConstantUsage usage_;
};

}  // namespace ckplan
