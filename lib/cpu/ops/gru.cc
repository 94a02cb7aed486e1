// GRU. Of each step, backward needs the gates (after their activations), in the order of ONNX, and
// what went into the candidate beside the input, q:
//
//   z, r = sigmoid(gates),  h = (1 - z) n + z h'
//   n = tanh(candidate + q R),    q = r h'                 linear_before_reset = 0
//   n = tanh(candidate + r q),    q = h' R + its bias      linear_before_reset = 1
#include <algorithm>
#include <cstring>

#include "lib/cpu/column_sums.h"
#include "lib/cpu/families.h"
#include "lib/cpu/floats.h"
#include "lib/cpu/ops/recurrent.h"
#include "lib/cpu/vector_math.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kGates = 3;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr size_t kBias = 3, kInitialState = 5;  // Positions of inputs.

// The products with R, for z and r together and for the candidate.
struct Products {
  MatMulKernel gates, candidate;
  int64_t gates_packed = 0, candidate_packed = 0, scratch = 0;  // Offsets in the workspace.

  void Plan(WorkspacePlan& plan) {
    gates_packed = plan.Add(gates.packed_bytes());
    candidate_packed = plan.Add(candidate.packed_bytes());
    scratch = plan.Add(std::max(gates.workspace(), candidate.workspace()));
  }
  // `recurrence`: R of one direction.
  void Pack(const float* recurrence, int64_t hidden, void* workspace) const {
    float* scratch_at = FloatsAt(workspace, scratch);
    gates.Pack(recurrence, FloatsAt(workspace, gates_packed), scratch_at);
    candidate.Pack(recurrence + 2 * hidden * hidden, FloatsAt(workspace, candidate_packed),
                   scratch_at);
  }
  void RunGates(const float* a, float* c, void* workspace) const {
    gates.Run(a, FloatsAt(workspace, gates_packed), c, FloatsAt(workspace, scratch));
  }
  void RunCandidate(const float* a, float* c, void* workspace) const {
    candidate.Run(a, FloatsAt(workspace, candidate_packed), c, FloatsAt(workspace, scratch));
  }
};

Products ForwardProducts(const RecurrentShape& shape, bool resets_after) {
  const int64_t hidden = shape.hidden;
  const MatrixLayout in_gates = {.row_stride = kGates * hidden};
  const MatrixLayout transposed = {.is_transposed = true};
  return {MatMulKernel({.m = shape.batch,
                        .n = 2 * hidden,
                        .k = hidden,
                        .b = transposed,
                        .c = in_gates,
                        .adds = true,
                        .packs_b = true}),
          MatMulKernel({.m = shape.batch,
                        .n = hidden,
                        .k = hidden,
                        .b = transposed,
                        .c = resets_after ? MatrixLayout{} : in_gates,
                        .adds = !resets_after,
                        .packs_b = true})};
}

Products BackwardProducts(const RecurrentShape& shape, bool resets_after) {
  const int64_t hidden = shape.hidden;
  const MatrixLayout in_gates = {.row_stride = kGates * hidden};
  return {MatMulKernel({.m = shape.batch,
                        .n = hidden,
                        .k = 2 * hidden,
                        .a = in_gates,
                        .adds = true,
                        .packs_b = true}),
          MatMulKernel({.m = shape.batch,
                        .n = hidden,
                        .k = hidden,
                        .a = resets_after ? MatrixLayout{} : in_gates,
                        .adds = resets_after,
                        .packs_b = true})};
}

class GruOp final : public PreparedOp {
 public:
  GruOp(const OpSpec& spec, const RecurrentShape& shape)
      : shape_(shape),
        frame_(spec, shape),
        has_reserve_(spec.statistic_bytes > 0),
        resets_after_(spec.Int("linear_before_reset", 0) != 0),
        forward_(ForwardProducts(shape, resets_after_)) {
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
      forward_.Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, shape_.hidden,
                    call.workspace);
      const Steps states = frame_.WriteStates(call, d, StatesOffset());
      const Steps extras = Extras(call, d);
      const float* state = frame_.Initial(call.inputs, kInitialState, d);
      const float* bias = CandidateBias(call, d);
      for (int64_t i = 0; i < shape_.steps; ++i) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        if (state != nullptr) forward_.RunGates(state, own, call.workspace);
        OpenGates(own, state, extras.at(t));
        MakeCandidate(own, state, extras.at(t), call.workspace);
        MakeStep(own, extras.at(t), bias, state, states.at(t));
        state = states.at(t);
      }
      frame_.WriteLast(call, 1, d, states);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == first_gradient_) GoBack(call);
    const float* gates = FloatsAt(call.workspace, gate_gradients_);
    float* result = Floats(gradient);
    if (position == 0) frame_.InputGradient(call, gates, result);
    if (position == 1) frame_.WeightGradient(call, gates, result);
    if (position == 2) RecurrenceGradient(call, result);
    if (position == kBias) BiasGradient(call, result);
    if (position == kInitialState) {
      std::copy_n(FloatsAt(call.workspace, state_gradients_), shape_.directions * shape_.state(),
                  result);
    }
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  int64_t all_states() const { return shape_.directions * shape_.steps * shape_.state(); }
  // Of the statistic, in floats: gates, extras (q), states.
  int64_t ExtrasOffset() const { return kGates * all_states(); }
  int64_t StatesOffset() const { return (kGates + 1) * all_states(); }

  void PlanForward() {
    frame_.PlanForward(forward_plan_);
    forward_.Plan(forward_plan_);
    bias_ = forward_plan_.Add(shape_.width() * kFloatBytes);
    if (has_reserve_) return;
    gates_ = forward_plan_.Add(shape_.rows() * shape_.width() * kFloatBytes);
    extras_ = forward_plan_.Add(shape_.state() * kFloatBytes);
  }

  void PlanBackward() {
    const MatrixLayout in_gates = {.is_transposed = true, .row_stride = kGates * shape_.hidden};
    backward_ = std::make_unique<Products>(BackwardProducts(shape_, resets_after_));
    gates_recurrence_ = std::make_unique<MatMulKernel>(
        MatMulShape{.m = 2 * shape_.hidden, .n = shape_.hidden, .k = shape_.rows(), .a = in_gates});
    candidate_recurrence_ = std::make_unique<MatMulKernel>(
        MatMulShape{.m = shape_.hidden,
                    .n = shape_.hidden,
                    .k = shape_.rows(),
                    .a = resets_after_ ? MatrixLayout{.is_transposed = true} : in_gates});
    WorkspacePlan& plan = backward_plan_;
    frame_.PlanBackward(plan);
    backward_->Plan(plan);
    gate_gradients_ = plan.Add(shape_.directions * shape_.rows() * shape_.width() * kFloatBytes);
    state_gradients_ = plan.Add(shape_.directions * shape_.state() * kFloatBytes);
    extra_gradients_ = plan.Add((resets_after_ ? all_states() : shape_.state()) * kFloatBytes);
    recurrence_scratch_ =
        plan.Add(std::max(gates_recurrence_->workspace(), candidate_recurrence_->workspace()));
  }

  float* Gates(const ForwardCall& call, int64_t direction) const {
    if (!has_reserve_) return FloatsAt(call.workspace, gates_);
    return Floats(call.statistic) + direction * shape_.rows() * shape_.width();
  }
  Steps Extras(const ForwardCall& call, int64_t direction) const {
    if (!has_reserve_) return {FloatsAt(call.workspace, extras_), shape_.state(), 1};
    return {Floats(call.statistic) + ExtrasOffset() + direction * shape_.steps * shape_.state(),
            shape_.state(), shape_.steps};
  }

  static bool HasBias(const ForwardCall& call) {
    return call.inputs.size() > kBias && call.inputs[kBias] != nullptr;
  }
  // Of W and of R, but of R's candidate where the reset comes after its bias. Null for none.
  const float* SumBiases(const ForwardCall& call, int64_t direction) const {
    if (!HasBias(call)) return nullptr;
    const float* biases = Floats(call.inputs[kBias]) + direction * 2 * shape_.width();
    float* sum = FloatsAt(call.workspace, bias_);
    const int64_t both = resets_after_ ? 2 * shape_.hidden : shape_.width();
    for (int64_t i = 0; i < shape_.width(); ++i) {
      sum[i] = biases[i] + (i < both ? biases[i + shape_.width()] : 0.0F);
    }
    return sum;
  }
  // The part that SumBiases leaves out.
  const float* CandidateBias(const ForwardCall& call, int64_t direction) const {
    if (!HasBias(call) || !resets_after_) return nullptr;
    return Floats(call.inputs[kBias]) + (direction * 2 + 1) * shape_.width() + 2 * shape_.hidden;
  }

  template <typename Body>
  void ForSamples(const Body& body) const {
    ParallelFor(shape_.batch, std::max<int64_t>(1, kGrain / 16 / shape_.hidden),
                [&](int64_t begin, int64_t end) {
                  for (int64_t n = begin; n < end; ++n) body(n);
                });
  }

  // Activates z and r; q = r h' where the reset comes first. `state`: null for zero.
  void OpenGates(float* gates, const float* state, float* extra) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      float* gate = gates + n * kGates * hidden;
      for (int64_t k = 0; k < 2 * hidden; ++k) gate[k] = Sigmoid(gate[k]);
      if (resets_after_) return;
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        extra[at] = state == nullptr ? 0.0F : gate[hidden + k] * state[at];
      }
    });
  }

  void MakeCandidate(float* gates, const float* state, float* extra, void* workspace) const {
    if (resets_after_ && state == nullptr) {
      std::fill_n(extra, shape_.state(), 0.0F);
    } else if (resets_after_) {
      forward_.RunCandidate(state, extra, workspace);
    } else if (state != nullptr) {
      forward_.RunCandidate(extra, gates + 2 * shape_.hidden, workspace);
    }
  }

  void MakeStep(float* gates, float* extra, const float* bias, const float* before,
                float* state) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      float* update = gates + n * kGates * hidden;
      const float* reset = update + hidden;
      float* candidate = update + 2 * hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        if (resets_after_) {
          if (bias != nullptr) extra[at] += bias[k];
          candidate[k] += reset[k] * extra[at];
        }
        candidate[k] = Tanh(candidate[k]);
        const float kept = before == nullptr ? 0.0F : update[k] * before[at];
        state[at] = (1 - update[k]) * candidate[k] + kept;
      }
    });
  }

  // One step of one direction, going back.
  struct BackStep {
    const float* gates;     // Saved.
    const float* extra;     // Saved.
    const float* before;    // The state before; null for zero.
    const float* arriving;  // The gradient of the step's output; null for zero.
    float* state;           // The gradient of the state after, then of the state before.
    float* gate_gradients;
    float* extra_gradients;
  };

  // Through all steps, from the last to the first. Fills the workspace with the gradients of the
  // gates before their activations, of q, and of the initial state.
  void GoBack(const BackwardCall& call) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      backward_->Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, shape_.hidden,
                      call.workspace);
      float* state = FloatsAt(call.workspace, state_gradients_) + d * shape_.state();
      const auto& arriving = call.output_gradients;
      if (arriving.size() > 1 && arriving[1] != nullptr) {
        std::copy_n(Floats(arriving[1]) + d * shape_.state(), shape_.state(), state);
      } else {
        std::fill_n(state, shape_.state(), 0.0F);
      }
      for (int64_t i = shape_.steps; i-- > 0;) {
        const BackStep step = StepAt(call, d, i, state);
        CloseGates(step);
        if (resets_after_) {
          backward_->RunCandidate(step.extra_gradients, state, call.workspace);
        } else {
          backward_->RunCandidate(step.gate_gradients + 2 * shape_.hidden, step.extra_gradients,
                                  call.workspace);
          PassReset(step);
        }
        backward_->RunGates(step.gate_gradients, state, call.workspace);
      }
    }
  }

  BackStep StepAt(const BackwardCall& call, int64_t direction, int64_t i, float* state) const {
    const int64_t t = shape_.StepOf(direction, i);
    const int64_t number = direction * shape_.steps + t;
    const int64_t gates_at = number * shape_.batch * shape_.width();
    const float* saved = Floats(call.statistic);
    const Steps states = frame_.ReadStates(call, direction, StatesOffset());
    BackStep step = {};
    step.gates = saved + gates_at;
    step.extra = saved + ExtrasOffset() + number * shape_.state();
    step.before = i > 0 ? states.at(shape_.StepOf(direction, i - 1))
                        : frame_.Initial(call.inputs, kInitialState, direction);
    step.arriving = Floats(call.output_gradients[0]);
    if (step.arriving != nullptr) {
      step.arriving += (t * shape_.directions + direction) * shape_.state();
    }
    step.state = state;
    step.gate_gradients = FloatsAt(call.workspace, gate_gradients_) + gates_at;
    step.extra_gradients = FloatsAt(call.workspace, extra_gradients_);
    if (resets_after_) step.extra_gradients += number * shape_.state();
    return step;
  }

  // All but the gradient of r where the reset comes first.
  void CloseGates(const BackStep& step) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      const float* gate = step.gates + n * kGates * hidden;
      float* to = step.gate_gradients + n * kGates * hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        const float update = gate[k];
        const float reset = gate[hidden + k];
        const float candidate = gate[2 * hidden + k];
        const float ds = step.state[at] + (step.arriving == nullptr ? 0.0F : step.arriving[at]);
        const float before = step.before == nullptr ? 0.0F : step.before[at];
        const float dn = ds * (1 - update) * (1 - candidate * candidate);
        to[k] = ds * (before - candidate) * update * (1 - update);
        to[2 * hidden + k] = dn;
        step.state[at] = ds * update;
        if (!resets_after_) continue;
        to[hidden + k] = dn * step.extra[at] * reset * (1 - reset);
        step.extra_gradients[at] = dn * reset;
      }
    });
  }

  // q = r h': its gradient goes to both.
  void PassReset(const BackStep& step) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      const float* reset = step.gates + n * kGates * hidden + hidden;
      float* to = step.gate_gradients + n * kGates * hidden + hidden;
      for (int64_t k = 0; k < hidden; ++k) {
        const int64_t at = n * hidden + k;
        const float before = step.before == nullptr ? 0.0F : step.before[at];
        to[k] = step.extra_gradients[at] * before * reset[k] * (1 - reset[k]);
        step.state[at] += step.extra_gradients[at] * reset[k];
      }
    });
  }

  void RecurrenceGradient(const BackwardCall& call, float* gradient) const {
    const int64_t hidden = shape_.hidden;
    void* scratch = FloatsAt(call.workspace, recurrence_scratch_);
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const float* before =
          frame_.GatherBefore(call, d, frame_.ReadStates(call, d, StatesOffset()));
      const int64_t first = d * shape_.steps * shape_.state();
      const float* gates = FloatsAt(call.workspace, gate_gradients_) + kGates * first;
      float* to = gradient + d * shape_.width() * hidden;
      gates_recurrence_->Run(gates, before, to, scratch);
      if (resets_after_) {
        candidate_recurrence_->Run(FloatsAt(call.workspace, extra_gradients_) + first, before,
                                   to + 2 * hidden * hidden, scratch);
      } else {
        const float* extra = Floats(call.statistic) + ExtrasOffset() + first;
        candidate_recurrence_->Run(gates + 2 * hidden, extra, to + 2 * hidden * hidden, scratch);
      }
    }
  }

  void BiasGradient(const BackwardCall& call, float* gradient) const {
    const int64_t width = shape_.width();
    const int64_t hidden = shape_.hidden;
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const int64_t first = d * shape_.steps * shape_.state();
      const float* gates = FloatsAt(call.workspace, gate_gradients_) + kGates * first;
      float* to = gradient + d * 2 * width;
      SumColumns(shape_.rows(), width, to,
                 [&](int64_t row, int64_t i) { return gates[row * width + i]; });
      std::copy_n(to, width, to + width);
      if (!resets_after_) continue;
      const float* extras = FloatsAt(call.workspace, extra_gradients_) + first;
      SumColumns(shape_.rows(), hidden, to + width + 2 * hidden,
                 [&](int64_t row, int64_t i) { return extras[row * hidden + i]; });
    }
  }

  RecurrentShape shape_;
  RecurrentFrame frame_;
  bool has_reserve_;
  bool resets_after_;
  size_t first_gradient_ = kNone;  // Goes back through the steps, for the later positions too.
  Products forward_;
  std::unique_ptr<Products> backward_;
  std::unique_ptr<MatMulKernel> gates_recurrence_, candidate_recurrence_;
  WorkspacePlan forward_plan_, backward_plan_;
  int64_t bias_ = 0, gates_ = 0, extras_ = 0;
  int64_t gate_gradients_ = 0, state_gradients_ = 0, extra_gradients_ = 0, recurrence_scratch_ = 0;
};

Result<std::unique_ptr<PreparedOp>> Prepare(const OpSpec& spec) {
  const Result<RecurrentShape> shape = ReadRecurrent(spec, kGates);
  if (!shape.ok()) return shape.error();
  return Guarded(spec, [&] { return std::make_unique<GruOp>(spec, *shape); });
}

constexpr OpRow kOps[] = {{"GRU", Prepare, true, "default activations, no clipping or lengths"}};

}  // namespace

std::span<const OpRow> GruOps() { return kOps; }

}  // namespace ckplan::cpu
