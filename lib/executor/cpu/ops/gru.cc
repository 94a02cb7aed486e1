// GRU. Backward needs, for each step, the gates (after their activations) in the order of ONNX, and
// q, the part of the candidate's input that is computed from the state:
//
//   z, r = sigmoid(gates),  h = (1 - z) n + z h'
//   n = tanh(candidate + q R),    q = r h'                 linear_before_reset = 0
//   n = tanh(candidate + r q),    q = h' R + its bias      linear_before_reset = 1
#include <algorithm>

#include "lib/executor/cpu/ops/recurrent.h"
#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kGruGates = 3;
// The products with R: one for z and r together, and one for the candidate.
struct Products {
  MatMulKernel gates, candidate;
  int64_t gates_packed = 0, candidate_packed = 0, scratch = 0;  // Offsets in the workspace.

  void Plan(WorkspacePlan& plan) {
    gates_packed = plan.Add(gates.packed_bytes());
    candidate_packed = plan.Add(candidate.packed_bytes());
    scratch = plan.Add(std::max(gates.workspace(), candidate.workspace()));
  }
  // Packs R for one direction, `recurrence`, into the workspace.
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
  const MatrixLayout in_gates = {.row_stride = kGruGates * hidden};
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
  const MatrixLayout in_gates = {.row_stride = kGruGates * hidden};
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

class GruOp final : public RecurrentOp {
 public:
  GruOp(const OpSpec& spec, const GruShape& shape)
      : RecurrentOp(spec, shape, 1),
        resets_after_(shape.resets_after),
        forward_(ForwardProducts(shape, resets_after_)) {
    forward_.Plan(forward_plan_);
    if (shape_.first_gradient.has_value()) PlanOwnBackward();
  }

  void Forward(const ForwardCall& call) override {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* gates = Gates(call, d);
      frame_.Project(call, d,
                     SumBiases(call, d, resets_after_ ? 2 * shape_.hidden : shape_.width()), gates);
      forward_.Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, shape_.hidden,
                    call.workspace);
      const Steps states = frame_.WriteStates(call, d);
      const Steps extras = Extras(call, d);
      const float* state = frame_.Initial(call.inputs, kRecurrentInitialState, d);
      const float* bias = CandidateBias(call, d);
      for (int64_t i = 0; i < shape_.steps; ++i) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        if (state != nullptr) forward_.RunGates(state, own, call.workspace);
        ActivateGates(own, state, extras.at(t));
        MakeCandidate(own, state, extras.at(t), call.workspace);
        MakeStep(own, extras.at(t), bias, state, states.at(t));
        state = states.at(t);
      }
      frame_.WriteLast(call, 1, d, states);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == shape_.first_gradient) BackwardSteps(call);
    const float* gates = FloatsAt(call.workspace, gate_gradients_);
    float* result = Floats(gradient);
    if (position == 0) frame_.InputGradient(call, gates, result);
    if (position == 1) frame_.WeightGradient(call, gates, result);
    if (position == 2) RecurrenceGradient(call, result);
    if (position == kRecurrentBias) {
      BiasGradient(call, result);
      if (resets_after_) CandidateBiasGradient(call, result);
    }
    if (position == kRecurrentInitialState) {
      CopyInitial(call, state_gradients_, result);
    }
  }

 private:
  void PlanOwnBackward() {
    PlanBackward();
    const MatrixLayout in_gates = {.is_transposed = true, .row_stride = kGruGates * shape_.hidden};
    backward_ = std::make_unique<Products>(BackwardProducts(shape_, resets_after_));
    gates_recurrence_ = std::make_unique<MatMulKernel>(ProductShape{
        .m = 2 * shape_.hidden, .n = shape_.hidden, .k = shape_.rows(), .a = in_gates});
    candidate_recurrence_ = std::make_unique<MatMulKernel>(
        ProductShape{.m = shape_.hidden,
                     .n = shape_.hidden,
                     .k = shape_.rows(),
                     .a = resets_after_ ? MatrixLayout{.is_transposed = true} : in_gates});
    WorkspacePlan& plan = backward_plan_;
    backward_->Plan(plan);
    extra_gradients_ =
        plan.Add((resets_after_ ? shape_.all_states() : shape_.state()) * kFloatBytes);
    recurrence_scratch_ =
        plan.Add(std::max(gates_recurrence_->workspace(), candidate_recurrence_->workspace()));
  }

  // Returns the part of R's bias that belongs to the candidate, which SumBiases leaves out.
  const float* CandidateBias(const ForwardCall& call, int64_t direction) const {
    if (!HasBias(call) || !resets_after_) return nullptr;
    return Floats(call.inputs[kRecurrentBias]) + (direction * 2 + 1) * shape_.width() +
           2 * shape_.hidden;
  }

  // Activates z and r; computes q = r h' if the reset is applied first. A null `state` means zero.
  void ActivateGates(float* gates, const float* state, float* extra) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      float* gate = gates + n * kGruGates * hidden;
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
      float* update = gates + n * kGruGates * hidden;
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

  // Data of one step of one direction in the backward pass.
  struct BackStep {
    const float* gates;     // Saved by forward.
    const float* extra;     // Saved by forward.
    const float* before;    // State before the step; null means zero.
    const float* arriving;  // The gradient of the step's output; null means zero.
    float* state;           // In: gradient of the state after the step. Out: before it.
    float* gate_gradients;
    float* extra_gradients;
  };

  // Runs all steps from the last to the first. Fills the workspace with the gradients of the gates
  // before their activations, of q, and of the initial state.
  void BackwardSteps(const BackwardCall& call) const {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      backward_->Pack(Floats(call.inputs[2]) + d * shape_.width() * shape_.hidden, shape_.hidden,
                      call.workspace);
      float* state = FloatsAt(call.workspace, state_gradients_) + d * shape_.state();
      BeginWith(call, 1, d, state);
      for (int64_t i = shape_.steps; i-- > 0;) {
        const BackStep step = StepAt(call, d, i, state);
        BackwardGates(step);
        if (resets_after_) {
          backward_->RunCandidate(step.extra_gradients, state, call.workspace);
        } else {
          backward_->RunCandidate(step.gate_gradients + 2 * shape_.hidden, step.extra_gradients,
                                  call.workspace);
          BackwardReset(step);
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
    const Steps states = frame_.ReadStates(call, direction);
    BackStep step = {};
    step.gates = saved + gates_at;
    step.extra = saved + shape_.extras_offset() + number * shape_.state();
    step.before = i > 0 ? states.at(shape_.StepOf(direction, i - 1))
                        : frame_.Initial(call.inputs, kRecurrentInitialState, direction);
    step.arriving = Arriving(call, direction, t);
    step.state = state;
    step.gate_gradients = FloatsAt(call.workspace, gate_gradients_) + gates_at;
    step.extra_gradients = FloatsAt(call.workspace, extra_gradients_);
    if (resets_after_) step.extra_gradients += number * shape_.state();
    return step;
  }

  // Computes the gradients of the gates, except that of r if the reset is applied first.
  void BackwardGates(const BackStep& step) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      const float* gate = step.gates + n * kGruGates * hidden;
      float* to = step.gate_gradients + n * kGruGates * hidden;
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

  // Since q = r h', the gradient of q contributes to the gradients of r and h'.
  void BackwardReset(const BackStep& step) const {
    const int64_t hidden = shape_.hidden;
    ForSamples([&](int64_t n) {
      const float* reset = step.gates + n * kGruGates * hidden + hidden;
      float* to = step.gate_gradients + n * kGruGates * hidden + hidden;
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
      const float* before = frame_.GatherBefore(call, d);
      const int64_t first = d * shape_.steps * shape_.state();
      const float* gates = FloatsAt(call.workspace, gate_gradients_) + kGruGates * first;
      float* to = gradient + d * shape_.width() * hidden;
      gates_recurrence_->Run(gates, before, to, scratch);
      if (resets_after_) {
        candidate_recurrence_->Run(FloatsAt(call.workspace, extra_gradients_) + first, before,
                                   to + 2 * hidden * hidden, scratch);
      } else {
        const float* extra = Floats(call.statistic) + shape_.extras_offset() + first;
        candidate_recurrence_->Run(gates + 2 * hidden, extra, to + 2 * hidden * hidden, scratch);
      }
    }
  }

  // If the reset is applied after the candidate's bias of R, that bias has a separate gradient.
  void CandidateBiasGradient(const BackwardCall& call, float* gradient) const {
    const int64_t width = shape_.width();
    const int64_t hidden = shape_.hidden;
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const float* extras =
          FloatsAt(call.workspace, extra_gradients_) + d * shape_.steps * shape_.state();
      SumColumns(shape_.rows(), hidden, gradient + (d * 2 + 1) * width + 2 * hidden,
                 [&](int64_t row, int64_t i) { return extras[row * hidden + i]; });
    }
  }

  bool resets_after_;
  Products forward_;
  std::unique_ptr<Products> backward_;
  std::unique_ptr<MatMulKernel> gates_recurrence_, candidate_recurrence_;
  int64_t extra_gradients_ = 0, recurrence_scratch_ = 0;  // Offsets in the workspace.
};

Result<std::unique_ptr<PreparedOp>> PrepareGru(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const GruShape shape, ReadGruShape(spec));
  return CatchDnnlErrors(spec, [&] { return std::make_unique<GruOp>(spec, shape); });
}

constexpr OpRow kGruOps[] = {{"GRU", PrepareGru}};

}  // namespace

std::span<const OpRow> GruOps() { return kGruOps; }

}  // namespace ckplan::cpu
