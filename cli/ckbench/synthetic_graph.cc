#include "cli/ckbench/synthetic_graph.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ckplan {
namespace {

enum class Backward { kReadsInputs, kReadsOutput, kReadsNothing };

struct Operator {
  const char* op;
  Backward backward;
  bool in_place = false;  // The output may take the first input's memory.
  bool passes_gradient = false;
  int64_t cost = 1;
};

constexpr Operator kConvolution{"Conv", Backward::kReadsInputs, false, false, 10};
constexpr Operator kProduct{"Gemm", Backward::kReadsInputs, false, false, 10};
constexpr Operator kNormalization{"BatchNormalization", Backward::kReadsInputs};
constexpr Operator kPooling{"MaxPool", Backward::kReadsInputs};
constexpr Operator kAverage{"GlobalAveragePool", Backward::kReadsNothing};
constexpr Operator kRelu{"Relu", Backward::kReadsOutput, true};
constexpr Operator kSigmoid{"Sigmoid", Backward::kReadsOutput, true};
constexpr Operator kTanh{"Tanh", Backward::kReadsOutput, true};
constexpr Operator kAddition{"Add", Backward::kReadsNothing, true, true};
constexpr Operator kMultiplication{"Mul", Backward::kReadsInputs, true};
constexpr Operator kSlice{"Slice", Backward::kReadsNothing};
constexpr Operator kSoftmax{"Softmax", Backward::kReadsOutput, true};

constexpr int64_t kFloatBytes = 4;

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { parts_.name = std::move(name); }

  TensorId Input(int64_t elements) {
    Tensor tensor;
    tensor.kind = TensorKind::kInput;
    tensor.requires_grad = false;
    return AddTensor(std::move(tensor), elements);
  }

  TensorId Add(const Operator& operation, std::vector<TensorId> inputs, int64_t elements) {
    Node node;
    node.file_id = static_cast<int64_t>(parts_.nodes.size());
    node.name = fmt::format("{}{}", operation.op, node.file_id);
    node.op = operation.op;
    const TensorId output = AddTensor(Tensor{}, elements);
    node.outputs = {output};
    if (operation.backward == Backward::kReadsInputs) node.backward_reads = inputs;
    if (operation.backward == Backward::kReadsOutput) node.backward_reads = {output};
    if (operation.in_place) node.in_place = {{output, inputs[0]}};
    if (operation.passes_gradient) node.gradient_passthrough = inputs;
    node.inputs = std::move(inputs);
    node.forward_cost = Cost(operation.cost);
    node.backward_cost = Cost(2 * operation.cost);
    parts_.nodes.push_back(std::move(node));
    return output;
  }

  void MarkOutput(TensorId tensor) { parts_.outputs.push_back(tensor); }

  // Create must succeed, because the graph is small and has no cycle.
  TensorGraph Build() && { return TensorGraph::Create(std::move(parts_)).value(); }

 private:
  TensorId AddTensor(Tensor tensor, int64_t elements) {
    tensor.file_id = static_cast<int64_t>(parts_.tensors.size());
    tensor.name = fmt::format("t{}", tensor.file_id);
    tensor.bytes = Bytes(elements * kFloatBytes);
    return parts_.tensors.push_back(std::move(tensor));
  }

  TensorGraphParts parts_;
};

TensorId Normalized(GraphBuilder& builder, TensorId input, int64_t elements) {
  return builder.Add(kRelu, {builder.Add(kNormalization, {input}, elements)}, elements);
}

struct Unit {
  int64_t samples;
  int64_t width;  // Channels inside the unit; its result has four times as many.
  int64_t side;   // Width and height of the unit's result.
  bool is_first;  // The first unit of a stage has a convolution as shortcut.
  bool halves;    // The input has twice the side of the result.
};

TensorId AddUnit(GraphBuilder& builder, const Unit& unit, TensorId input, int64_t input_elements) {
  const int64_t inside = unit.samples * unit.width * unit.side * unit.side;
  const int64_t before = unit.halves ? 4 * inside : inside;
  const TensorId first = Normalized(builder, input, input_elements);
  TensorId path = builder.Add(kConvolution, {first}, before);
  path = builder.Add(kConvolution, {Normalized(builder, path, before)}, inside);
  path = builder.Add(kConvolution, {Normalized(builder, path, inside)}, 4 * inside);
  const TensorId shortcut = unit.is_first ? builder.Add(kConvolution, {first}, 4 * inside) : input;
  return builder.Add(kAddition, {path, shortcut}, 4 * inside);
}

}  // namespace

TensorGraph ResidualNetwork(const std::vector<int64_t>& units, int64_t batch, int64_t side) {
  GraphBuilder builder("resnet");
  const TensorId image = builder.Input(batch * 3 * side * side);
  int64_t width = 64;
  int64_t stage_side = side / 2;
  int64_t elements = batch * width * stage_side * stage_side;
  TensorId last = Normalized(builder, builder.Add(kConvolution, {image}, elements), elements);
  stage_side /= 2;
  elements /= 4;
  last = builder.Add(kPooling, {last}, elements);
  for (size_t stage = 0; stage < units.size(); ++stage) {
    if (stage > 0) stage_side /= 2;
    for (int64_t i = 0; i < units[stage]; ++i) {
      const Unit unit{batch, width, stage_side, i == 0, i == 0 && stage > 0};
      last = AddUnit(builder, unit, last, elements);
      elements = batch * 4 * width * stage_side * stage_side;
    }
    width *= 2;
  }
  last = builder.Add(kAverage, {Normalized(builder, last, elements)}, batch * width * 2);
  last = builder.Add(kSoftmax, {builder.Add(kProduct, {last}, batch * 1000)}, batch * 1000);
  builder.MarkOutput(last);
  return std::move(builder).Build();
}

std::vector<int64_t> StagesOfDepth(int64_t depth) {
  const int64_t units = (depth - 2) / 3;
  std::vector<int64_t> stages(4, units / 4);
  for (int64_t i = 0; i < units % 4; ++i) ++stages[static_cast<size_t>(3 - i)];
  return stages;
}

TensorGraph UnrollLstm(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes,
                       int64_t batch, int64_t steps) {
  GraphBuilder builder("lstm");
  const int64_t state = batch * hidden;
  const auto gate = [&](const Operator& activation, TensorId gates) {
    return builder.Add(activation, {builder.Add(kSlice, {gates}, state)}, state);
  };
  std::vector<TensorId> cells;
  std::vector<TensorId> hiddens;
  for (int64_t layer = 0; layer < layers; ++layer) {
    cells.push_back(builder.Input(state));
    hiddens.push_back(builder.Input(state));
  }
  for (int64_t step = 0; step < steps; ++step) {
    TensorId below = builder.Input(batch * inputs);
    for (size_t layer = 0; layer < cells.size(); ++layer) {
      const TensorId from_input = builder.Add(kProduct, {below}, 4 * state);
      const TensorId from_hidden = builder.Add(kProduct, {hiddens[layer]}, 4 * state);
      const TensorId gates = builder.Add(kAddition, {from_input, from_hidden}, 4 * state);
      const TensorId in = gate(kSigmoid, gates);
      const TensorId forget = gate(kSigmoid, gates);
      const TensorId out = gate(kSigmoid, gates);
      const TensorId candidate = gate(kTanh, gates);
      const TensorId kept = builder.Add(kMultiplication, {forget, cells[layer]}, state);
      const TensorId written = builder.Add(kMultiplication, {in, candidate}, state);
      cells[layer] = builder.Add(kAddition, {kept, written}, state);
      const TensorId squashed = builder.Add(kTanh, {cells[layer]}, state);
      hiddens[layer] = builder.Add(kMultiplication, {out, squashed}, state);
      below = hiddens[layer];
    }
    const TensorId scores = builder.Add(kProduct, {below}, batch * classes);
    builder.MarkOutput(builder.Add(kSoftmax, {scores}, batch * classes));
  }
  return std::move(builder).Build();
}

Bytes LstmWeights(int64_t layers, int64_t hidden, int64_t inputs, int64_t classes) {
  const int64_t first = (inputs + hidden) * 4 * hidden;
  const int64_t others = (layers - 1) * (hidden + hidden) * 4 * hidden;
  return Bytes(kFloatBytes * (first + others + hidden * classes));
}

}  // namespace ckplan
