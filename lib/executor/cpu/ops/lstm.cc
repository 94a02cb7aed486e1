// LSTM. Backward needs, for each step, the gates (after their activations) in the order of ONNX,
// and the cell state:
//
//   i, o, f = sigmoid(gates), g = tanh(gate),  c = f c' + i g,  h = o tanh(c)
#include <algorithm>

#include "lib/executor/cpu/ops/recurrent.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kLstmGates = 4;

class LstmOp final : public RecurrentOp {
 public:
  LstmOp(const OpSpec& spec, const LstmShape& shape)
      : RecurrentOp(spec, shape, 2),
        forward_({.m = shape.batch,
                  .n = shape.width(),
                  .k = shape.hidden,
                  .b = {.is_transposed = true},
                  .adds = true,
                  .packs_b = true}) {
    packed_ = forward_plan_.Add(forward_.packed_bytes());
    scratch_ = forward_plan_.Add(forward_.workspace());
    if (shape_.first_gradient.has_value()) PlanOwnBackward();
  }

  void Forward(const ForwardCall& call) override {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* gates = Gates(call, d);
      frame_.Project(call, d, SumBiases(call, d, shape_.width()), gates);
      float* packed = FloatsAt(call.workspace, packed_);
      void* scratch = FloatsAt(call.workspace, scratch_);
      forward_.Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, packed, scratch);
      const Steps states = frame_.WriteStates(call, d);
      const Steps cells = Extras(call, d);
      const float* state = frame_.Initial(call.inputs, kRecurrentInitialState, d);
      const float* cell = frame_.Initial(call.inputs, kRecurrentInitialCell, d);
      for (int64_t i = 0; i < shape_.steps; ++i) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        if (state != nullptr) forward_.Run(state, packed, own, scratch);
        MakeStep(own, cell, cells.at(t), states.at(t));
        state = states.at(t);
        cell = cells.at(t);
      }
      frame_.WriteLast(call, 1, d, states);
      frame_.WriteLast(call, 2, d, cells);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == shape_.first_gradient) BackwardSteps(call);
    const float* gates = FloatsAt(call.workspace, gate_gradients_);
    float* result = Floats(gradient);
    if (position == 0) frame_.InputGradient(call, gates, result);
    if (position == 1) frame_.WeightGradient(call, gates, result);
    if (position == 2) RecurrenceGradient(call, gates, result);
    if (position == kRecurrentBias) BiasGradient(call, result);
    if (position == kRecurrentInitialState) CopyInitial(call, state_gradients_, result);
    if (position == kRecurrentInitialCell) CopyInitial(call, cell_gradients_, result);
  }

 private:
  void PlanOwnBackward() {
    PlanBackward();
    backward_ = std::make_unique<MatMulKernel>(
        ProductShape{.m = shape_.batch, .n = shape_.hidden, .k = shape_.width(), .packs_b = true});
    recurrence_ = std::make_unique<MatMulKernel>(ProductShape{
        .m = shape_.width(), .n = shape_.hidden, .k = shape_.rows(), .a = {.is_transposed = true}});
    WorkspacePlan& plan = backward_plan_;
    cell_gradients_ = plan.Add(shape_.directions * shape_.state() * kFloatBytes);
    back_packed_ = plan.Add(backward_->packed_bytes());
    back_scratch_ = plan.Add(std::max(backward_->workspace(), recurrence_->workspace()));
  }

  // Activates the gates in place. `before` is the cell state before the step; null means zero.
  void MakeStep(float* gates, const float* before, float* cell, float* state) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      float* input = gates + n * kLstmGates * hidden;
      float* output = input + hidden;
      float* forget = output + hidden;
      float* candidate = forget + hidden;
      for (int64_t k = 0; k < 3 * hidden; ++k) input[k] = Sigmoid(input[k]);
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        candidate[k] = Tanh(candidate[k]);
        const float kept = before == nullptr ? 0.0F : forget[k] * before[at];
        cell[at] = kept + input[k] * candidate[k];
        state[at] = output[k] * Tanh(cell[at]);
      }
    });
  }

  // Runs all steps from the last to the first. Fills the workspace with the gradients of the gates
  // before their activations, and of the initial states.
  void BackwardSteps(const BackwardCall& call) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* packed = FloatsAt(call.workspace, back_packed_);
      void* scratch = FloatsAt(call.workspace, back_scratch_);
      backward_->Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, packed, scratch);
      float* state = FloatsAt(call.workspace, state_gradients_) + d * shape_.state();
      float* cell = FloatsAt(call.workspace, cell_gradients_) + d * shape_.state();
      BeginWith(call, 1, d, state);
      BeginWith(call, 2, d, cell);
      float* gates = FloatsAt(call.workspace, gate_gradients_) + d * shape_.rows() * shape_.width();
      for (int64_t i = shape_.steps; i-- > 0;) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        BackwardStep(call, d, i, state, cell, own);
        backward_->Run(own, packed, state, scratch);
      }
    }
  }

  // On entry, `cell` is the gradient of the cell state after the step, from later steps; on return
  // it is the gradient of the cell state before the step.
  void BackwardStep(const BackwardCall& call, int64_t direction, int64_t i, const float* state,
                    float* cell, float* gradients) const {
    const int64_t t = shape_.StepOf(direction, i);
    const int64_t hidden = shape_.hidden;
    const float* saved = Floats(call.statistic);
    const float* gates = saved + (direction * shape_.steps + t) * shape_.batch * shape_.width();
    const float* cells = saved + shape_.extras_offset() + direction * shape_.steps * shape_.state();
    const float* after = cells + t * shape_.state();
    const float* before = i > 0 ? cells + shape_.StepOf(direction, i - 1) * shape_.state()
                                : frame_.Initial(call.inputs, kRecurrentInitialCell, direction);
    const float* arriving = Arriving(call, direction, t);
    ForSamples([&](int64_t n) {
      const float* gate = gates + n * kLstmGates * hidden;
      float* to = gradients + n * kLstmGates * hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        const float input = gate[k];
        const float output = gate[hidden + k];
        const float forget = gate[2 * hidden + k];
        const float candidate = gate[3 * hidden + k];
        const float bent = Tanh(after[at]);
        const float ds = state[at] + (arriving == nullptr ? 0.0F : arriving[at]);
        const float dc = cell[at] + ds * output * (1 - bent * bent);
        const float previous = before == nullptr ? 0.0F : before[at];
        to[k] = dc * candidate * input * (1 - input);
        to[hidden + k] = ds * bent * output * (1 - output);
        to[2 * hidden + k] = dc * previous * forget * (1 - forget);
        to[3 * hidden + k] = dc * input * (1 - candidate * candidate);
        cell[at] = dc * forget;
      }
    });
  }

  void RecurrenceGradient(const BackwardCall& call, const float* gates, float* gradient) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const float* before = frame_.GatherBefore(call, d);
      recurrence_->Run(gates + d * shape_.rows() * shape_.width(), before,
                       gradient + d * shape_.width() * shape_.hidden,
                       FloatsAt(call.workspace, back_scratch_));
    }
  }

  MatMulKernel forward_;  // Adds (state before the step) x R to the gates.
  std::unique_ptr<MatMulKernel> backward_, recurrence_;
  int64_t packed_ = 0, scratch_ = 0;  // Offsets in the workspaces.
  int64_t cell_gradients_ = 0, back_packed_ = 0, back_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> PrepareLstm(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const LstmShape shape, ReadLstmShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<LstmOp>(spec, shape); });
}

constexpr OpRow kLstmOps[] = {{"LSTM", PrepareLstm}};

}  // namespace

std::span<const OpRow> LstmOps() { return kLstmOps; }

}  // namespace ckplan::cpu
