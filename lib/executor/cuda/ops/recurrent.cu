#include <algorithm>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/ops/recurrent.h"

namespace ckplan::cuda {

namespace {

// Returns the types of the operands. Absent operands count as float32, which never causes a
// conversion.
std::vector<ElementType> TypesOf(const std::vector<Operand>& operands, size_t min_count) {
  std::vector<ElementType> types(std::max(operands.size(), min_count), ElementType::kFloat32);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_present) types[i] = operands[i].type;
  }
  return types;
}

bool IsHere(std::span<const void* const> operands, size_t position) {
  return position < operands.size() && operands[position] != nullptr;
}

}  // namespace

GemmShape GemmOf(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b,
                 const MatrixView& c, bool adds) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.a = a;
  shape.b = b;
  shape.c = c;
  shape.beta = adds ? 1.0F : 0.0F;
  return shape;
}

RecurrentFrame::RecurrentFrame(const OpSpec& spec, Device& device, const RecurrentShape& shape)
    : device_(device),
      shape_(shape),
      input_types_(TypesOf(spec.inputs, 8)),
      output_types_(TypesOf(spec.outputs, 3)),
      type_(ElementType::kFloat32) {
  for (const ElementType type : input_types_) type_ = CommonType({type_, type});
  for (const ElementType type : output_types_) type_ = CommonType({type_, type});
  state_type_ = shape_.has_output ? output_types_[0] : ElementType::kFloat32;
  for (size_t i = 0; i < input_types_.size(); ++i) wants_.push_back(spec.input(i).has_gradient);
  const int64_t rows = shape.rows();
  const int64_t width = shape.width();
  const int64_t inputs = shape.inputs;
  project_ = GemmOf(rows, width, inputs, RowsView(type_, inputs), ColumnsView(type_, inputs),
                    RowsView(ElementType::kFloat32, width), spec.input(kRecurrentBias).is_present);
  input_ = GemmOf(rows, inputs, width, RowsView(type_, width), RowsView(type_, inputs),
                  RowsView(input_types_[0], inputs));
  weight_ = GemmOf(width, inputs, rows, ColumnsView(type_, width), RowsView(type_, inputs),
                   RowsView(input_types_[1], inputs));
  bias_sums_ = ReduceShape::Of(width, rows, true);
}

int64_t RecurrentFrame::ScratchOf(std::initializer_list<GemmShape> own,
                                  std::initializer_list<const GemmShape*> shared) const {
  int64_t bytes = 0;
  for (const GemmShape& shape : own) {
    bytes = std::max(bytes, device_.libraries().GemmWorkspace(shape));
  }
  for (const GemmShape* shape : shared) {
    bytes = std::max(bytes, device_.libraries().GemmWorkspace(*shape));
  }
  return bytes;
}

void RecurrentFrame::PlanForward(WorkspacePlan& plan, std::initializer_list<GemmShape> own) {
  const int64_t weights = shape_.directions * shape_.width();
  x_ = Conversion(shape_.rows() * shape_.inputs, input_types_[0], type_, plan);
  w_ = Conversion(weights * shape_.inputs, input_types_[1], type_, plan);
  r_ = Conversion(weights * shape_.hidden, input_types_[2], state_type_, plan);
  initial_ = Conversion(shape_.directions * shape_.state(), input_types_[kRecurrentInitialState],
                        state_type_, plan);
  states_ = plan.Add(2 * CeilDiv(shape_.state() * SizeOf(state_type_), kBufferAlignment) *
                     kBufferAlignment);
  forward_scratch_ = plan.Add(ScratchOf(own, {&project_}));
}

void RecurrentFrame::PlanBackward(WorkspacePlan& plan, std::initializer_list<GemmShape> own) {
  const int64_t weights = shape_.directions * shape_.width();
  backward_r_ = Conversion(weights * shape_.hidden, input_types_[2], type_, plan);
  if (wants_[0]) backward_w_ = Conversion(weights * shape_.inputs, input_types_[1], type_, plan);
  if (wants_[1]) {
    backward_x_ = Conversion(shape_.rows() * shape_.inputs, input_types_[0], type_, plan);
  }
  if (wants_[2]) before_ = plan.Add(shape_.rows() * shape_.hidden * SizeOf(type_));
  if (wants_[kRecurrentBias]) sums_ = plan.Add(bias_sums_.workspace<float>());
  backward_scratch_ = plan.Add(ScratchOf(own, {&input_, &weight_}));
}

void RecurrentFrame::Project(const ForwardCall& call, int64_t direction, int64_t both,
                             float* gates) const {
  const int64_t width = shape_.width();
  if (project_.beta != 0) {
    const FloatsIn biases(
        From(call.inputs[kRecurrentBias], input_types_[kRecurrentBias], direction * 2 * width),
        input_types_[kRecurrentBias]);
    const Divider columns(width);
    ForEach(device_, shape_.rows() * width, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      columns.Split(column);
      gates[i] = biases[column] + (column < both ? biases[column + columns.divisor()] : 0.0F);
    });
  }
  const bool is_first = direction == 0;
  const void* x = is_first ? x_.Apply(device_, call.inputs[0], call.workspace)
                           : x_.Applied(call.inputs[0], call.workspace);
  const void* w = is_first ? w_.Apply(device_, call.inputs[1], call.workspace)
                           : w_.Applied(call.inputs[1], call.workspace);
  MultiplyForward(call, project_, x, From(w, type_, direction * width * shape_.inputs), gates);
}

void RecurrentFrame::MultiplyForward(const ForwardCall& call, const GemmShape& shape, const void* a,
                                     const void* b, void* c) const {
  device_.libraries().Gemm(shape, a, b, c, BufferAt(call.workspace, forward_scratch_));
}

void RecurrentFrame::MultiplyBackward(const BackwardCall& call, const GemmShape& shape,
                                      const void* a, const void* b, void* c) const {
  device_.libraries().Gemm(shape, a, b, c, BufferAt(call.workspace, backward_scratch_));
}

const void* RecurrentFrame::ForwardRecurrence(const ForwardCall& call, int64_t direction) const {
  const void* r = direction == 0 ? r_.Apply(device_, call.inputs[2], call.workspace)
                                 : r_.Applied(call.inputs[2], call.workspace);
  return From(r, state_type_, direction * shape_.width() * shape_.hidden);
}

const void* RecurrentFrame::BackwardRecurrence(const BackwardCall& call, int64_t direction) const {
  const void* r = direction == 0 ? backward_r_.Apply(device_, call.inputs[2], call.workspace)
                                 : backward_r_.Applied(call.inputs[2], call.workspace);
  return From(r, type_, direction * shape_.width() * shape_.hidden);
}

Steps RecurrentFrame::WriteStates(const ForwardCall& call, int64_t direction) const {
  const int64_t state = shape_.state();
  if (call.outputs[0] != nullptr) {
    return {From(call.outputs[0], state_type_, direction * state), state_type_,
            shape_.directions * state, shape_.steps};
  }
  if (!shape_.has_output && call.statistic != nullptr) {
    float* reserve = static_cast<float*>(call.statistic) + shape_.states_offset();
    return {reserve + direction * shape_.steps * state, state_type_, state, shape_.steps};
  }
  const int64_t bytes = CeilDiv(state * SizeOf(state_type_), kBufferAlignment) * kBufferAlignment;
  return {BufferAt(call.workspace, states_), state_type_, bytes / SizeOf(state_type_), 2};
}

Steps RecurrentFrame::ReadStates(const BackwardCall& call, int64_t direction) const {
  const int64_t state = shape_.state();
  // Steps holds mutable pointers because it is also used for writing. Here it is only read.
  if (shape_.has_output) {
    auto* output = const_cast<void*>(call.outputs[0]);  // NOLINT
    return {From(output, state_type_, direction * state), state_type_, shape_.directions * state,
            shape_.steps};
  }
  auto* reserve = static_cast<float*>(const_cast<void*>(call.statistic));  // NOLINT
  return {reserve + shape_.states_offset() + direction * shape_.steps * state, state_type_, state,
          shape_.steps};
}

void RecurrentFrame::WriteLast(const ForwardCall& call, size_t position, int64_t direction,
                               const Steps& steps) const {
  if (position >= call.outputs.size() || call.outputs[position] == nullptr) return;
  const int64_t last = shape_.StepOf(direction, shape_.steps - 1);
  const ElementType type = output_types_[position];
  Convert(device_, shape_.state(), steps.at(last), steps.type,
          From(call.outputs[position], type, direction * shape_.state()), type);
}

const void* RecurrentFrame::ForwardInitial(const ForwardCall& call, int64_t direction) const {
  if (!IsHere(call.inputs, kRecurrentInitialState)) return nullptr;
  const void* own = call.inputs[kRecurrentInitialState];
  const void* initial = direction == 0 ? initial_.Apply(device_, own, call.workspace)
                                       : initial_.Applied(own, call.workspace);
  return From(initial, state_type_, direction * shape_.state());
}

FloatsIn RecurrentFrame::Initial(std::span<const void* const> inputs, size_t position,
                                 int64_t direction) const {
  if (!IsHere(inputs, position)) return {};
  const ElementType type = input_types_[position];
  return {From(inputs[position], type, direction * shape_.state()), type};
}

void RecurrentFrame::WriteInitial(size_t position, const float* from, void* gradient) const {
  Convert(device_, shape_.directions * shape_.state(), from, ElementType::kFloat32, gradient,
          input_types_[position]);
}

void RecurrentFrame::BeginWith(const BackwardCall& call, size_t position, int64_t direction,
                               float* to) const {
  if (!IsHere(call.output_gradients, position)) {
    device_.Zero(to, shape_.state() * kFloatBytes);
    return;
  }
  const ElementType type = output_types_[position];
  Convert(device_, shape_.state(),
          From(call.output_gradients[position], type, direction * shape_.state()), type, to,
          ElementType::kFloat32);
}

FloatsIn RecurrentFrame::Arriving(const BackwardCall& call, int64_t direction, int64_t step) const {
  const void* gradient = call.output_gradients[0];
  const int64_t at = (step * shape_.directions + direction) * shape_.state();
  return {From(gradient, output_types_[0], at), output_types_[0]};
}

void RecurrentFrame::InputGradient(const BackwardCall& call, const void* gates,
                                   void* gradient) const {
  const void* w = backward_w_.Apply(device_, call.inputs[1], call.workspace);
  GemmShape shape = input_;
  for (int64_t d = 0; d < shape_.directions; ++d) {
    shape.beta = d == 0 ? 0.0F : 1.0F;
    MultiplyBackward(call, shape, From(gates, type_, d * shape_.rows() * shape_.width()),
                     From(w, type_, d * shape_.width() * shape_.inputs), gradient);
  }
}

void RecurrentFrame::WeightGradient(const BackwardCall& call, const void* gates,
                                    void* gradient) const {
  const void* x = backward_x_.Apply(device_, call.inputs[0], call.workspace);
  for (int64_t d = 0; d < shape_.directions; ++d) {
    MultiplyBackward(call, weight_, From(gates, type_, d * shape_.rows() * shape_.width()), x,
                     From(gradient, input_types_[1], d * shape_.width() * shape_.inputs));
  }
}

void RecurrentFrame::BiasGradient(const BackwardCall& call, const void* gates,
                                  void* gradient) const {
  const int64_t width = shape_.width();
  const ElementType type = input_types_[kRecurrentBias];
  for (int64_t d = 0; d < shape_.directions; ++d) {
    SumColumns(call, From(gates, type_, d * shape_.rows() * width), width, gradient, d * 2 * width);
    device_.Copy(From(gradient, type, (d * 2 + 1) * width), From(gradient, type, d * 2 * width),
                 width * SizeOf(type));
  }
}

void RecurrentFrame::SumColumns(const BackwardCall& call, const void* rows, int64_t columns,
                                void* gradient, int64_t at) const {
  const FloatsIn from(rows, type_);
  const FloatsOut to(From(gradient, input_types_[kRecurrentBias], at),
                     input_types_[kRecurrentBias]);
  ReduceShape shape = ReduceShape::Of(columns, shape_.rows(), true);
  shape.parts = std::min(shape.parts, bias_sums_.parts);
  Reduce(
      device_, shape, 0.0F,
      [=] CKPLAN_KERNEL(int64_t column, int64_t row) { return from[row * columns + column]; },
      SumOf(), [=] CKPLAN_KERNEL(int64_t column, float sum) { to.Set(column, sum); },
      BufferAt(call.workspace, sums_));
}

void* RecurrentFrame::GatherBefore(const BackwardCall& call, int64_t direction) const {
  const Steps states = ReadStates(call, direction);
  void* before = BufferAt(call.workspace, before_);
  const FloatsOut to(before, type_);
  const FloatsIn from(states.first, states.type);
  const FloatsIn initial = Initial(call.inputs, kRecurrentInitialState, direction);
  const Divider state(shape_.state());
  const int64_t stride = states.stride;
  const int64_t steps = shape_.steps;
  const int64_t step_back = shape_.StepOf(direction, 0) == 0 ? -1 : 1;
  const int64_t first = shape_.StepOf(direction, 0);
  ForEach(device_, steps * shape_.state(), [=] CKPLAN_KERNEL(int64_t i) {
    int64_t k = i;
    const int64_t step = state.Split(k);
    if (step != first) {
      to.Set(i, from[(step + step_back) * stride + k]);
    } else {
      to.Set(i, initial.is_null() ? 0.0F : initial[k]);
    }
  });
  return before;
}

RecurrentOp::RecurrentOp(const OpSpec& spec, Device& device, const RecurrentShape& shape)
    : device_(device), shape_(shape), frame_(spec, device, shape) {}

void RecurrentOp::PlanForward(std::initializer_list<GemmShape> own, int64_t extra_slots) {
  frame_.PlanForward(forward_plan_, own);
  extra_slots_ = extra_slots;
  if (shape_.has_reserve) return;
  gates_ = forward_plan_.AddFloats(shape_.rows() * shape_.width());
  extras_ = forward_plan_.AddFloats(extra_slots * shape_.state());
}

void RecurrentOp::PlanBackward(std::initializer_list<GemmShape> own) {
  frame_.PlanBackward(backward_plan_, own);
  const int64_t gates = shape_.directions * shape_.rows() * shape_.width();
  gate_gradients_ = backward_plan_.Add(gates * SizeOf(frame_.type()));
  state_gradients_ = backward_plan_.AddFloats(shape_.directions * shape_.state());
}

float* RecurrentOp::Gates(const ForwardCall& call, int64_t direction) const {
  if (!shape_.has_reserve) return FloatsAt(call.workspace, gates_);
  return static_cast<float*>(call.statistic) + direction * shape_.rows() * shape_.width();
}

Steps RecurrentOp::Extras(const ForwardCall& call, int64_t direction) const {
  const ElementType type = ElementType::kFloat32;
  if (!shape_.has_reserve) {
    return {FloatsAt(call.workspace, extras_), type, shape_.state(), extra_slots_};
  }
  float* reserve = static_cast<float*>(call.statistic) + shape_.extras_offset();
  return {reserve + direction * shape_.steps * shape_.state(), type, shape_.state(), shape_.steps};
}

void* RecurrentOp::GateGradients(const BackwardCall& call, int64_t direction, int64_t step) const {
  const int64_t row = (direction * shape_.steps + step) * shape_.batch;
  return From(BufferAt(call.workspace, gate_gradients_), frame_.type(), row * shape_.width());
}

}  // namespace ckplan::cuda
