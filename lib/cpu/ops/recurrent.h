// What LSTM and GRU share: the shapes, the hidden states, and the products that are made for all
// steps at once. The operators themselves go through the steps, one direction after the other.
//
//   gates = X Wᵀ + bias            [steps * batch, gates * hidden], all steps at once
//   hidden state of each step      from its gates and the state before
//   backward through the steps     the gradient of all gates: dG
//   dX = dG W, dW = dGᵀ X, dR = dGᵀ (states before), dB = sums of dG
#pragma once

#include <memory>

#include "lib/cpu/dnnl_support.h"
#include "lib/cpu/matmul_kernel.h"
#include "lib/ops/recurrent_shape.h"

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

  // Where the hidden states of a direction are written: the output, the statistic from
  // `reserve_offset` on (floats) where there is no such output, or the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction, int64_t reserve_offset) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction, int64_t reserve_offset) const;

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
  const float* GatherBefore(const BackwardCall& call, int64_t direction, const Steps& states) const;

 private:
  RecurrentShape shape_;
  bool has_output_;  // Y is a tensor of the model.
  std::unique_ptr<MatMulKernel> project_, input_, input_adding_, weight_;
  int64_t states_ = 0, before_ = 0;  // Offsets in the workspace.
  int64_t forward_scratch_ = 0, backward_scratch_ = 0;
};

}  // namespace ckplan::cpu
