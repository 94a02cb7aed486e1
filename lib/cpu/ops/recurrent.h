// Code shared by LSTM and GRU: the shapes, the hidden states, and the products that are computed
// for all steps at once. The operators themselves run the steps, one direction after the other.
//
//   gates = X Wᵀ + bias            [steps * batch, gates * hidden], all steps at once
//   hidden state of each step      from its gates and the state before
//   backward through the steps     the gradient of all gates: dG
//   dX = dG W, dW = dGᵀ X, dR = dGᵀ (states before), dB = sums of dG
#pragma once

#include <algorithm>
#include <memory>

#include "lib/cpu/dnnl_support.h"
#include "lib/cpu/matmul_kernel.h"
#include "lib/cpu/parallel.h"
#include "lib/ops/recurrent.h"

namespace ckplan::cpu {

// Vectors of one direction, indexed by step: all of them, or only the last two.
struct Steps {
  float* first = nullptr;
  int64_t stride = 0;
  int64_t slots = 1;

  float* at(int64_t step) const { return first + step % slots * stride; }
};

// The products with W and X, and access to the states, for one operator.
class RecurrentFrame {
 public:
  RecurrentFrame(const OpSpec& spec, const RecurrentShape& shape);

  // Reserves buffers in the operator's workspaces. Called once, before all other methods.
  void PlanForward(WorkspacePlan& plan);
  void PlanBackward(WorkspacePlan& plan);

  // gates = X Wᵀ + bias; a null `bias` means none.
  void Project(const ForwardCall& call, int64_t direction, const float* bias, float* gates) const;

  // Where the hidden states of a direction are written: to the output; to the reserve if the
  // operator has no such output; or to the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction) const;

  // Copies the last state of a direction to the output at `position`, if that output is used.
  void WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                 const Steps& states) const;
  // The initial state; null means zero.
  const float* Initial(std::span<const void* const> inputs, size_t position,
                       int64_t direction) const;

  // The gradient of X. `gates` holds dG of all directions, one after the other.
  void InputGradient(const BackwardCall& call, const float* gates, float* gradient) const;
  void WeightGradient(const BackwardCall& call, const float* gates, float* gradient) const;
  // The state before each step, [steps * batch, hidden].
  const float* GatherBefore(const BackwardCall& call, int64_t direction) const;

 private:
  RecurrentShape shape_;
  std::unique_ptr<MatMulKernel> project_, input_, input_adding_, weight_;
  int64_t states_ = 0, before_ = 0;  // Offsets in the workspace.
  int64_t forward_scratch_ = 0, backward_scratch_ = 0;
};

// Common base of both operators: the shared frame; storage for the gates and other values saved per
// step, in the reserve or, if nothing is saved, in the workspace; and gradients of gates and
// states.
class RecurrentOp : public PreparedOp {
 public:
  OpWorkspace workspace() const final { return {forward_plan_.total(), backward_plan_.total()}; }

 protected:
  // `extra_slots`: for how many steps forward without a reserve needs the extra saved values at
  // once.
  RecurrentOp(const OpSpec& spec, const RecurrentShape& shape, int64_t extra_slots);
  void PlanBackward();  // Must be called if a gradient is needed.

  float* Gates(const ForwardCall& call, int64_t direction) const;
  Steps Extras(const ForwardCall& call, int64_t direction) const;
  // The sum of the biases of W and R; null if there are none. The bias of R is added only to the
  // first `both` columns.
  const float* SumBiases(const ForwardCall& call, int64_t direction, int64_t both) const;
  static bool HasBias(const ForwardCall& call) {
    return call.inputs.size() > kRecurrentBias && call.inputs[kRecurrentBias] != nullptr;
  }

  // Fills `to` with the gradient of the last vector at `output`, or zero if it has none.
  void BeginWith(const BackwardCall& call, size_t output, int64_t direction, float* to) const;
  // The gradient of the output of one step; null means zero.
  const float* Arriving(const BackwardCall& call, int64_t direction, int64_t step) const;
  // The gradient of both biases, computed from that of the gates.
  void BiasGradient(const BackwardCall& call, float* gradient) const;
  // Copies the gradient of the initial vectors, which is at `offset` in the workspace.
  void CopyInitial(const BackwardCall& call, int64_t offset, float* to) const;

  template <typename Body>
  void ForSamples(const Body& body) const {
    ParallelFor(shape_.batch, std::max<int64_t>(1, kGrain / 16 / shape_.hidden),
                [&](int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) body(n);
                });
  }

  RecurrentShape shape_;
  RecurrentFrame frame_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t gate_gradients_ = 0, state_gradients_ = 0;  // Offsets in the workspace.

 private:
  int64_t extra_slots_;
  int64_t bias_ = 0, gates_ = 0, extras_ = 0;
};

}  // namespace ckplan::cpu
