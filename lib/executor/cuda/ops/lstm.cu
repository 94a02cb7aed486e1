// LSTM. Backward needs, for each step, the gates (after their activations) in the order of ONNX,
// and the cell state:
//
//   i, o, f = sigmoid(gates), g = tanh(gate),  c = f c' + i g,  h = o tanh(c)
#include <memory>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/ops/recurrent.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cuda {

namespace {

constexpr int64_t kLstmGates = 4;

// Activates the gates of a step in place. `before` is the cell state before the step; null means
// zero.
void MakeStep(Device& device, const RecurrentShape& shape, float* gates, FloatsIn before,
              float* cells, FloatsOut states) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    float* gate = gates + at + divider.Quotient(at) * (kLstmGates - 1) * hidden;
    const float input = Sigmoid(gate[0]);
    const float output = Sigmoid(gate[hidden]);
    const float forget = Sigmoid(gate[2 * hidden]);
    const float candidate = Tanh(gate[3 * hidden]);
    const float cell = (before.is_null() ? 0.0F : forget * before[at]) + input * candidate;
    gate[0] = input;
    gate[hidden] = output;
    gate[2 * hidden] = forget;
    gate[3 * hidden] = candidate;
    cells[at] = cell;
    states.Set(at, output * Tanh(cell));
  });
}

// Data of one step of one direction in the backward pass.
struct LstmBackStep {
  const float* gates;        // Saved by forward.
  const float* after;        // The cell state after the step.
  FloatsIn before;           // The cell state before the step; null means zero.
  FloatsIn arriving;         // The gradient of the step's output; null means zero.
  const float* state;        // The state's gradient from later steps.
  float* cell;               // In: gradient of the cell state after the step. Out: before it.
  FloatsOut gate_gradients;  // With respect to gates before activation.
};

void BackwardStep(Device& device, const RecurrentShape& shape, const LstmBackStep& step) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    const int64_t first = at + divider.Quotient(at) * (kLstmGates - 1) * hidden;
    const float* gate = step.gates + first;
    const float input = gate[0];
    const float output = gate[hidden];
    const float forget = gate[2 * hidden];
    const float candidate = gate[3 * hidden];
    const float bent = Tanh(step.after[at]);
    const float ds = step.state[at] + (step.arriving.is_null() ? 0.0F : step.arriving[at]);
    const float dc = step.cell[at] + ds * output * (1 - bent * bent);
    const float previous = step.before.is_null() ? 0.0F : step.before[at];
    const FloatsOut& to = step.gate_gradients;
    to.Set(first, dc * candidate * input * (1 - input));
    to.Set(first + hidden, ds * bent * output * (1 - output));
    to.Set(first + 2 * hidden, dc * previous * forget * (1 - forget));
    to.Set(first + 3 * hidden, dc * input * (1 - candidate * candidate));
    step.cell[at] = dc * forget;
  });
}

class LstmOp final : public RecurrentOp {
 public:
  LstmOp(const OpSpec& spec, Device& device, const LstmShape& shape)
      : RecurrentOp(spec, device, shape), recurrence_type_(spec.input(2).type) {
    PlanOwnForward();
    if (shape_.first_gradient.has_value()) PlanOwnBackward();
  }

  void Forward(const ForwardCall& call) override {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* gates = Gates(call, d);
      frame_.Project(call, d, shape_.width(), gates);
      const void* recurrence = frame_.ForwardRecurrence(call, d);
      const Steps states = frame_.WriteStates(call, d);
      const Steps cells = Extras(call, d);
      const void* state = frame_.ForwardInitial(call, d);
      FloatsIn cell = frame_.Initial(call.inputs, kRecurrentInitialCell, d);
      for (int64_t i = 0; i < shape_.steps; ++i) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        auto* after = static_cast<float*>(cells.at(t));
        if (state != nullptr) frame_.MultiplyForward(call, forward_, state, recurrence, own);
        MakeStep(device_, shape_, own, cell, after, FloatsOut(states.at(t), states.type));
        state = states.at(t);
        cell = FloatsIn(after, ElementType::kFloat32);
      }
      frame_.WriteLast(call, 1, d, states);
      frame_.WriteLast(call, 2, d, cells);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == shape_.first_gradient) BackwardSteps(call);
    const void* gates = BufferAt(call.workspace, gate_gradients_);
    if (position == 0) frame_.InputGradient(call, gates, gradient);
    if (position == 1) frame_.WeightGradient(call, gates, gradient);
    if (position == 2) RecurrenceGradient(call, gradient);
    if (position == kRecurrentBias) frame_.BiasGradient(call, gates, gradient);
    if (position == kRecurrentInitialState) {
      frame_.WriteInitial(position, FloatsAt(call.workspace, state_gradients_), gradient);
    }
    if (position == kRecurrentInitialCell) {
      frame_.WriteInitial(position, FloatsAt(call.workspace, cell_gradients_), gradient);
    }
  }

 private:
  void PlanOwnForward() {
    const int64_t hidden = shape_.hidden;
    forward_ = GemmOf(shape_.batch, shape_.width(), hidden, RowsView(frame_.state_type(), hidden),
                      ColumnsView(frame_.state_type(), hidden),
                      RowsView(ElementType::kFloat32, shape_.width()), true);
    PlanForward({forward_}, 2);
  }

  void PlanOwnBackward() {
    const ElementType type = frame_.type();
    const int64_t hidden = shape_.hidden;
    const int64_t width = shape_.width();
    backward_ = GemmOf(shape_.batch, hidden, width, RowsView(type, width), RowsView(type, hidden),
                       RowsView(ElementType::kFloat32, hidden));
    recurrence_ = GemmOf(width, hidden, shape_.rows(), ColumnsView(type, width),
                         RowsView(type, hidden), RowsView(recurrence_type_, hidden));
    PlanBackward({backward_, recurrence_});
    cell_gradients_ = backward_plan_.AddFloats(shape_.directions * shape_.state());
  }

  // Runs all steps from the last to the first. Fills the workspace with the gradients of the gates
  // before their activations, and of the initial states.
  void BackwardSteps(const BackwardCall& call) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const void* recurrence = frame_.BackwardRecurrence(call, d);
      float* state = FloatsAt(call.workspace, state_gradients_) + d * shape_.state();
      float* cell = FloatsAt(call.workspace, cell_gradients_) + d * shape_.state();
      frame_.BeginWith(call, 1, d, state);
      frame_.BeginWith(call, 2, d, cell);
      for (int64_t i = shape_.steps; i-- > 0;) {
        void* own = GateGradients(call, d, shape_.StepOf(d, i));
        LstmBackStep step = StepAt(call, d, i);
        step.state = state;
        step.cell = cell;
        step.gate_gradients = FloatsOut(own, frame_.type());
        BackwardStep(device_, shape_, step);
        frame_.MultiplyBackward(call, backward_, own, recurrence, state);
      }
    }
  }

  LstmBackStep StepAt(const BackwardCall& call, int64_t direction, int64_t i) const {
    const int64_t t = shape_.StepOf(direction, i);
    const auto* saved = static_cast<const float*>(call.statistic);
    const float* cells = saved + shape_.extras_offset() + direction * shape_.steps * shape_.state();
    LstmBackStep step = {};
    step.gates = saved + (direction * shape_.steps + t) * shape_.batch * shape_.width();
    step.after = cells + t * shape_.state();
    step.before = i > 0 ? FloatsIn(cells + shape_.StepOf(direction, i - 1) * shape_.state(),
                                   ElementType::kFloat32)
                        : frame_.Initial(call.inputs, kRecurrentInitialCell, direction);
    step.arriving = frame_.Arriving(call, direction, t);
    return step;
  }

  void RecurrenceGradient(const BackwardCall& call, void* gradient) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const void* before = frame_.GatherBefore(call, d);
      frame_.MultiplyBackward(call, recurrence_, GateGradients(call, d, 0), before,
                              From(gradient, recurrence_type_, d * shape_.width() * shape_.hidden));
    }
  }

  ElementType recurrence_type_;
  GemmShape forward_;  // Adds (state before the step) x R to the gates.
  GemmShape backward_, recurrence_;
  int64_t cell_gradients_ = 0;  // Offset in the workspace.
};

Result<std::unique_ptr<PreparedOp>> PrepareLstm(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const LstmShape shape, ReadLstmShape(spec));
  return Prepared<LstmOp>(spec, device, shape);
}

constexpr OpRow kLstmOps[] = {{"LSTM", PrepareLstm}};

}  // namespace

std::span<const OpRow> LstmOps() { return kLstmOps; }

}  // namespace ckplan::cuda
