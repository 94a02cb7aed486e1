// Code shared by LSTM and GRU: shapes, hidden states, and the products computed for all steps at
// once. The operators themselves run the steps, one direction after the other.
//
//   gates = X Wᵀ + bias            [steps * batch, gates * hidden], all steps at once
//   hidden state of each step      from its gates and the state before
//   backward through the steps     the gradient of all gates: dG
//   dX = dG W, dW = dGᵀ X, dR = dGᵀ (states before), dB = sums of dG
#pragma once

#include <algorithm>
#include <memory>

#include "lib/executor/cpu/dnnl_support.h"
#include "lib/executor/cpu/matmul_kernel.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cpu {

// Vectors of one direction, indexed by step: those of all steps, or only of the last two.
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

  // Reserve buffers in the operator's workspaces. Call once, before all other methods.
  void PlanForward(WorkspacePlan& plan);
  void PlanBackward(WorkspacePlan& plan);

  // Computes gates = X Wᵀ + bias; a null `bias` means none.
  void Project(const ForwardCall& call, int64_t direction, const float* bias, float* gates) const;

  // Returns where to write a direction's hidden states: the output, the reserve if there is no such
  // output, or the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction) const;

  // Copies a direction's last state to the output at `position`, if that output is used.
  void WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                 const Steps& states) const;
  // Returns the initial state; null means zero.
  const float* Initial(std::span<const void* const> inputs, size_t position,
                       int64_t direction) const;

  // Computes the gradient of X. `gates` holds dG of all directions, one after the other.
  void InputGradient(const BackwardCall& call, const float* gates, float* gradient) const;
  void WeightGradient(const BackwardCall& call, const float* gates, float* gradient) const;
  // Returns the state before each step, [steps * batch, hidden].
  const float* GatherBefore(const BackwardCall& call, int64_t direction) const;

 private:
  RecurrentShape shape_;
  std::unique_ptr<MatMulKernel> project_, input_, input_adding_, weight_;
  int64_t states_ = 0, before_ = 0;  // Offsets in the workspace.
  int64_t forward_scratch_ = 0, backward_scratch_ = 0;
};

// Base class of LSTM and GRU: the shared frame, storage for gates and other values saved per step
// (in the reserve or, if nothing is saved, in the workspace), and gradients of gates and states.
class RecurrentOp : public PreparedOp {
 public:
  OpWorkspace workspace() const final { return {forward_plan_.total(), backward_plan_.total()}; }

 protected:
  // `extra_slots` is the number of steps whose extra values must exist at once in a forward pass
  // without a reserve.
  RecurrentOp(const OpSpec& spec, const RecurrentShape& shape, int64_t extra_slots);
  void PlanBackward();  // Must be called if a gradient is needed.

  float* Gates(const ForwardCall& call, int64_t direction) const;
  Steps Extras(const ForwardCall& call, int64_t direction) const;
  // Returns the sum of the biases of W and R, or null if there are none. Adds the bias of R only to
  // the first `summed` columns.
  const float* SumBiases(const ForwardCall& call, int64_t direction, int64_t summed) const;
  static bool HasBias(const ForwardCall& call) {
    return call.inputs.size() > kRecurrentBias && call.inputs[kRecurrentBias] != nullptr;
  }

  // Fills `to` with the gradient of the last vector at `output`, or zeros if it has none.
  void BeginWith(const BackwardCall& call, size_t output, int64_t direction, float* to) const;
  // Returns the gradient of the output of one step; null means zero.
  const float* Arriving(const BackwardCall& call, int64_t direction, int64_t step) const;
  // Computes the gradient of both biases from the gradient of the gates.
  void BiasGradient(const BackwardCall& call, float* gradient) const;
  // Copies the gradient of the initial vectors, stored at `offset` in the workspace.
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
