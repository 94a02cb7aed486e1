#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "lib/base/check.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/testing/emulated/emulated_operations.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

namespace {

using Kind = cudnnBackendDescriptorType_t;
using GraphAxes = std::array<int64_t, 4>;

constexpr Kind kGraphElementwise = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
constexpr Kind kGraphProduct = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
constexpr Kind kGraphReduction = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
constexpr Kind kGraphReshape = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;

GraphAxes GraphAxesOf(const EmulatedDescriptor& tensor, EmulatedName name) {
  const std::vector<int64_t> values = tensor.Integers(name);
  CKPLAN_CHECK(values.size() == 4, "a graph's tensors have four axes");
  return {values[0], values[1], values[2], values[3]};
}

bool IsTrue(const EmulatedDescriptor& tensor, EmulatedName name) {
  return tensor.Has(name) && tensor.Get<bool>(name);
}

// A tensor of the graph: its descriptor, and its location while the graph runs.
struct GraphTensor {
  int64_t id = 0;
  cudnnDataType_t type{};
  GraphAxes dims{}, strides{};
  bool is_virtual = false;
  void* data = nullptr;  // Null for virtual tensors. A scalar is copied to `number`.
  float number = 0;
  bool is_number = false;
  std::vector<float> elements;  // A virtual tensor's elements, in the order of its axes.

  explicit GraphTensor(const EmulatedDescriptor& described)
      : id(described.Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(described.Get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        dims(GraphAxesOf(described, CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(GraphAxesOf(described, CUDNN_ATTR_TENSOR_STRIDES)),
        is_virtual(IsTrue(described, CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        is_number(IsTrue(described, CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}

  int64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  bool is_half() const { return type == CUDNN_DATA_BFLOAT16; }

  // Returns an element's offset; axes of size 1 are broadcast.
  int64_t Place(const GraphAxes& at) const {
    GraphAxes in = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
    if (!is_virtual) in = strides;
    int64_t place = 0;
    for (size_t i = 0; i < 4; ++i) place += (dims[i] == 1 ? 0 : at[i]) * in[i];
    return place;
  }
  float Read(const GraphAxes& at) const {
    if (is_number) return number;
    if (is_virtual) return elements[static_cast<size_t>(Place(at))];
    return FloatsIn(data, is_half() ? ElementType::kBFloat16 : ElementType::kFloat32)[Place(at)];
  }
  void Write(const GraphAxes& at, double value) {
    auto rounded = static_cast<float>(value);
    if (is_half()) rounded = FromBFloat16(ToBFloat16(rounded));
    if (is_virtual) {
      elements[static_cast<size_t>(Place(at))] = rounded;
    } else {
      FloatsOut(data, is_half() ? ElementType::kBFloat16 : ElementType::kFloat32)
          .Set(Place(at), rounded);
    }
  }
};

template <typename Body>
void ForPlaces(const GraphAxes& dims, const Body& body) {
  GraphAxes at{};
  for (at[0] = 0; at[0] < dims[0]; ++at[0]) {
    for (at[1] = 0; at[1] < dims[1]; ++at[1]) {
      for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
        for (at[3] = 0; at[3] < dims[3]; ++at[3]) body(at);
      }
    }
  }
}

// An operation, with its tensors' positions among the graph's tensors.
struct GraphStep {
  Kind kind{};
  int mode = 0;      // What an elementwise operation or a reduction computes.
  int64_t axis = 0;  // The axis whose indices a generating operation returns.
  int x = -1, y = -1, third = -1, result = -1;
};

// ---- Computation --------------------------------------------------------------------------------

double Combined(int mode, double x, double y, double third) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + y;
    case CUDNN_POINTWISE_SUB:
      return x - y;
    case CUDNN_POINTWISE_MUL:
      return x * y;
    case CUDNN_POINTWISE_DIV:
      return x / y;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= y ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return third != 0 ? x : y;
    default:
      CKPLAN_CHECK(false, "the emulated cuDNN has this elementwise operation");
      return 0;
  }
}

class EmulatedGraphRun {
 public:
  EmulatedGraphRun(std::vector<GraphTensor> tensors, std::vector<GraphStep> steps)
      : tensors_(std::move(tensors)), steps_(std::move(steps)) {}

  void Run() {
    for (GraphTensor& tensor : tensors_) {
      if (tensor.is_virtual) tensor.elements.assign(static_cast<size_t>(tensor.count()), NAN);
    }
    for (const GraphStep& step : steps_) {
      if (step.kind == kGraphElementwise) Apply(step);
      if (step.kind == kGraphProduct) Multiply(step);
      if (step.kind == kGraphReduction) Reduce(step);
      if (step.kind == kGraphReshape) Reshape(step);
    }
  }

 private:
  GraphTensor& At(int position) { return tensors_[static_cast<size_t>(position)]; }
  float ReadIf(int position, const GraphAxes& at) {
    return position < 0 ? 0 : At(position).Read(at);
  }

  void Apply(const GraphStep& step) {
    GraphTensor& result = At(step.result);
    ForPlaces(result.dims, [&](const GraphAxes& at) {
      if (step.mode == CUDNN_POINTWISE_GEN_INDEX) {
        return result.Write(at, static_cast<double>(at[static_cast<size_t>(step.axis)]));
      }
      const double x = At(step.x).Read(at);
      const double y = ReadIf(step.y, at);
      const double third = ReadIf(step.third, at);
      result.Write(at, Combined(step.mode, x, y, third));
    });
  }

  void Multiply(const GraphStep& step) {
    GraphTensor& result = At(step.result);
    const GraphTensor &a = At(step.x), &b = At(step.y);
    ForPlaces(result.dims, [&](const GraphAxes& at) {
      double sum = 0;
      for (int64_t i = 0; i < a.dims[3]; ++i) {
        sum += static_cast<double>(a.Read({at[0], at[1], at[2], i})) *
               static_cast<double>(b.Read({at[0], at[1], i, at[3]}));
      }
      result.Write(at, sum);
    });
  }

  void Reduce(const GraphStep& step) {
    GraphTensor& result = At(step.result);
    const GraphTensor& x = At(step.x);
    const bool adds = step.mode == CUDNN_REDUCE_TENSOR_ADD;
    ForPlaces(result.dims, [&](const GraphAxes& at) {
      double value = adds ? 0 : -INFINITY;
      for (int64_t i = 0; i < x.dims[3]; ++i) {
        const double element = x.Read({at[0], at[1], at[2], i});
        value = adds ? value + element : std::max(value, element);
      }
      result.Write(at, value);
    });
  }

  // These graphs' reshapes swap the last two axes.
  void Reshape(const GraphStep& step) {
    GraphTensor& result = At(step.result);
    ForPlaces(result.dims, [&](const GraphAxes& at) {
      result.Write(at, At(step.x).Read({at[0], at[1], at[3], at[2]}));
    });
  }

  std::vector<GraphTensor> tensors_;
  std::vector<GraphStep> steps_;
};

// ---- Descriptors --------------------------------------------------------------------------------

struct StepNames {
  EmulatedName x, y, third, result;
};

// Operations without a second name reuse the first operand's name.
StepNames NamesOfStep(Kind kind) {
  if (kind == kGraphElementwise) {
    return {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
            CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
  }
  if (kind == kGraphProduct) {
    return {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
            CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_CDESC};
  }
  if (kind == kGraphReduction) {
    return {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
            CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
  }
  return {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
          CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
}

void CheckComputation(const EmulatedDescriptor& how, EmulatedName name,
                      bool may_be_boolean = false) {
  const auto type = how.Get<cudnnDataType_t>(name);
  CKPLAN_CHECK(type == CUDNN_DATA_FLOAT || (may_be_boolean && type == CUDNN_DATA_BOOLEAN),
               "graphs are computed in float32");
}

const EmulatedDescriptor& ComputationOf(const EmulatedDescriptor& operation) {
  if (operation.kind == kGraphElementwise) {
    return operation.Part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  }
  return operation.kind == kGraphProduct ? operation.Part(CUDNN_ATTR_OPERATION_MATMUL_DESC)
                                         : operation.Part(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
}

GraphStep StepOf(const EmulatedDescriptor& operation) {
  GraphStep step;
  step.kind = operation.kind;
  if (step.kind == kGraphElementwise) {
    const EmulatedDescriptor& how = ComputationOf(operation);
    step.mode = how.Get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    if (how.Has(CUDNN_ATTR_POINTWISE_AXIS)) step.axis = how.Get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
  }
  if (step.kind == kGraphReduction) {
    step.mode = ComputationOf(operation).Get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
  }
  return step;
}

const std::vector<std::shared_ptr<const EmulatedDescriptor>>& OperationsOf(
    const EmulatedDescriptor& graph) {
  return graph.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).parts;
}

bool FitsBroadcast(const GraphAxes& dims, const GraphAxes& to) {
  for (size_t i = 0; i < 4; ++i) {
    if (dims[i] != 1 && dims[i] != to[i]) return false;
  }
  return true;
}

// Applies planted faults to the tensor.
void ApplyPlantedFaults(GraphTensor& tensor) {
  const bool is_row = tensor.dims[3] > 1;
  if (is_row && !tensor.is_virtual && tensor.is_half() &&
      IsPlanted("an attention has a wrong stride")) {
    tensor.strides[1] = 0;
  }
  if (!is_row && !tensor.is_virtual && !tensor.is_number &&
      IsPlanted("the sums of an attention are transposed")) {
    tensor.strides = {tensor.dims[1] * tensor.dims[2], 1, tensor.dims[1], 1};
  }
}

}  // namespace

bool IsEmulatedGraphOperation(cudnnBackendDescriptorType_t kind) {
  return kind == kGraphElementwise || kind == kGraphProduct || kind == kGraphReduction ||
         kind == kGraphReshape;
}

void CheckEmulatedGraphOperation(const EmulatedDescriptor& operation) {
  const StepNames names = NamesOfStep(operation.kind);
  const GraphTensor x(operation.Part(names.x)), result(operation.Part(names.result));
  if (operation.kind == kGraphElementwise) {
    const EmulatedDescriptor& how = ComputationOf(operation);
    CheckComputation(how, CUDNN_ATTR_POINTWISE_MATH_PREC, true);
    for (const EmulatedName name : {names.x, names.y, names.third}) {
      CKPLAN_CHECK(!operation.Has(name) ||
                       FitsBroadcast(GraphTensor(operation.Part(name)).dims, result.dims),
                   "elementwise operands are broadcast to the result's shape");
    }
    return;
  }
  const auto same_but_last = [](const GraphAxes& one, const GraphAxes& other) {
    return std::equal(one.begin(), one.end() - 1, other.begin());
  };
  if (operation.kind == kGraphProduct) {
    CheckComputation(ComputationOf(operation), CUDNN_ATTR_MATMUL_COMP_TYPE);
    const GraphTensor b(operation.Part(names.y));
    CKPLAN_CHECK(same_but_last(x.dims, result.dims) && x.dims[3] == b.dims[2] &&
                     b.dims[3] == result.dims[3] && b.dims[0] == x.dims[0] &&
                     b.dims[1] == x.dims[1],
                 "the shapes of a product's matrices match");
  } else if (operation.kind == kGraphReduction) {
    CheckComputation(ComputationOf(operation), CUDNN_ATTR_REDUCTION_COMP_TYPE);
    CKPLAN_CHECK(same_but_last(x.dims, result.dims) && result.dims[3] == 1,
                 "a reduction leaves one element per row");
  } else {
    CKPLAN_CHECK(
        result.dims == (GraphAxes{x.dims[0], x.dims[1], x.dims[3], x.dims[2]}) && result.is_virtual,
        "a reshape swaps the last two axes");
  }
}

int64_t KeptBytesOfEmulatedGraph(const EmulatedDescriptor& graph) {
  // The last gradient product also reads the result that a reshape received as bfloat16.
  std::map<int64_t, int64_t> halves;  // By id of the reshaped tensor.
  int64_t kept = 0;
  for (const auto& operation : OperationsOf(graph)) {
    if (!IsEmulatedGraphOperation(operation->kind)) continue;
    const StepNames names = NamesOfStep(operation->kind);
    const GraphTensor x(operation->Part(names.x)), result(operation->Part(names.result));
    if (operation->kind == kGraphReshape && result.is_half()) halves[x.id] = result.count() * 2;
    if (operation->kind == kGraphProduct && halves.contains(x.id)) kept += halves[x.id];
  }
  return kept;
}

std::function<void()> BindEmulatedGraph(const EmulatedDescriptor& graph,
                                        const EmulatedPointers& pointer_of) {
  std::vector<GraphTensor> tensors;
  std::map<int64_t, int> positions;  // By id.
  std::set<int64_t> made;
  const auto position_of = [&](const EmulatedDescriptor& described) {
    GraphTensor tensor(described);
    const auto known = positions.find(tensor.id);
    if (known != positions.end()) return known->second;
    if (!tensor.is_virtual) tensor.data = pointer_of(described);
    if (tensor.is_number) tensor.number = *static_cast<const float*>(tensor.data);
    ApplyPlantedFaults(tensor);
    tensors.push_back(std::move(tensor));
    return positions[tensors.back().id] = static_cast<int>(tensors.size()) - 1;
  };
  std::vector<GraphStep> steps;
  for (const auto& operation : OperationsOf(graph)) {
    CKPLAN_CHECK(IsEmulatedGraphOperation(operation->kind),
                 "all operations of a graph are of one kind");
    const StepNames names = NamesOfStep(operation->kind);
    GraphStep step = StepOf(*operation);
    const auto operand = [&](EmulatedName name) {
      const int position = position_of(operation->Part(name));
      const GraphTensor& tensor = tensors[static_cast<size_t>(position)];
      CKPLAN_CHECK(!tensor.is_virtual || made.contains(tensor.id),
                   "a graph computes a result before reading it");
      return position;
    };
    step.x = operand(names.x);
    if (names.y != names.x && operation->Has(names.y)) step.y = operand(names.y);
    if (names.third != names.x && operation->Has(names.third)) step.third = operand(names.third);
    step.result = position_of(operation->Part(names.result));
    CKPLAN_CHECK(made.insert(tensors[static_cast<size_t>(step.result)].id).second,
                 "a graph computes each result once");
    steps.push_back(step);
  }
  return [run = std::make_shared<EmulatedGraphRun>(std::move(tensors), std::move(steps))] {
    run->Run();
  };
}

}  // namespace ckplan::cuda
