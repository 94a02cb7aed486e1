// The memory that a step holds from beginning to end: parameters, their gradients, other constants,
// and the input batch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"
#include "lib/executor/core/constant_gradients.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"
#include "lib/files/model/weights.h"

namespace ckplan {

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
