// What LSTM and GRU share: the hidden states, and the products that are made for all steps at once.
// The operators themselves go through the steps, one direction after the other.
//
//   gates = X Wᵀ + bias            [steps * batch, gates * hidden], all steps at once
//   hidden state of each step      from its gates and the state before
//   backward through the steps     the gradient of all gates: dG
//   dX = dG W, dW = dGᵀ X, dR = dGᵀ (states before), dB = sums of dG
//
// Gates and cells, and what backward adds up from step to step, are float32. Where one of the
// tensors is bfloat16, dG and all factors of products are, but for the states that the statistic
// holds: those are float32, and so are their products.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "lib/backend/backend.h"
#include "lib/cuda/convert.h"
#include "lib/cuda/device.h"
#include "lib/cuda/reduce.h"
#include "lib/ops/recurrent.h"

namespace ckplan::cuda {

// Vectors of one direction by step: all of them, or the last two.
struct Steps {
  void* first = nullptr;
  ElementType type = ElementType::kFloat32;
  int64_t stride = 0;  // Elements.
  int64_t slots = 1;

  void* at(int64_t step) const { return From(first, type, step % slots * stride); }
};

inline MatrixView RowsView(ElementType type, int64_t row_stride) {
  return {type, false, row_stride, 0};
}
inline MatrixView ColumnsView(ElementType type, int64_t row_stride) {
  return {type, true, row_stride, 0};
}
// C = A B, or C += A B.
GemmShape GemmOf(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b,
                 const MatrixView& c, bool adds = false);

class RecurrentFrame {
 public:
  RecurrentFrame(const OpSpec& spec, Device& device, const RecurrentShape& shape);

  // Of the factors of products, and of the hidden states with theirs.
  ElementType type() const { return type_; }
  ElementType state_type() const { return state_type_; }

  // Places its buffers in the workspaces of the operator, with room for these products of its own.
  // Called once, before all else.
  void PlanForward(WorkspacePlan& plan, std::initializer_list<GemmShape> own);
  void PlanBackward(WorkspacePlan& plan, std::initializer_list<GemmShape> own);

  // gates = X Wᵀ + both biases, of which the second goes to the first `both` columns alone.
  void Project(const ForwardCall& call, int64_t direction, int64_t both, float* gates) const;
  // Those of the operator itself.
  void MultiplyForward(const ForwardCall& call, const GemmShape& shape, const void* a,
                       const void* b, void* c) const;
  void MultiplyBackward(const BackwardCall& call, const GemmShape& shape, const void* a,
                        const void* b, void* c) const;
  // R of one direction as a factor: with the states forward, with dG backward. To be called for the
  // first direction first.
  const void* ForwardRecurrence(const ForwardCall& call, int64_t direction) const;
  const void* BackwardRecurrence(const BackwardCall& call, int64_t direction) const;

  // Where the hidden states of a direction are written: the output, the reserve where there is no
  // such output, or the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction) const;
  // Copies the last vector of a direction to the output at `position`, if somebody reads it.
  void WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                 const Steps& steps) const;

  // The state before the first step in the type of the states; null where it is zero.
  const void* ForwardInitial(const ForwardCall& call, int64_t direction) const;
  // Any initial vectors, in their own type.
  FloatsIn Initial(std::span<const void* const> inputs, size_t position, int64_t direction) const;
  // The gradient of what is initial, from that of the last step back, for all directions.
  void WriteInitial(size_t position, const float* from, void* gradient) const;
  // The gradient of the last vectors at `position` of the outputs; zero where none arrives.
  void BeginWith(const BackwardCall& call, size_t position, int64_t direction, float* to) const;
  // The gradient of the output of one step.
  FloatsIn Arriving(const BackwardCall& call, int64_t direction, int64_t step) const;

  // `gates` holds dG of all directions, one after the other.
  void InputGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  void WeightGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  // Of both biases.
  void BiasGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  // Sums the columns of [rows, columns] of factors into the gradient of the biases from `at` on.
  void SumColumns(const BackwardCall& call, const void* rows, int64_t columns, void* gradient,
                  int64_t at) const;
  // The state before each step, [steps * batch, hidden], as a factor.
  void* GatherBefore(const BackwardCall& call, int64_t direction) const;

 private:
  int64_t ScratchOf(std::initializer_list<GemmShape> own,
                    std::initializer_list<const GemmShape*> shared) const;

  Device& device_;
  RecurrentShape shape_;
  std::vector<ElementType> input_types_, output_types_;
  std::vector<bool> wants_;  // By position of inputs.
  ElementType type_, state_type_;
  GemmShape project_, input_, weight_;
  ReduceShape bias_sums_;
  Conversion x_, w_, r_, initial_;  // Forward.
  Conversion backward_x_, backward_w_, backward_r_;
  int64_t states_ = 0, before_ = 0, sums_ = 0;  // Offsets in the workspaces.
  int64_t forward_scratch_ = 0, backward_scratch_ = 0;
};

// What both operators have: the frame, the gates and what else is read of each step, in the reserve
// or, where nothing is saved, in the workspace; and the gradients of gates and states.
class RecurrentOp : public PreparedOp {
 public:
  OpWorkspace workspace() const final { return {forward_plan_.total(), backward_plan_.total()}; }

 protected:
  RecurrentOp(const OpSpec& spec, Device& device, const RecurrentShape& shape);
  // Places the buffers, with room for these products of the operator's own. `extra_slots`: steps of
  // what else is read that a forward pass without a reserve needs at once.
  void PlanForward(std::initializer_list<GemmShape> own, int64_t extra_slots);
  void PlanBackward(std::initializer_list<GemmShape> own);

  float* Gates(const ForwardCall& call, int64_t direction) const;
  Steps Extras(const ForwardCall& call, int64_t direction) const;
  // The gradient of the gates of one step.
  void* GateGradients(const BackwardCall& call, int64_t direction, int64_t step) const;

  Device& device_;
  RecurrentShape shape_;
  RecurrentFrame frame_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t gate_gradients_ = 0, state_gradients_ = 0;  // Offsets in the workspace.

 private:
  int64_t extra_slots_ = 1;
  int64_t gates_ = 0, extras_ = 0;
};

}  // namespace ckplan::cuda
