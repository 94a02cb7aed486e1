// GRU. Backward needs, for each step, the gates (after their activations) in the order of ONNX, and
// q, the part of the candidate's input that is computed from the state:
//
//   z, r = sigmoid(gates),  h = (1 - z) n + z h'
//   n = tanh(candidate + q R),    q = r h'                 linear_before_reset = 0
//   n = tanh(candidate + r q),    q = h' R + its bias      linear_before_reset = 1
#include <memory>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/ops/recurrent.h"
#include "lib/executor/cuda/registry.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan::cuda {

namespace {

constexpr int64_t kGruGates = 3;
constexpr ElementType kFloat = ElementType::kFloat32;

// Activates z and r and computes q = r h', for a step where the reset is applied first. `before` is
// the state; null means zero. `factor`, if not null, receives q in the type of product factors.
void ActivateGates(Device& device, const RecurrentShape& shape, float* gates, FloatsIn before,
                   float* extra, FloatsOut factor) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    float* gate = gates + at + divider.Quotient(at) * (kGruGates - 1) * hidden;
    const float reset = Sigmoid(gate[hidden]);
    gate[0] = Sigmoid(gate[0]);
    gate[hidden] = reset;
    const float q = before.is_null() ? 0.0F : reset * before[at];
    extra[at] = q;
    if (!factor.is_null()) factor.Set(at, q);
  });
}

// Computes the new state from the activated gates, for a step where the reset is applied first.
void FinishResetFirst(Device& device, const RecurrentShape& shape, float* gates, FloatsIn before,
                      FloatsOut states) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    float* gate = gates + at + divider.Quotient(at) * (kGruGates - 1) * hidden;
    const float update = gate[0];
    const float candidate = Tanh(gate[2 * hidden]);
    gate[2 * hidden] = candidate;
    states.Set(at, (1 - update) * candidate + (before.is_null() ? 0.0F : update * before[at]));
  });
}

// Computes the new state, for a step where the reset is applied last. `extra` is the product of the
// state with R, to which `bias` is added. Without a previous state the product is zero, and is
// written here.
void FinishResetLast(Device& device, const RecurrentShape& shape, float* gates, float* extra,
                     FloatsIn bias, FloatsIn before, FloatsOut states) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    int64_t k = at;
    float* gate = gates + at + divider.Split(k) * (kGruGates - 1) * hidden;
    const float q = (before.is_null() ? 0.0F : extra[at]) + (bias.is_null() ? 0.0F : bias[k]);
    const float update = Sigmoid(gate[0]);
    const float reset = Sigmoid(gate[hidden]);
    const float candidate = Tanh(gate[2 * hidden] + reset * q);
    extra[at] = q;
    gate[0] = update;
    gate[hidden] = reset;
    gate[2 * hidden] = candidate;
    states.Set(at, (1 - update) * candidate + (before.is_null() ? 0.0F : update * before[at]));
  });
}

// Data of one step of one direction in the backward pass.
struct GruBackStep {
  const float* gates;        // Saved by forward.
  const float* extra;        // Saved by forward.
  FloatsIn before;           // State before the step; null means zero.
  FloatsIn arriving;         // The gradient of the step's output; null means zero.
  float* state;              // In: gradient of the state after the step. Out: before it.
  FloatsOut gate_gradients;  // With respect to gates before activation.
  FloatsOut extra_gradients;
};

// Computes the gradients of the gates, except that of r if the reset is applied first.
void BackwardGates(Device& device, const RecurrentShape& shape, bool resets_after,
                   const GruBackStep& step) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    const int64_t first = at + divider.Quotient(at) * (kGruGates - 1) * hidden;
    const float update = step.gates[first];
    const float reset = step.gates[first + hidden];
    const float candidate = step.gates[first + 2 * hidden];
    const float ds = step.state[at] + (step.arriving.is_null() ? 0.0F : step.arriving[at]);
    const float before = step.before.is_null() ? 0.0F : step.before[at];
    const float dn = ds * (1 - update) * (1 - candidate * candidate);
    step.gate_gradients.Set(first, ds * (before - candidate) * update * (1 - update));
    step.gate_gradients.Set(first + 2 * hidden, dn);
    step.state[at] = ds * update;
    if (resets_after) {
      step.gate_gradients.Set(first + hidden, dn * step.extra[at] * reset * (1 - reset));
      step.extra_gradients.Set(at, dn * reset);
    }
  });
}

// Since q = r h', the gradient of q contributes to the gradients of r and h'.
void PassReset(Device& device, const RecurrentShape& shape, const GruBackStep& step) {
  const int64_t hidden = shape.hidden;
  const Divider divider(hidden);
  ForEach(device, shape.state(), [=] CKPLAN_KERNEL(int64_t at) {
    const int64_t first = at + divider.Quotient(at) * (kGruGates - 1) * hidden + hidden;
    const float reset = step.gates[first];
    const float before = step.before.is_null() ? 0.0F : step.before[at];
    const float dq = step.extra_gradients[at];
    step.gate_gradients.Set(first, dq * before * reset * (1 - reset));
    step.state[at] += dq * reset;
  });
}

class GruOp final : public RecurrentOp {
 public:
  GruOp(const OpSpec& spec, Device& device, const GruShape& shape)
      : RecurrentOp(spec, device, shape),
        resets_after_(shape.resets_after),
        recurrence_type_(spec.input(2).type),
        bias_type_(spec.input(kRecurrentBias).type) {
    PlanOwnForward();
    if (shape_.first_gradient.has_value()) PlanOwnBackward();
  }

  void Forward(const ForwardCall& call) override {
    for (int64_t d = 0; d < shape_.directions; ++d) {
      float* gates = Gates(call, d);
      frame_.Project(call, d, resets_after_ ? 2 * shape_.hidden : shape_.width(), gates);
      const void* recurrence = frame_.ForwardRecurrence(call, d);
      const Steps states = frame_.WriteStates(call, d);
      const Steps extras = Extras(call, d);
      const void* before = frame_.ForwardInitial(call, d);
      for (int64_t i = 0; i < shape_.steps; ++i) {
        const int64_t t = shape_.StepOf(d, i);
        float* own = gates + t * shape_.batch * shape_.width();
        auto* extra = static_cast<float*>(extras.at(t));
        if (before != nullptr) {
          frame_.MultiplyForward(call, forward_gates_, before, recurrence, own);
        }
        if (resets_after_) {
          StepResetLast(call, d, recurrence, before, own, extra, states.at(t));
        } else {
          StepResetFirst(call, recurrence, before, own, extra, states.at(t));
        }
        before = states.at(t);
      }
      frame_.WriteLast(call, 1, d, states);
    }
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    if (position == shape_.first_gradient) BackwardSteps(call);
    const void* gates = BufferAt(call.workspace, gate_gradients_);
    if (position == 0) frame_.InputGradient(call, gates, gradient);
    if (position == 1) frame_.WeightGradient(call, gates, gradient);
    if (position == 2) RecurrenceGradient(call, gradient);
    if (position == kRecurrentBias) BiasGradient(call, gradient);
    if (position == kRecurrentInitialState) {
      frame_.WriteInitial(position, FloatsAt(call.workspace, state_gradients_), gradient);
    }
  }

 private:
  void PlanOwnForward() {
    const ElementType type = frame_.state_type();
    const int64_t hidden = shape_.hidden;
    const MatrixView states = RowsView(type, hidden);
    const MatrixView weights = ColumnsView(type, hidden);
    const MatrixView in_gates = RowsView(kFloat, shape_.width());
    forward_gates_ = GemmOf(shape_.batch, 2 * hidden, hidden, states, weights, in_gates, true);
    forward_candidate_ =
        GemmOf(shape_.batch, hidden, hidden, states, weights,
               resets_after_ ? RowsView(kFloat, hidden) : in_gates, !resets_after_);
    PlanForward({forward_gates_, forward_candidate_}, 1);
    if (resets_after_ || type == kFloat) return;
    factor_ = forward_plan_.Add(shape_.state() * SizeOf(type));
  }

  void PlanOwnBackward() {
    const ElementType type = frame_.type();
    const int64_t hidden = shape_.hidden;
    const int64_t width = shape_.width();
    const MatrixView states = RowsView(kFloat, hidden);
    const MatrixView weights = RowsView(type, hidden);
    const MatrixView gradient = RowsView(recurrence_type_, hidden);
    backward_gates_ =
        GemmOf(shape_.batch, hidden, 2 * hidden, RowsView(type, width), weights, states, true);
    backward_candidate_ =
        GemmOf(shape_.batch, hidden, hidden, RowsView(type, resets_after_ ? hidden : width),
               weights, states, resets_after_);
    gates_recurrence_ = GemmOf(2 * hidden, hidden, shape_.rows(), ColumnsView(type, width),
                               RowsView(type, hidden), gradient);
    candidate_recurrence_ =
        GemmOf(hidden, hidden, shape_.rows(), ColumnsView(type, resets_after_ ? hidden : width),
               RowsView(type, hidden), gradient);
    PlanBackward({backward_gates_, backward_candidate_, gates_recurrence_, candidate_recurrence_});
    extra_gradients_ = resets_after_ ? backward_plan_.Add(shape_.all_states() * SizeOf(type))
                                     : backward_plan_.AddFloats(shape_.state());
  }

  // Returns the candidate's part of R; `recurrence` is R of one direction.
  const void* CandidateOf(const void* recurrence, ElementType type) const {
    return From(recurrence, type, 2 * shape_.hidden * shape_.hidden);
  }

  void StepResetFirst(const ForwardCall& call, const void* recurrence, const void* before,
                      float* gates, float* extra, void* state) const {
    const ElementType type = frame_.state_type();
    void* factor = type == kFloat ? nullptr : BufferAt(call.workspace, factor_);
    ActivateGates(device_, shape_, gates, FloatsIn(before, type), extra, FloatsOut(factor, type));
    if (before != nullptr) {
      frame_.MultiplyForward(call, forward_candidate_, factor == nullptr ? extra : factor,
                             CandidateOf(recurrence, type), gates + 2 * shape_.hidden);
    }
    FinishResetFirst(device_, shape_, gates, FloatsIn(before, type), FloatsOut(state, type));
  }

  void StepResetLast(const ForwardCall& call, int64_t direction, const void* recurrence,
                     const void* before, float* gates, float* extra, void* state) const {
    const ElementType type = frame_.state_type();
    if (before != nullptr) {
      frame_.MultiplyForward(call, forward_candidate_, before, CandidateOf(recurrence, type),
                             extra);
    }
    FinishResetLast(device_, shape_, gates, extra, CandidateBias(call, direction),
                    FloatsIn(before, type), FloatsOut(state, type));
  }

  // Returns the part of R's bias that belongs to the candidate, which Project leaves out. Null
  // means none.
  FloatsIn CandidateBias(const ForwardCall& call, int64_t direction) const {
    if (call.inputs.size() <= kRecurrentBias || call.inputs[kRecurrentBias] == nullptr) return {};
    const int64_t at = (direction * 2 + 1) * shape_.width() + 2 * shape_.hidden;
    return {From(call.inputs[kRecurrentBias], bias_type_, at), bias_type_};
  }

  // Runs all steps from the last to the first. Fills the workspace with the gradients of the gates
  // before their activations, of q, and of the initial state.
  void BackwardSteps(const BackwardCall& call) const {
    const ElementType type = frame_.type();
    for (int64_t d = 0; d < shape_.directions; ++d) {
      const void* recurrence = frame_.BackwardRecurrence(call, d);
      const void* candidate = CandidateOf(recurrence, type);
      float* state = FloatsAt(call.workspace, state_gradients_) + d * shape_.state();
      frame_.BeginWith(call, 1, d, state);
      for (int64_t i = shape_.steps; i-- > 0;) {
        const int64_t t = shape_.StepOf(d, i);
        void* own = GateGradients(call, d, t);
        void* extra = ExtraGradients(call, d, t);
        const GruBackStep step = StepAt(call, d, i, state);
        BackwardGates(device_, shape_, resets_after_, step);
        if (resets_after_) {
          frame_.MultiplyBackward(call, backward_candidate_, extra, candidate, state);
        } else {
          frame_.MultiplyBackward(call, backward_candidate_, From(own, type, 2 * shape_.hidden),
                                  candidate, extra);
          PassReset(device_, shape_, step);
        }
        frame_.MultiplyBackward(call, backward_gates_, own, recurrence, state);
      }
    }
  }

  GruBackStep StepAt(const BackwardCall& call, int64_t direction, int64_t i, float* state) const {
    const int64_t t = shape_.StepOf(direction, i);
    const int64_t number = direction * shape_.steps + t;
    const auto* saved = static_cast<const float*>(call.statistic);
    const Steps states = frame_.ReadStates(call, direction);
    GruBackStep step = {};
    step.gates = saved + number * shape_.batch * shape_.width();
    step.extra = saved + shape_.extras_offset() + number * shape_.state();
    step.before = i > 0 ? FloatsIn(states.at(shape_.StepOf(direction, i - 1)), states.type)
                        : frame_.Initial(call.inputs, kRecurrentInitialState, direction);
    step.arriving = frame_.Arriving(call, direction, t);
    step.state = state;
    step.gate_gradients = FloatsOut(GateGradients(call, direction, t), frame_.type());
    step.extra_gradients =
        FloatsOut(ExtraGradients(call, direction, t), resets_after_ ? frame_.type() : kFloat);
    return step;
  }

  // Returns the place of the gradient of q. It is stored for all steps if the reset is applied
  // last, and otherwise only for the current step.
  void* ExtraGradients(const BackwardCall& call, int64_t direction, int64_t step) const {
    void* first = BufferAt(call.workspace, extra_gradients_);
    if (!resets_after_) return first;
    return From(first, frame_.type(), (direction * shape_.steps + step) * shape_.state());
  }

  void RecurrenceGradient(const BackwardCall& call, void* gradient) const {
    const ElementType type = frame_.type();
    for (int64_t d = 0; d < shape_.directions; ++d) {
      void* before = frame_.GatherBefore(call, d);
      const void* gates = GateGradients(call, d, 0);
      void* to = From(gradient, recurrence_type_, d * shape_.width() * shape_.hidden);
      void* to_candidate = From(to, recurrence_type_, 2 * shape_.hidden * shape_.hidden);
      frame_.MultiplyBackward(call, gates_recurrence_, gates, before, to);
      if (resets_after_) {
        frame_.MultiplyBackward(call, candidate_recurrence_, ExtraGradients(call, d, 0), before,
                                to_candidate);
        continue;
      }
      const void* extra = static_cast<const float*>(call.statistic) + shape_.extras_offset() +
                          d * shape_.steps * shape_.state();
      if (type != kFloat) {  // Overwrites the states, which are no longer needed.
        Convert(device_, shape_.steps * shape_.state(), extra, kFloat, before, type);
        extra = before;
      }
      frame_.MultiplyBackward(call, candidate_recurrence_, From(gates, type, 2 * shape_.hidden),
                              extra, to_candidate);
    }
  }

  void BiasGradient(const BackwardCall& call, void* gradient) const {
    frame_.BiasGradient(call, BufferAt(call.workspace, gate_gradients_), gradient);
    if (!resets_after_) return;
    for (int64_t d = 0; d < shape_.directions; ++d) {
      frame_.SumColumns(call, ExtraGradients(call, d, 0), shape_.hidden, gradient,
                        (d * 2 + 1) * shape_.width() + 2 * shape_.hidden);
    }
  }

  bool resets_after_;
  ElementType recurrence_type_, bias_type_;
  // Products with R, for z and r together and for the candidate, and products for the gradient of
  // R.
  GemmShape forward_gates_, forward_candidate_, backward_gates_, backward_candidate_;
  GemmShape gates_recurrence_, candidate_recurrence_;
  int64_t factor_ = 0, extra_gradients_ = 0;  // Offsets in the workspaces.
};

Result<std::unique_ptr<PreparedOp>> PrepareGru(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const GruShape shape, ReadGruShape(spec));
  return Prepared<GruOp>(spec, device, shape);
}

constexpr OpRow kGruOps[] = {{"GRU", PrepareGru}};

}  // namespace

std::span<const OpRow> GruOps() { return kGruOps; }

}  // namespace ckplan::cuda
