// What LSTM and GRU share: the shapes, the hidden states, and the products that are made for all
// steps at once. The operators themselves go through the steps, one direction after the other.
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

// Vectors of one direction by step: all of them, or the last two.
struct Steps {
  float* first = nullptr;
  int64_t stride = 0;
  int64_t slots = 1;

  float* at(int64_t step) const { return first + step % slots * stride; }
};

// The products with W and X, and the gathering of states, for one operator.
class RecurrentFrame {
 public:
  RecurrentFrame(const OpSpec& spec, const RecurrentShape& shape);

  // Places its buffers in the workspaces of the operator. Called once, before all else.
  void PlanForward(WorkspacePlan& plan);
  void PlanBackward(WorkspacePlan& plan);

  // gates = X Wᵀ + bias; `bias` null for none.
  void Project(const ForwardCall& call, int64_t direction, const float* bias, float* gates) const;

  // Where the hidden states of a direction are written: the output, the reserve where there is no
  // such output, or the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction) const;

  // Copies the last state of a direction to the output at `position`, if somebody reads it.
  void WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                 const Steps& states) const;
  // The state before the first step, or null where there is none: it is zero.
  const float* Initial(std::span<const void* const> inputs, size_t position,
                       int64_t direction) const;

  // The gradient of X: `gates` holds dG of all directions, one after the other.
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

// What both operators have: the frame, the gates and what else is read of each step, in the reserve
// or, where nothing is saved, in the workspace; and the gradients of gates and states.
class RecurrentOp : public PreparedOp {
 public:
  OpWorkspace workspace() const final { return {forward_plan_.total(), backward_plan_.total()}; }

 protected:
  // `extra_slots`: steps of what else is read that a forward pass without a reserve needs at once.
  RecurrentOp(const OpSpec& spec, const RecurrentShape& shape, int64_t extra_slots);
  void PlanBackward();  // To be called where a gradient is asked for.

  float* Gates(const ForwardCall& call, int64_t direction) const;
  Steps Extras(const ForwardCall& call, int64_t direction) const;
  // The biases of W and of R, of which the second go to the first `both` columns alone; null where
  // there are none.
  const float* SumBiases(const ForwardCall& call, int64_t direction, int64_t both) const;
  static bool HasBias(const ForwardCall& call) {
    return call.inputs.size() > kRecurrentBias && call.inputs[kRecurrentBias] != nullptr;
  }

  // The gradient of the last vector at `output`, zero where none arrives.
  void BeginWith(const BackwardCall& call, size_t output, int64_t direction, float* to) const;
  // The gradient of the output of one step; null where none arrives.
  const float* Arriving(const BackwardCall& call, int64_t direction, int64_t step) const;
  // The gradient of both biases, from that of the gates.
  void BiasGradient(const BackwardCall& call, float* gradient) const;
  // The gradient of what is initial, which lies at `offset` in the workspace.
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
