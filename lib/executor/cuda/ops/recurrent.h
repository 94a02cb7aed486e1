// Code shared by LSTM and GRU: the hidden states, and the products that are computed for all steps
// at once. The operators themselves run the steps, one direction after the other.
//
//   gates = X Wᵀ + bias            [steps * batch, gates * hidden], all steps at once
//   hidden state of each step      from its gates and the state before
//   backward through the steps     the gradient of all gates: dG
//   dX = dG W, dW = dGᵀ X, dR = dGᵀ (states before), dB = sums of dG
//
// Gates, cell states and gradients accumulated over the steps are float32. If any of the tensors is
// bfloat16, dG and all factors of products are bfloat16, with one exception: hidden states that are
// stored in the statistic are float32, and products with them use float32.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/cuda/convert.h"
#include "lib/executor/cuda/device.h"
#include "lib/executor/cuda/reduce.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cuda {

// Vectors of one direction, indexed by step: those of all steps, or only of the last two.
struct Steps {
  void* first = nullptr;
  ElementType type = ElementType::kFloat32;
  int64_t stride = 0;  // In elements.
  int64_t slots = 1;

  void* at(int64_t step) const { return From(first, type, step % slots * stride); }
};

inline MatrixView RowsView(ElementType type, int64_t row_stride) {
  return {type, false, row_stride, 0};
}
inline MatrixView ColumnsView(ElementType type, int64_t row_stride) {
  return {type, true, row_stride, 0};
}
// Describes C = A B, or C += A B.
GemmShape GemmOf(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b,
                 const MatrixView& c, bool adds = false);

class RecurrentFrame {
 public:
  RecurrentFrame(const OpSpec& spec, Device& device, const RecurrentShape& shape);

  // Returns the type of the factors of products. Hidden states and products with them have
  // state_type() instead.
  ElementType type() const { return type_; }
  ElementType state_type() const { return state_type_; }

  // Reserves buffers in the operator's workspaces, including workspace for the operator's own
  // products. Called once, before all other methods.
  void PlanForward(WorkspacePlan& plan, std::initializer_list<GemmShape> own);
  void PlanBackward(WorkspacePlan& plan, std::initializer_list<GemmShape> own);

  // Computes gates = X Wᵀ + the biases of W and R. The bias of R is added only to the first `both`
  // columns.
  void Project(const ForwardCall& call, int64_t direction, int64_t both, float* gates) const;
  // Computes a product of the operator itself.
  void MultiplyForward(const ForwardCall& call, const GemmShape& shape, const void* a,
                       const void* b, void* c) const;
  void MultiplyBackward(const BackwardCall& call, const GemmShape& shape, const void* a,
                        const void* b, void* c) const;
  // Returns R of one direction as a factor: in forward of a product with the states, in backward of
  // a product with dG. Must be called for the first direction before the others.
  const void* ForwardRecurrence(const ForwardCall& call, int64_t direction) const;
  const void* BackwardRecurrence(const BackwardCall& call, int64_t direction) const;

  // Returns where the hidden states of a direction are written: the output; the reserve if the
  // operator has no such output; or the workspace.
  Steps WriteStates(const ForwardCall& call, int64_t direction) const;
  Steps ReadStates(const BackwardCall& call, int64_t direction) const;
  // Copies the last vector of a direction to the output at `position`, if that output is used.
  void WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                 const Steps& steps) const;

  // Returns the initial state in the type of the states; null means zero.
  const void* ForwardInitial(const ForwardCall& call, int64_t direction) const;
  // Returns initial vectors in their own type.
  FloatsIn Initial(std::span<const void* const> inputs, size_t position, int64_t direction) const;
  // Writes the gradient of the initial vectors of all directions; the steps of backward have
  // accumulated it in `from`.
  void WriteInitial(size_t position, const float* from, void* gradient) const;
  // Fills `to` with the gradient of the last vectors at output `position`, or zero if it has none.
  void BeginWith(const BackwardCall& call, size_t position, int64_t direction, float* to) const;
  // Returns the gradient of the output of one step.
  FloatsIn Arriving(const BackwardCall& call, int64_t direction, int64_t step) const;

  // Computes the gradient of X. `gates` holds dG of all directions, one after the other.
  void InputGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  void WeightGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  // Computes the gradient of the biases of W and R.
  void BiasGradient(const BackwardCall& call, const void* gates, void* gradient) const;
  // Sums the columns of [rows, columns] into the gradient of the biases, beginning at `at`.
  void SumColumns(const BackwardCall& call, const void* rows, int64_t columns, void* gradient,
                  int64_t at) const;
  // Returns the state before each step, [steps * batch, hidden], in the type of factors.
  void* GatherBefore(const BackwardCall& call, int64_t direction) const;

 private:
  int64_t ScratchOf(std::initializer_list<GemmShape> own,
                    std::initializer_list<const GemmShape*> shared) const;

  Device& device_;
  RecurrentShape shape_;
  std::vector<ElementType> input_types_, output_types_;
  std::vector<bool> wants_;  // By position of the inputs.
  ElementType type_, state_type_;
  GemmShape project_, input_, weight_;
  ReduceShape bias_sums_;
  Conversion x_, w_, r_, initial_;  // Forward.
  Conversion backward_x_, backward_w_, backward_r_;
  int64_t states_ = 0, before_ = 0, sums_ = 0;  // Offsets in the workspaces.
  int64_t forward_scratch_ = 0, backward_scratch_ = 0;
};

// The base of LSTM and GRU. It has the shared frame, storage for the gates and other values saved
// per step (in the reserve or, if nothing is saved, in the workspace), and gradients of gates and
// states.
class RecurrentOp : public PreparedOp {
 public:
  OpWorkspace workspace() const final { return {forward_plan_.total(), backward_plan_.total()}; }

 protected:
  RecurrentOp(const OpSpec& spec, Device& device, const RecurrentShape& shape);
  // Reserves the buffers, including workspace for the operator's own products. `extra_slots` is the
  // number of steps whose extra saved values must exist at once in a forward without a reserve.
  void PlanForward(std::initializer_list<GemmShape> own, int64_t extra_slots);
  void PlanBackward(std::initializer_list<GemmShape> own);

  float* Gates(const ForwardCall& call, int64_t direction) const;
  // Returns the other values that a direction saves per step, such as the cell states of LSTM.
  Steps Extras(const ForwardCall& call, int64_t direction) const;
  // Returns the gradient of the gates of one step.
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
