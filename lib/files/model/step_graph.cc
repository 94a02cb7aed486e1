#include "lib/files/model/step_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "lib/files/model/facts.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/op_spec_of.h"
#include "lib/files/model/parameters.h"
#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

class Builder {
 public:
  Builder(const Model::Impl& model, const ModelGraph& lowered, Autograd autograd)
      : model_(model),
        lowered_(lowered),
        graph_(lowered.graph),
        facts_(FindFacts(model)),
        stores_bfloat16_(model.activation_type == ActivationType::kBFloat16),
        constant_of_(model.values.size()),
        step_{.graph = lowered.graph, .autograd = autograd} {}

  Result<StepGraph> Build() {
    step_.nodes.resize(graph_.nodes().size());
    step_.tensors.resize(graph_.tensors().size());
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const NodeId node = lowered_.node_of_operation[i];
      if (!node.is_none()) AddNode(i, node);
    }
    AddInputs();
    MarkGradients();
    MarkUses();
    SetIndexBounds();
    if (!unsupported_.empty()) return UnsupportedTypes();
    CKPLAN_ASSIGN_OR_RETURN(step_.graph, GraphInRunSizes());
    return std::move(step_);
  }

 private:
  TensorId TensorOf(ValueIndex value) const {
    return lowered_.tensor_of_value[static_cast<size_t>(value)];
  }

  // ---- Operands -------------------------------------------------------------------------------

  Operand OperandOf(ValueIndex index) {
    Operand operand;
    if (index == kNoValue) return operand;
    const ModelValue& value = model_.value(index);
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
    const ModelOperation& operation = model_.operations[index];
    const OperationFacts& own = facts_.operations[index];
    const Node& graph_node = graph_.node(id);
    StepNode& node = step_.nodes[id];
    node.spec = SpecOf(model_, operation);
    node.is_random = own.rule->is_random();
    for (size_t i = 0; i < operation.inputs.size(); ++i) AddInput(operation, own, i, node);
    for (const ValueIndex output : operation.outputs) AddOutput(graph_node, output, node);
    for (const TensorId output : graph_node.outputs) {
      if (graph_.tensor(output).kind != TensorKind::kStatistic) continue;
      if (own.rule->statistic != Statistic::kNone) {
        node.statistic = output;
      } else {  // What PyTorch holds beside a saved part (held_storage.h) has no contents here.
        step_.tensors[output] = BytesOperand(graph_.tensor(output).bytes.count());
      }
    }
    if (!node.statistic.is_none()) {
      node.spec.statistic_bytes = StatisticBytes(node.spec, step_.autograd, node.outputs);
      step_.tensors[node.statistic] = BytesOperand(node.spec.statistic_bytes);
    }
    if (own.has_backward) MarkReads(own, node);
  }

  void AddInput(const ModelOperation& operation, const OperationFacts& own, size_t position,
                StepNode& node) {
    const ValueIndex value = operation.inputs[position];
    Operand operand = OperandOf(value);
    Binding binding;
    if (operand.is_present && ReadsContents(*own.rule, position)) {
      if (facts_.value(value).is_batch) {
        binding.tensor = TensorOf(value);
        node.batch_positions.push_back(position);
      } else {
        binding.constant = ConstantOf(value);
        operand.is_read_by_backward = true;
      }
      operand.has_gradient = own.has_backward && own.spec.inputs[position].has_gradient;
      if (operand.has_gradient && !binding.constant.is_none()) {
        node.trained_positions.push_back(position);
      }
    } else if (operand.is_present && own.rule->kind == OpKind::kBatchNorm) {
      ConstantOf(value);  // Training keeps running statistics in memory without reading them.
    }
    node.inputs.push_back(binding);
    node.spec.inputs.push_back(std::move(operand));
  }

  void AddOutput(const Node& graph_node, ValueIndex value, StepNode& node) {
    Operand operand = OperandOf(value);
    TensorId tensor;
    if (operand.is_present) tensor = TensorOf(value);
    const auto& list = graph_node.outputs;
    if (std::find(list.begin(), list.end(), tensor) == list.end()) tensor = TensorId();
    if (!tensor.is_none()) {
      operand.has_gradient = graph_.tensor(tensor).requires_grad;
      step_.tensors[tensor] = operand;
    }
    node.outputs.push_back(tensor);
    node.spec.outputs.push_back(std::move(operand));
  }

  void MarkReads(const OperationFacts& own, StepNode& node) const {
    const BackwardReads reads = FindBackwardReads(own.spec, step_.autograd);
    for (const size_t i : reads.inputs) node.spec.inputs[i].is_read_by_backward = true;
    for (const size_t i : reads.outputs) {
      if (!node.outputs[i].is_none()) node.spec.outputs[i].is_read_by_backward = true;
    }
    if (reads.statistic && node.statistic.is_none() && OutputServesAsStatistic(own.spec)) {
      node.spec.outputs[1].is_read_by_backward = !node.outputs[1].is_none();
    }
  }

  // ---- Constants ------------------------------------------------------------------------------

  // Adds the constants that this one is computed from first. Works without recursion, because
  // chains may be long.
  ConstantId ConstantOf(ValueIndex wanted) {
    std::vector<ValueIndex> waiting = {wanted};
    while (!waiting.empty()) {
      const ValueIndex index = waiting.back();
      const size_t count = waiting.size();
      if (constant_of_[static_cast<size_t>(index)].is_none()) AppendMissing(index, waiting);
      if (waiting.size() > count) continue;
      waiting.pop_back();
      if (constant_of_[static_cast<size_t>(index)].is_none()) MakeConstant(index);
    }
    return constant_of_[static_cast<size_t>(wanted)];
  }

  // Appends the values that this one is computed from and that are not constants yet, in reverse
  // order.
  void AppendMissing(ValueIndex index, std::vector<ValueIndex>& waiting) const {
    if (IsLeaf(index)) return;
    const auto at = static_cast<size_t>(model_.value(index).producer);
    const ModelOperation& operation = model_.operations[at];
    for (size_t i = operation.inputs.size(); i-- > 0;) {
      const ValueIndex input = operation.inputs[i];
      if (!IsReadOperand(operation, facts_.operations[at], index, i)) continue;
      if (constant_of_[static_cast<size_t>(input)].is_none()) waiting.push_back(input);
    }
  }

  bool IsViewOf(const ModelOperation& operation, const OperationFacts& own,
                ValueIndex output) const {
    return IsView(*own.rule, own.spec) && operation.outputs[0] == output;
  }

  bool IsReadOperand(const ModelOperation& operation, const OperationFacts& own, ValueIndex output,
                     size_t position) const {
    if (IsViewOf(operation, own, output)) return position == 0;
    return operation.inputs[position] != kNoValue && ReadsContents(*own.rule, position);
  }

  // All constants that this one is computed from must exist.
  void MakeConstant(ValueIndex index) {
    const ModelValue& value = model_.value(index);
    StepConstant constant;
    constant.name = value.name;
    constant.operand = OperandOf(index);
    if (IsLeaf(index)) {
      constant.is_leaf_in_file = true;
      constant.fill = FillOf(value);
      AddConstant(index, std::move(constant));
      return;
    }
    const auto at = static_cast<size_t>(value.producer);
    const ModelOperation& operation = model_.operations[at];
    const OperationFacts& own = facts_.operations[at];
    if (IsViewOf(operation, own, index)) {
      const ConstantId source = constant_of_[static_cast<size_t>(operation.inputs[0])];
      constant.root = step_.constants[source].root;
      AddConstant(index, std::move(constant));
      return;
    }
    AddConstantOp(operation, own);
  }

  ConstantId AddConstant(ValueIndex index, StepConstant constant) {
    const ConstantId id(step_.constants.size());
    if (constant.root.is_none()) constant.root = id;
    step_.constants.push_back(std::move(constant));
    constant_of_[static_cast<size_t>(index)] = id;
    return id;
  }

  // True if the loader knows the contents or the file has them. A trained literal of many equal
  // numbers is also a leaf: a weight that an old exporter omitted.
  bool IsLeaf(ValueIndex index) const {
    const ModelValue& value = model_.value(index);
    if (value.source != ModelValue::Source::kOperation) return true;
    // A known value that is computed from a weight changes with the weight.
    if (value.constant != nullptr && !facts_.value(index).may_be_trained) return true;
    const std::string& type = model_.operations[static_cast<size_t>(value.producer)].type();
    const ValueFacts& facts = facts_.value(index);
    return type == "Constant" ||
           (type == "ConstantOfShape" && (facts.is_literal || facts.is_frozen));
  }

  std::optional<double> FillOf(const ModelValue& value) const {
    if (value.source != ModelValue::Source::kOperation) return std::nullopt;
    const ModelOperation& producer = model_.operations[static_cast<size_t>(value.producer)];
    if (producer.type() != "ConstantOfShape") return std::nullopt;
    const onnx::AttributeProto* attribute = FindAttribute(*producer.node, "value");
    if (attribute == nullptr) return 0.0;
    const std::optional<ConstantValue> fill = ReadTensor(attribute->t());
    if (!fill || fill->size() != 1) return std::nullopt;
    return fill->is_float() ? fill->reals[0] : static_cast<double>(fill->ints[0]);
  }

  void AddConstantOp(const ModelOperation& operation, const OperationFacts& own) {
    ConstantOp op;
    op.spec = SpecOf(model_, operation);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      const bool is_read = input != kNoValue && ReadsContents(*own.rule, i);
      op.inputs.push_back(is_read ? constant_of_[static_cast<size_t>(input)] : ConstantId());
      Operand operand = OperandOf(input);
      operand.is_read_by_backward = true;
      // MarkGradients determines if it is on the path to a trained leaf.
      operand.has_gradient = is_read && own.reads_trained[i];
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
  }

  // ---- Gradients of constants -----------------------------------------------------------------

  // Marks the path from each use of a trained constant back to its leaves.
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
      SetStatistic(op);
    }
  }

  // A constant operator with a backward saves a statistic, like a node. No plan counts it, so it is
  // the one that kernels read.
  static void SetStatistic(ConstantOp& op) {
    const auto& inputs = op.spec.inputs;
    const auto has_gradient = [](const Operand& input) { return input.has_gradient; };
    if (std::any_of(inputs.begin(), inputs.end(), has_gradient)) {
      op.spec.statistic_bytes = StatisticBytes(op.spec, Autograd::kMinimal, op.outputs);
    }
  }

  void MarkGradient(ConstantId used) {
    std::vector<ConstantId> waiting = {used};
    while (!waiting.empty()) {
      const ConstantId id = waiting.back();
      waiting.pop_back();
      StepConstant& constant = step_.constants[id];
      if (std::exchange(constant.has_gradient, true)) continue;
      if (constant.root != id) {
        waiting.push_back(constant.root);
      } else if (constant.producer < 0) {
        constant.is_trained = true;
      } else {
        AppendDifferentiable(constant.producer, waiting);
      }
    }
  }

  void AppendDifferentiable(int32_t producer, std::vector<ConstantId>& waiting) const {
    const ConstantOp& op = step_.constant_ops[static_cast<size_t>(producer)];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.spec.inputs[i].has_gradient) waiting.push_back(op.inputs[i]);
    }
  }

  // ---- What constants are for -----------------------------------------------------------------

  void MarkUses() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const ModelOperation& operation = model_.operations[i];
      const OperationFacts& own = facts_.operations[i];
      if (!own.is_live || !own.is_batch) continue;
      for (size_t k = 0; k < own.reads_trained.size(); ++k) {
        const ValueIndex value = own.reads_trained[k] ? operation.inputs[k] : kNoValue;
        if (value == kNoValue) continue;
        const ConstantId constant = constant_of_[static_cast<size_t>(value)];
        if (!constant.is_none()) MarkUse(constant, UseOf(operation, k, model_.value(value).dims));
      }
    }
  }

  // Marks all leaves that the constant is computed from. Only the first use counts, for a leaf as
  // for a constant computed from it: once a constant is marked, so are all its leaves.
  void MarkUse(ConstantId operand, const UsedAs& used) {
    if (used.use == ParameterUse::kOther) return;
    std::vector<ConstantId> waiting = {operand};
    while (!waiting.empty()) {
      StepConstant& constant = step_.constants[step_.constants[waiting.back()].root];
      waiting.pop_back();
      if (constant.used.use != ParameterUse::kOther) continue;
      const bool is_leaf = constant.producer < 0;
      if (!is_leaf || constant.is_trained) constant.used = used;
      if (!is_leaf) AppendDifferentiable(constant.producer, waiting);
    }
  }

  void SetIndexBounds() {
    const std::vector<int64_t> bounds = IndexBounds(model_);
    for (size_t i = 0; i < bounds.size(); ++i) {
      if (bounds[i] == 0 || constant_of_[i].is_none()) continue;
      int64_t& bound = step_.constants[step_.constants[constant_of_[i]].root].index_bound;
      bound = bound == 0 ? bounds[i] : std::min(bound, bounds[i]);
    }
    size_t next = 0;
    for (const ValueIndex value : model_.graph_inputs) {
      if (TensorOf(value).is_none()) continue;
      step_.inputs[next++].index_bound = bounds[static_cast<size_t>(value)];
    }
  }

  // ---- The rest -------------------------------------------------------------------------------

  void AddInputs() {
    for (const ValueIndex value : model_.graph_inputs) {
      const TensorId tensor = TensorOf(value);
      if (tensor.is_none()) continue;
      StepInput input;
      input.name = model_.value(value).name;
      input.tensor = tensor;
      input.operand = OperandOf(value);
      step_.tensors[tensor] = input.operand;
      step_.inputs.push_back(std::move(input));
    }
  }

  // Computes sizes in the types of the run: statistics in the type of an operator's activations are
  // float32 here, whatever the planner counted.
  template <typename IdType>
  static int64_t StatisticBytes(const OpSpec& spec, Autograd autograd,
                                const std::vector<IdType>& outputs) {
    std::vector<bool> is_stored;
    for (const IdType output : outputs) is_stored.push_back(!output.is_none());
    const auto saved = StatisticOf(spec, autograd, is_stored);
    return saved.has_value() ? saved->bytes.count() : 0;  // nullopt if the type is refused anyway.
  }

  static Operand BytesOperand(int64_t bytes) {
    Operand operand;
    operand.is_present = true;
    operand.type = ElementType::kBool;  // Represents one-byte elements.
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
            "{}: {} tensors have unsupported types; only float, int32, int64 and bool can be run",
            model_.identity.name, unsupported_.size()));
    error.notes.assign(unsupported_.begin(), unsupported_.end());
    return error;
  }

  const Model::Impl& model_;
  const ModelGraph& lowered_;
  const TensorGraph& graph_;
  const ModelFacts facts_;
  const bool stores_bfloat16_;
  std::vector<ConstantId> constant_of_;  // By value.
  std::set<std::string> unsupported_;
  std::set<int32_t> other_floats_;
  StepGraph step_;
};

}  // namespace

Result<StepGraph> BuildStepGraph(const Model& model, const ModelGraph& lowered, Autograd autograd) {
  return Builder(model.impl(), lowered, autograd).Build();
}

}  // namespace ckplan
