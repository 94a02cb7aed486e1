#include "lib/executor/cpu/ops/recurrent.h"

#include <algorithm>
#include <cstring>

#include "lib/executor/cpu/parallel.h"
#include "lib/executor/cpu/vector_math.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan::cpu {

namespace {

void CopyFloats(const float* from, float* to, int64_t count) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

std::unique_ptr<MatMulKernel> MakeKernel(const ProductShape& shape) {
  return std::make_unique<MatMulKernel>(shape);
}

}  // namespace

RecurrentFrame::RecurrentFrame(const OpSpec& spec, const RecurrentShape& shape) : shape_(shape) {
  const int64_t rows = shape.rows();
  const int64_t width = shape.width();
  project_ = MakeKernel(
      {.m = rows, .n = width, .k = shape.inputs, .b = {.is_transposed = true}, .adds = true});
  if (spec.input(0).has_gradient) {
    input_ = MakeKernel({.m = rows, .n = shape.inputs, .k = width});
    if (shape.directions > 1) {
      input_adding_ = MakeKernel({.m = rows, .n = shape.inputs, .k = width, .adds = true});
    }
  }
  if (spec.input(1).has_gradient) {
    weight_ = MakeKernel({.m = width, .n = shape.inputs, .k = rows, .a = {.is_transposed = true}});
  }
}

void RecurrentFrame::PlanForward(WorkspacePlan& plan) {
  states_ = plan.Add(2 * shape_.state() * kFloatBytes);
  forward_scratch_ = plan.Add(project_->workspace());
}

void RecurrentFrame::PlanBackward(WorkspacePlan& plan) {
  before_ = plan.Add(shape_.rows() * shape_.hidden * kFloatBytes);
  int64_t scratch = 0;
  for (const auto* kernel : {input_.get(), input_adding_.get(), weight_.get()}) {
    if (kernel != nullptr) scratch = std::max(scratch, kernel->workspace());
  }
  backward_scratch_ = plan.Add(scratch);
}

void RecurrentFrame::Project(const ForwardCall& call, int64_t direction, const float* bias,
                             float* gates) const {
  const int64_t width = shape_.width();
  ParallelFor(shape_.rows(), std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (bias != nullptr) CopyFloats(bias, gates + row * width, width);
      if (bias == nullptr) std::fill_n(gates + row * width, width, 0.0F);
    }
  });
  project_->Run(Floats(call.inputs[0]), Floats(call.inputs[1]) + direction * width * shape_.inputs,
                gates, FloatsAt(call.workspace, forward_scratch_));
}

Steps RecurrentFrame::WriteStates(const ForwardCall& call, int64_t direction) const {
  const int64_t state = shape_.state();
  if (call.outputs[0] != nullptr) {
    return {Floats(call.outputs[0]) + direction * state, shape_.directions * state, shape_.steps};
  }
  if (!shape_.has_output && call.statistic != nullptr) {
    float* reserve = Floats(call.statistic) + shape_.states_offset();
    return {reserve + direction * shape_.steps * state, state, shape_.steps};
  }
  return {FloatsAt(call.workspace, states_), state, 2};
}

Steps RecurrentFrame::ReadStates(const BackwardCall& call, int64_t direction) const {
  const int64_t state = shape_.state();
  // Steps holds mutable pointers because it is also used for writing. Here it is only read.
  if (shape_.has_output) {
    auto* output = const_cast<float*>(Floats(call.outputs[0]));  // NOLINT
    return {output + direction * state, shape_.directions * state, shape_.steps};
  }
  auto* reserve = const_cast<float*>(Floats(call.statistic));  // NOLINT
  return {reserve + shape_.states_offset() + direction * shape_.steps * state, state, shape_.steps};
}

void RecurrentFrame::WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                               const Steps& states) const {
  if (position >= call.outputs.size() || call.outputs[position] == nullptr) return;
  const int64_t last = shape_.StepOf(direction, shape_.steps - 1);
  CopyFloats(states.at(last), Floats(call.outputs[position]) + direction * shape_.state(),
             shape_.state());
}

const float* RecurrentFrame::Initial(std::span<const void* const> inputs, size_t position,
                                     int64_t direction) const {
  if (position >= inputs.size() || inputs[position] == nullptr) return nullptr;
  return Floats(inputs[position]) + direction * shape_.state();
}

void RecurrentFrame::InputGradient(const BackwardCall& call, const float* gates,
                                   float* gradient) const {
  for (int64_t d = 0; d < shape_.directions; ++d) {
    const MatMulKernel& product = d == 0 ? *input_ : *input_adding_;
    product.Run(gates + d * shape_.rows() * shape_.width(),
                Floats(call.inputs[1]) + d * shape_.width() * shape_.inputs, gradient,
                FloatsAt(call.workspace, backward_scratch_));
  }
}

void RecurrentFrame::WeightGradient(const BackwardCall& call, const float* gates,
                                    float* gradient) const {
  for (int64_t d = 0; d < shape_.directions; ++d) {
    weight_->Run(gates + d * shape_.rows() * shape_.width(), Floats(call.inputs[0]),
                 gradient + d * shape_.width() * shape_.inputs,
                 FloatsAt(call.workspace, backward_scratch_));
  }
}

const float* RecurrentFrame::GatherBefore(const BackwardCall& call, int64_t direction) const {
  const Steps states = ReadStates(call, direction);
  float* before = FloatsAt(call.workspace, before_);
  const int64_t state = shape_.state();
  const float* initial = Initial(call.inputs, kRecurrentInitialState, direction);
  ParallelFor(shape_.steps, std::max<int64_t>(1, kGrain / state), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = before + shape_.StepOf(direction, i) * state;
      if (i > 0) {
        CopyFloats(states.at(shape_.StepOf(direction, i - 1)), to, state);
      } else if (initial != nullptr) {
        CopyFloats(initial, to, state);
      } else {
        std::fill_n(to, state, 0.0F);
      }
    }
  });
  return before;
}

RecurrentOp::RecurrentOp(const OpSpec& spec, const RecurrentShape& shape, int64_t extra_slots)
    : shape_(shape), frame_(spec, shape), extra_slots_(extra_slots) {
  frame_.PlanForward(forward_plan_);
  bias_ = forward_plan_.Add(shape_.width() * kFloatBytes);
  if (shape_.has_reserve) return;
  gates_ = forward_plan_.Add(shape_.rows() * shape_.width() * kFloatBytes);
  extras_ = forward_plan_.Add(extra_slots_ * shape_.state() * kFloatBytes);
}

void RecurrentOp::PlanBackward() {
  frame_.PlanBackward(backward_plan_);
  const int64_t gates = shape_.directions * shape_.rows() * shape_.width();
  gate_gradients_ = backward_plan_.Add(gates * kFloatBytes);
  state_gradients_ = backward_plan_.Add(shape_.directions * shape_.state() * kFloatBytes);
}

float* RecurrentOp::Gates(const ForwardCall& call, int64_t direction) const {
  if (!shape_.has_reserve) return FloatsAt(call.workspace, gates_);
  return Floats(call.statistic) + direction * shape_.rows() * shape_.width();
}

Steps RecurrentOp::Extras(const ForwardCall& call, int64_t direction) const {
  if (!shape_.has_reserve) {
    return {FloatsAt(call.workspace, extras_), shape_.state(), extra_slots_};
  }
  float* reserve = Floats(call.statistic) + shape_.extras_offset();
  return {reserve + direction * shape_.steps * shape_.state(), shape_.state(), shape_.steps};
}

const float* RecurrentOp::SumBiases(const ForwardCall& call, int64_t direction,
                                    int64_t summed) const {
  if (!HasBias(call)) return nullptr;
  const int64_t width = shape_.width();
  const float* biases = Floats(call.inputs[kRecurrentBias]) + direction * 2 * width;
  float* sum = FloatsAt(call.workspace, bias_);
  for (int64_t i = 0; i < width; ++i) sum[i] = biases[i] + (i < summed ? biases[i + width] : 0.0F);
  return sum;
}

void RecurrentOp::BeginWith(const BackwardCall& call, size_t output, int64_t direction,
                            float* to) const {
  const auto& arriving = call.output_gradients;
  if (output >= arriving.size() || arriving[output] == nullptr) {
    std::fill_n(to, shape_.state(), 0.0F);
  } else {
    CopyFloats(Floats(arriving[output]) + direction * shape_.state(), to, shape_.state());
  }
}

const float* RecurrentOp::Arriving(const BackwardCall& call, int64_t direction,
                                   int64_t step) const {
  const float* arriving = Floats(call.output_gradients[0]);
  if (arriving == nullptr) return nullptr;
  return arriving + (step * shape_.directions + direction) * shape_.state();
}

void RecurrentOp::BiasGradient(const BackwardCall& call, float* gradient) const {
  const int64_t width = shape_.width();
  for (int64_t d = 0; d < shape_.directions; ++d) {
    const float* gates = FloatsAt(call.workspace, gate_gradients_) + d * shape_.rows() * width;
    float* to = gradient + d * 2 * width;
    SumColumns(shape_.rows(), width, to,
               [&](int64_t row, int64_t i) { return gates[row * width + i]; });
    std::copy_n(to, width, to + width);
  }
}

void RecurrentOp::CopyInitial(const BackwardCall& call, int64_t offset, float* to) const {
  CopyFloats(FloatsAt(call.workspace, offset), to, shape_.directions * shape_.state());
}

}  // namespace ckplan::cpu
