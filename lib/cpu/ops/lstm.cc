// LSTM. Of each step, backward needs the gates (after their activations), in the order of ONNX,
// and the cell:
//
//   i, o, f = sigmoid(gates), g = tanh(gate),  c = f c' + i g,  h = o tanh(c)
#include <algorithm>
#include <cstring>

#include "lib/cpu/column_sums.h"
#include "lib/cpu/families.h"
#include "lib/cpu/floats.h"
#include "lib/cpu/ops/recurrent.h"
#include "lib/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kGates = 4;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr size_t kBias = 3, kInitialState = 5, kInitialCell = 6;  // Positions of inputs.

class LstmOp final : public PreparedOp {
 public:
  LstmOp(const OpSpec& spec, const RecurrentShape& shape)
      : shape_(shape),
        frame_(spec, shape),
        has_reserve_(spec.statistic_bytes > 0),
        forward_({.m = shape.batch,
                  .n = shape.width(),
                  .k = shape.hidden,
                  .b = {.is_transposed = true},
                  .adds = true,
                  .packs_b = true}) {
    PlanForward();
    for (size_t i = 0; i < spec.inputs.size() && first_gradient_ == kNone; ++i) {
      if (spec.inputs[i].has_gradient) first_gradient_ = i;
    }
    if (first_gradient_ != kNone) PlanBackward();
  }

  OpWorkspace workspace() const override { return {forward_plan_.total(), backward_plan_.total()}; }

  void Forward(const ForwardCall& call) override {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* gates = Gates(call, d);
      frame_.Project(call, d, SumBiases(call, d), gates);
      float* packed = FloatsAt(call.workspace, packed_);
      void* scratch = FloatsAt(call.workspace, scratch_);
      forward_.Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, packed, scratch);
      const Steps states = frame_.WriteStates(call, d, StatesOffset());
      const Steps cells = Cells(call, d);
      const float* state = frame_.Initial(call.inputs, kInitialState, d);
      const float* cell = frame_.Initial(call.inputs, kInitialCell, d);
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
    if (position == first_gradient_) GoBack(call);
    const float* gates = FloatsAt(call.workspace, gate_gradients_);
    float* result = Floats(gradient);
    if (position == 0) frame_.InputGradient(call, gates, result);
    if (position == 1) frame_.WeightGradient(call, gates, result);
    if (position == 2) RecurrenceGradient(call, gates, result);
    if (position == kBias) BiasGradient(gates, result);
    if (position == kInitialState) CopyInitial(call, state_gradients_, result);
    if (position == kInitialCell) CopyInitial(call, cell_gradients_, result);
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  int64_t all_states() const { return shape_.directions * shape_.steps * shape_.state(); }
  // Of the statistic, in floats: gates, cells, states.
  int64_t CellsOffset() const { return kGates * all_states(); }
  int64_t StatesOffset() const { return (kGates + 1) * all_states(); }

  void PlanForward() {
    frame_.PlanForward(forward_plan_);
    packed_ = forward_plan_.Add(forward_.packed_bytes());
    bias_ = forward_plan_.Add(shape_.width() * kFloatBytes);
    if (!has_reserve_) {
      gates_ = forward_plan_.Add(shape_.rows() * shape_.width() * kFloatBytes);
      cells_ = forward_plan_.Add(2 * shape_.state() * kFloatBytes);
    }
    scratch_ = forward_plan_.Add(forward_.workspace());
  }

  void PlanBackward() {
    backward_ = std::make_unique<MatMulKernel>(
        MatMulShape{.m = shape_.batch, .n = shape_.hidden, .k = shape_.width(), .packs_b = true});
    recurrence_ = std::make_unique<MatMulKernel>(MatMulShape{
        .m = shape_.width(), .n = shape_.hidden, .k = shape_.rows(), .a = {.is_transposed = true}});
    WorkspacePlan& plan = backward_plan_;
    frame_.PlanBackward(plan);
    const int64_t initial = shape_.directions * shape_.state() * kFloatBytes;
    gate_gradients_ = plan.Add(shape_.directions * shape_.rows() * shape_.width() * kFloatBytes);
    state_gradients_ = plan.Add(initial);
    cell_gradients_ = plan.Add(initial);
    back_packed_ = plan.Add(backward_->packed_bytes());
    back_scratch_ = plan.Add(std::max(backward_->workspace(), recurrence_->workspace()));
  }

  float* Gates(const ForwardCall& call, int64_t direction) const {
    if (!has_reserve_) return FloatsAt(call.workspace, gates_);
    return Floats(call.statistic) + direction * shape_.rows() * shape_.width();
  }
  Steps Cells(const ForwardCall& call, int64_t direction) const {
    if (!has_reserve_) return {FloatsAt(call.workspace, cells_), shape_.state(), 2};
    return {Floats(call.statistic) + CellsOffset() + direction * shape_.steps * shape_.state(),
            shape_.state(), shape_.steps};
  }

  // Of W and of R; null where the operator has none.
  const float* SumBiases(const ForwardCall& call, int64_t direction) const {
    if (call.inputs.size() <= kBias || call.inputs[kBias] == nullptr) return nullptr;
    const float* biases = Floats(call.inputs[kBias]) + direction * 2 * shape_.width();
    float* sum = FloatsAt(call.workspace, bias_);
    for (int64_t i = 0; i < shape_.width(); ++i) sum[i] = biases[i] + biases[i + shape_.width()];
    return sum;
  }

  template <typename Body>
  void ForSamples(const Body& body) const {
    ParallelFor(shape_.batch, std::max<int64_t>(1, kGrain / 16 / shape_.hidden),
                [&](int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) body(n);
                });
  }

  // Activates the gates in place. `before`: the cell before, null for zero.
  void MakeStep(float* gates, const float* before, float* cell, float* state) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      float* input = gates + n * kGates * hidden;
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

  // Through all steps, from the last to the first. Fills the workspace with the gradients of the
  // gates before their activations, and of the initial states.
  void GoBack(const BackwardCall& call) const {
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
        GoBackStep(call, d, i, state, cell, own);
        backward_->Run(own, packed, state, scratch);
      }
    }
  }

  // The gradient of the last state or cell, zero where none arrives.
  void BeginWith(const BackwardCall& call, size_t output, int64_t direction, float* to) const {
    const bool arrives =
        output < call.output_gradients.size() && call.output_gradients[output] != nullptr;
    if (!arrives) {
      std::fill_n(to, shape_.state(), 0.0F);
      return;
    }
    const float* from = Floats(call.output_gradients[output]) + direction * shape_.state();
    std::copy_n(from, shape_.state(), to);
  }

  // `cell`: in, of the cell after the step, by the steps that follow; out, of the cell before.
  void GoBackStep(const BackwardCall& call, int64_t direction, int64_t i, const float* state,
                  float* cell, float* gradients) const {
    const int64_t t = shape_.StepOf(direction, i);
    const int64_t hidden = shape_.hidden;
    const float* saved = Floats(call.statistic);
    const float* gates = saved + (direction * shape_.steps + t) * shape_.batch * shape_.width();
    const float* cells = saved + CellsOffset() + direction * shape_.steps * shape_.state();
    const float* after = cells + t * shape_.state();
    const float* before = i > 0 ? cells + shape_.StepOf(direction, i - 1) * shape_.state()
                                : frame_.Initial(call.inputs, kInitialCell, direction);
    const float* arriving = Floats(call.output_gradients[0]);
    if (arriving != nullptr) arriving += (t * shape_.directions + direction) * shape_.state();
    ForSamples([&](int64_t n) {
      const float* gate = gates + n * kGates * hidden;
      float* to = gradients + n * kGates * hidden;
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
      const float* before =
          frame_.GatherBefore(call, d, frame_.ReadStates(call, d, StatesOffset()));
      recurrence_->Run(gates + d * shape_.rows() * shape_.width(), before,
                       gradient + d * shape_.width() * shape_.hidden,
                       FloatsAt(call.workspace, back_scratch_));
    }
  }

  void BiasGradient(const float* gates, float* gradient) const {
    const int64_t width = shape_.width();
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const float* of = gates + d * shape_.rows() * width;
      float* to = gradient + d * 2 * width;
      SumColumns(shape_.rows(), width, to,
                 [&](int64_t row, int64_t i) { return of[row * width + i]; });
      std::copy_n(to, width, to + width);
    }
  }

  void CopyInitial(const BackwardCall& call, int64_t offset, float* to) const {
    std::copy_n(FloatsAt(call.workspace, offset), shape_.directions * shape_.state(), to);
  }

  RecurrentShape shape_;
  RecurrentFrame frame_;
  bool has_reserve_;
  size_t first_gradient_ = kNone;  // Goes back through the steps, for the later positions too.
  MatMulKernel forward_;           // Adds the product of the state before with R to the gates.
  std::unique_ptr<MatMulKernel> backward_, recurrence_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t packed_ = 0, bias_ = 0, gates_ = 0, cells_ = 0, scratch_ = 0;
  int64_t gate_gradients_ = 0, state_gradients_ = 0, cell_gradients_ = 0;
  int64_t back_packed_ = 0, back_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  const Result<RecurrentShape> shape = ReadRecurrent(spec, kGates);
  if (!shape.ok()) return shape.error();
  return Guarded(spec, [&] { return std::make_unique<LstmOp>(spec, *shape); });
}

constexpr OpRow kOps[] = {
    {"LSTM", Prepare, true, "default activations, no peepholes, clipping or lengths"}};

}  // namespace

std::span<const OpRow> LstmOps() { return kOps; }

}  // namespace ckplan::cpu
