#include "lib/exec/step_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lib/exec/op_spec_of.h"
#include "lib/exec/parameter_use.h"
#include "lib/model/backward_reads.h"
#include "lib/model/facts.h"
#include "lib/model/model_impl.h"

namespace ckplan {

namespace {

class Builder {
 public:
  Builder(const Model::Impl& model, const TensorGraph& graph)
      : model_(model),
        graph_(graph),
        facts_(FindFacts(model)),
        stores_bfloat16_(model.activation_type == ActivationType::kBFloat16),
        constant_of_(model.values.size()),
        tensor_of_(model.values.size()),
        step_{.graph = graph} {}

  Result<StepGraph> Build() {
    MatchTensors();
    step_.nodes.resize(graph_.nodes().size());
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const auto node = node_of_.find(model_.operations[i].name);
      if (node != node_of_.end()) AddNode(i, node->second);
    }
    AddInputs();
    MarkGradients();
    FindUses(model_, facts_, constant_of_, step_);
    if (!unsupported_.empty()) return UnsupportedTypes();
    CKPLAN_ASSIGN_OR_RETURN(step_.graph, GraphInRunSizes());
    return std::move(step_);
  }

 private:
  // Names of values and of operations are unique in a model, and the graph keeps them.
  void MatchTensors() {
    std::map<std::string_view, TensorId> by_name;
    for (const TensorId id : graph_.tensors().ids()) {
      if (graph_.tensor(id).kind != TensorKind::kStatistic) by_name[graph_.tensor(id).name] = id;
    }
    for (size_t i = 0; i < model_.values.size(); ++i) {
      if (!facts_.values[i].is_batch) continue;
      const auto found = by_name.find(model_.value(facts_.values[i].root).name);
      if (found != by_name.end()) tensor_of_[i] = found->second;
    }
    for (const NodeId id : graph_.nodes().ids()) node_of_[graph_.node(id).name] = id;
    step_.tensors.resize(graph_.tensors().size());
  }

  // ---- Operands -------------------------------------------------------------------------------

  Operand OperandOf(ValueIndex index) {
    Operand operand;
    if (index == kNoValue) return operand;
    const Value& value = model_.value(index);
    const std::optional<ElementType> type = ElementTypeOf(value.elem_type);
    if (!type) {
      unsupported_.insert(TypeText(value.elem_type, value.dims) + " " + value.name);
      return operand;
    }
    if (IsOtherFloat(value.elem_type)) other_floats_.insert(value.elem_type);
    operand.is_present = true;
    operand.type = *type;
    if (stores_bfloat16_ && IsFloat(*type) && facts_.value(index).is_batch) {
      operand.type = ElementType::kBFloat16;
    }
    operand.dims = value.dims;
    if (value.constant != nullptr) operand.known = {value.constant->ints, value.constant->reals};
    return operand;
  }

  // ---- Nodes ----------------------------------------------------------------------------------

  void AddNode(size_t index, NodeId id) {
    const Operation& operation = model_.operations[index];
    const OperationFacts& own = facts_.operations[index];
    const Node& graph_node = graph_.node(id);
    StepNode& node = step_.nodes[id];
    node.spec = SpecOf(model_, operation);
    node.is_random = own.rule->is_random();
    for (size_t i = 0; i < operation.inputs.size(); ++i) AddInput(operation, own, i, node);
    for (const ValueIndex output : operation.outputs) AddOutput(graph_node, output, node);
    for (const TensorId output : graph_node.outputs) {
      if (graph_.tensor(output).kind == TensorKind::kStatistic) node.statistic = output;
    }
    if (!node.statistic.is_none()) {
      node.spec.statistic_bytes = StatisticBytes(operation, node.statistic);
      step_.tensors[node.statistic] = BytesOperand(node.spec.statistic_bytes);
    }
    if (own.has_backward) MarkReads(operation, own, node);
  }

  void AddInput(const Operation& operation, const OperationFacts& own, size_t position,
                StepNode& node) {
    const ValueIndex value = operation.inputs[position];
    Operand operand = OperandOf(value);
    Binding binding;
    if (operand.is_present && ReadsContents(*own.rule, operation, position)) {
      if (facts_.value(value).is_batch) {
        binding.tensor = tensor_of_[static_cast<size_t>(value)];
        node.batch_positions.push_back(position);
      } else {
        binding.constant = ConstantOf(value);
        operand.is_read_by_backward = true;
      }
      operand.has_gradient =
          own.has_backward && WantsGradient(model_, facts_, operation, own, position);
      if (operand.has_gradient && !binding.constant.is_none()) {
        node.trained_positions.push_back(position);
      }
    } else if (operand.is_present && own.rule->kind == OpKind::kBatchNorm) {
      ConstantOf(value);  // Running statistics are not read in training, but they are there.
    }
    node.inputs.push_back(binding);
    node.spec.inputs.push_back(std::move(operand));
  }

  void AddOutput(const Node& graph_node, ValueIndex value, StepNode& node) {
    Operand operand = OperandOf(value);
    TensorId tensor;
    if (operand.is_present) tensor = tensor_of_[static_cast<size_t>(value)];
    const auto& list = graph_node.outputs;
    if (std::find(list.begin(), list.end(), tensor) == list.end()) tensor = TensorId();
    if (!tensor.is_none()) {
      operand.has_gradient = graph_.tensor(tensor).requires_grad;
      step_.tensors[tensor] = operand;
    }
    node.outputs.push_back(tensor);
    node.spec.outputs.push_back(std::move(operand));
  }

  void MarkReads(const Operation& operation, const OperationFacts& own, StepNode& node) const {
    const BackwardReads reads =
        FindBackwardReads(model_, facts_, operation, own, Autograd::kMinimal);
    for (const size_t i : reads.inputs) node.spec.inputs[i].is_read_by_backward = true;
    for (const size_t i : reads.outputs) {
      if (!node.outputs[i].is_none()) node.spec.outputs[i].is_read_by_backward = true;
    }
  }

  // ---- Constants ------------------------------------------------------------------------------

  ConstantId ConstantOf(ValueIndex index) {
    ConstantId& known = constant_of_[static_cast<size_t>(index)];
    if (!known.is_none()) return known;
    const Value& value = model_.value(index);
    StepConstant constant;
    constant.name = value.name;
    constant.operand = OperandOf(index);
    if (IsLeaf(index)) {
      constant.is_leaf_in_file = true;
      constant.fill = FillOf(value);
      return AddConstant(index, std::move(constant));
    }
    const auto at = static_cast<size_t>(value.producer);
    const Operation& operation = model_.operations[at];
    if (IsView(model_, RuleOf(operation), operation) && operation.outputs[0] == index) {
      const ConstantId source = ConstantOf(operation.inputs[0]);
      constant.root = step_.constants[source].root;
      return AddConstant(index, std::move(constant));
    }
    return AddConstantOp(operation, index);
  }

  ConstantId AddConstant(ValueIndex index, StepConstant constant) {
    const ConstantId id(step_.constants.size());
    if (constant.root.is_none()) constant.root = id;
    step_.constants.push_back(std::move(constant));
    constant_of_[static_cast<size_t>(index)] = id;
    return id;
  }

  // Contents that the loader knows or the file holds. A literal of many equal numbers that is
  // trained is a weight that an old exporter left out: a leaf as well.
  bool IsLeaf(ValueIndex index) const {
    const Value& value = model_.value(index);
    if (value.source != Value::Source::kOperation) return true;
    // What is known, but computed from a weight, changes with the weight.
    if (value.constant != nullptr && !facts_.value(index).may_be_trained) return true;
    const std::string& type = model_.operations[static_cast<size_t>(value.producer)].type();
    return type == "Constant" || (type == "ConstantOfShape" && facts_.value(index).is_literal);
  }

  std::optional<double> FillOf(const Value& value) const {
    if (value.source != Value::Source::kOperation) return std::nullopt;
    const Operation& producer = model_.operations[static_cast<size_t>(value.producer)];
    if (producer.type() != "ConstantOfShape") return std::nullopt;
    const onnx::AttributeProto* attribute = FindAttribute(*producer.node, "value");
    if (attribute == nullptr) return 0.0;
    const std::optional<ConstantValue> fill = ReadTensor(attribute->t());
    if (!fill || fill->size() != 1) return std::nullopt;
    return fill->is_float() ? fill->reals[0] : static_cast<double>(fill->ints[0]);
  }

  ConstantId AddConstantOp(const Operation& operation, ValueIndex wanted) {
    ConstantOp op;
    op.spec = SpecOf(model_, operation);
    const OpRule& rule = RuleOf(operation);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      const bool is_read = input != kNoValue && ReadsContents(rule, operation, i);
      op.inputs.push_back(is_read ? ConstantOf(input) : ConstantId());
      Operand operand = OperandOf(input);
      operand.is_read_by_backward = true;
      // Whether it lies on the way to a trained leaf is known later.
      operand.has_gradient = is_read && IsDifferentiable(model_, rule, operation, i);
      op.spec.inputs.push_back(std::move(operand));
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue) {
        op.outputs.emplace_back();
        op.spec.outputs.emplace_back();
        continue;
      }
      StepConstant constant;
      constant.name = model_.value(output).name;
      constant.operand = OperandOf(output);
      constant.producer = static_cast<int32_t>(step_.constant_ops.size());
      constant.operand.is_read_by_backward = true;
      op.spec.outputs.push_back(constant.operand);
      op.outputs.push_back(AddConstant(output, std::move(constant)));
    }
    step_.constant_ops.push_back(std::move(op));
    return constant_of_[static_cast<size_t>(wanted)];
  }

  // ---- Gradients of constants -----------------------------------------------------------------

  // From each use of a trained constant back to its leaves.
  void MarkGradients() {
    for (const StepNode& node : step_.nodes) {
      for (const size_t position : node.trained_positions) {
        MarkGradient(node.inputs[position].constant);
      }
    }
    for (ConstantOp& op : step_.constant_ops) {
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        Operand& operand = op.spec.inputs[i];
        operand.has_gradient = operand.has_gradient && !op.inputs[i].is_none() &&
                               step_.constants[op.inputs[i]].has_gradient;
      }
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        if (op.outputs[i].is_none()) continue;
        op.spec.outputs[i].has_gradient = step_.constants[op.outputs[i]].has_gradient;
      }
    }
  }

  void MarkGradient(ConstantId id) {
    StepConstant& constant = step_.constants[id];
    if (constant.has_gradient) return;
    constant.has_gradient = true;
    if (constant.root != id) return MarkGradient(constant.root);
    if (constant.producer < 0) {
      constant.is_trained = true;
      return;
    }
    const ConstantOp& op = step_.constant_ops[static_cast<size_t>(constant.producer)];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.spec.inputs[i].has_gradient) MarkGradient(op.inputs[i]);
    }
  }

  // ---- The rest -------------------------------------------------------------------------------

  void AddInputs() {
    for (const ValueIndex value : model_.graph_inputs) {
      const TensorId tensor = tensor_of_[static_cast<size_t>(value)];
      if (tensor.is_none()) continue;
      StepInput input;
      input.name = model_.value(value).name;
      input.tensor = tensor;
      input.operand = OperandOf(value);
      step_.tensors[tensor] = input.operand;
      step_.inputs.push_back(std::move(input));
    }
  }

  // Statistics that hold elements of the operator's own type grow with it, unless they were counted
  // as float32 already.
  int64_t StatisticBytes(const Operation& operation, TensorId statistic) const {
    const int64_t planned = graph_.tensor(statistic).bytes.count();
    const std::string& type = operation.type();
    const bool has_own_type = model_.activation_type == ActivationType::kOfModel;
    const bool follows_type =
        has_own_type && (type == "LSTM" || type == "GRU" || type == "RNN" || type == "Attention");
    return follows_type ? planned / FloatBytes(model_.value(operation.inputs[0]).elem_type) * 4
                        : planned;
  }

  static Operand BytesOperand(int64_t bytes) {
    Operand operand;
    operand.is_present = true;
    operand.type = ElementType::kBool;  // One byte each.
    operand.dims = {bytes};
    return operand;
  }

  Result<TensorGraph> GraphInRunSizes() {
    TensorGraphParts parts = PartsOf(graph_);
    for (const TensorId id : parts.tensors.ids()) {
      if (step_.tensors[id].is_present) parts.tensors[id].bytes = Bytes(step_.tensors[id].bytes());
    }
    if (stores_bfloat16_) {
      step_.notes.push_back(
          "activations and their gradients are stored as bfloat16; arithmetic, parameters and "
          "parameter gradients are float32");
    }
    if (!other_floats_.empty()) {
      std::vector<std::string> names;
      for (const int32_t type : other_floats_) names.push_back(FloatTypeName(type));
      step_.notes.push_back(
          fmt::format("the model's {} tensors are computed in float32", fmt::join(names, " and ")));
      parts.parameters = Bytes(0);
      parts.parameter_gradients = Bytes(0);
      for (const StepConstant& constant : step_.constants) {
        if (!constant.is_leaf_in_file) continue;
        const Bytes bytes(constant.operand.bytes());
        if (constant.is_trained || constant.operand.type == ElementType::kFloat32)
          parts.parameters += bytes;
        if (constant.is_trained) parts.parameter_gradients += bytes;
      }
    }
    return TensorGraph::Create(std::move(parts));
  }

  Error UnsupportedTypes() const {
    Error error = MakeError(
        ErrorCode::kUnsupported,
        fmt::format(
            "{}: {} tensors have types that cannot be run; float, int32, int64 and bool can",
            model_.identity.name, unsupported_.size()));
    error.notes.assign(unsupported_.begin(), unsupported_.end());
    return error;
  }

  const Model::Impl& model_;
  const TensorGraph& graph_;
  const ModelFacts facts_;
  const bool stores_bfloat16_;
  std::vector<ConstantId> constant_of_;  // By value.
  std::vector<TensorId> tensor_of_;      // By value.
  std::map<std::string_view, NodeId> node_of_;
  std::set<std::string> unsupported_;
  std::set<int32_t> other_floats_;
  StepGraph step_;
};

}  // namespace

Result<StepGraph> BuildStepGraph(const Model& model, const ModelGraph& lowered) {
  return Builder(model.impl(), lowered.graph).Build();
}

}  // namespace ckplan
