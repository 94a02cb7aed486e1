// Implements LowerModel, which turns a Model into the TensorGraph of its training step: see
// model.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lib/base/lists.h"
#include "lib/base/stop.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/dead_ends.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/held_storage.h"
#include "lib/files/model/input_uses.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/module_calls.h"
#include "lib/files/model/origin.h"
#include "lib/files/model/parameters.h"
#include "lib/files/model/signature.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/op_hint.h"
#include "lib/problem/ops/op_table.h"
#include "lib/problem/ops/work.h"

namespace ckplan {
namespace {

// ---- Parameters that several operations of a training step train ----

// Disjoint sets of values that can be merged. Each set is represented by a member.
class ValueSets {
 public:
  explicit ValueSets(size_t values) : parent_(values) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  ValueIndex Find(ValueIndex value) {
    while (Parent(value) != value) {
      Parent(value) = Parent(Parent(value));
      value = Parent(value);
    }
    return value;
  }
  void Merge(ValueIndex a, ValueIndex b) { Parent(Find(b)) = Find(a); }

 private:
  ValueIndex& Parent(ValueIndex value) { return parent_[static_cast<size_t>(value)]; }
  std::vector<ValueIndex> parent_;
};

// Groups each weight with all values computed from it before the step.
ValueSets WeightsOf(const Model::Impl& model, const ModelFacts& facts) {
  ValueSets sets(model.values.size());
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const ModelOperation& operation = model.operations[i];
    const OperationFacts& own = facts.operations[i];
    if (own.is_batch || operation.output(0) == kNoValue) continue;
    for (size_t k = 0; k < operation.inputs.size(); ++k) {
      if (own.reads_trained[k]) sets.Merge(operation.outputs[0], operation.inputs[k]);
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue) continue;
      const ValueFacts& made = facts.value(output);
      if (made.may_be_trained || made.is_literal) sets.Merge(operation.outputs[0], output);
    }
  }
  return sets;
}

// Returns, for each operation, the numbers of the parameters that it shares with other operations,
// ascending; see Node::shared_parameters. Parameters that are combined before the step (a weight
// used in two parts) share a number. O(operations).
std::vector<std::vector<int32_t>> FindSharedParameters(const Model::Impl& model,
                                                       const ModelFacts& facts) {
  ValueSets weights = WeightsOf(model, facts);
  std::vector<std::set<ValueIndex>> trained(model.operations.size());
  std::map<ValueIndex, int> users;
  for (size_t i = 0; i < model.operations.size(); ++i) {
    const OperationFacts& own = facts.operations[i];
    if (!own.is_live || !own.has_backward) continue;
    for (size_t k = 0; k < own.reads_trained.size(); ++k) {
      if (own.reads_trained[k]) trained[i].insert(weights.Find(model.operations[i].inputs[k]));
    }
    for (const ValueIndex weight : trained[i]) ++users[weight];
  }
  std::map<ValueIndex, int32_t> numbers;
  std::vector<std::vector<int32_t>> shared(model.operations.size());
  for (size_t i = 0; i < model.operations.size(); ++i) {
    for (const ValueIndex weight : trained[i]) {
      if (users.at(weight) == 1) continue;
      const auto next = static_cast<int32_t>(numbers.size());
      shared[i].push_back(numbers.try_emplace(weight, next).first->second);
    }
    std::sort(shared[i].begin(), shared[i].end());
  }
  return shared;
}

// ---- Lowering ----

class Lowerer {
 public:
  Lowerer(const Model::Impl& model, const LowerOptions& options)
      : model_(model),
        options_(options),
        facts_(FindFacts(model)),
        shared_parameters_(FindSharedParameters(model, facts_)),
        tensors_(model.values.size()),
        is_read_(model.values.size(), false),
        nodes_(model.operations.size()) {}

  Result<ModelGraph> Lower() {
    if (facts_.outputs.empty()) {
      Error error = MakeError(ErrorCode::kInvalidInput,
                              fmt::format("{}: no output is a float tensor that depends on the "
                                          "inputs, so there is nothing to train",
                                          model_.identity.name));
      SuggestEnds(model_, &error);
      if (error.remedy.settings.empty()) error.message += "; give the model such an output";
      return error;
    }
    FindReadValues();
    if (IsEager()) FindRests();
    AddInputs();
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      PollStop();
      if (facts_.operations[i].is_live && !facts_.operations[i].is_view) AddNode(i);
    }
    for (const ValueIndex output : facts_.outputs) parts_.outputs.push_back(TensorOf(output));
    if (options_.cost.kind == CostKind::kFile) {
      CKPLAN_RETURN_IF_ERROR(SetMeasuredCosts(options_.cost.path, parts_.nodes));
    }
    if (!options_.workspaces.empty()) {
      CKPLAN_RETURN_IF_ERROR(SetWorkspaces(options_.workspaces, parts_.nodes));
    }
    parts_.name = model_.identity.name;
    const std::vector<SignatureBuffer> buffers = UncountedBuffers();
    parts_.parameters = facts_.parameters;
    for (const SignatureBuffer& buffer : buffers) parts_.parameters += buffer.bytes;
    parts_.parameter_gradients = facts_.parameter_gradients;
    parts_.optimized_tensors = TrainedTensors();
    CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph, TensorGraph::Create(std::move(parts_)));
    ModuleCalls modules = ReadModuleCalls(model_, nodes_, graph.nodes().size());
    std::vector<Parameter> parameters;
    if (options_.lists_parameters) {
      parameters = ListParameters(model_, facts_, nodes_);
      for (const SignatureBuffer& buffer : buffers) {
        parameters.push_back({buffer.name, Parameter::Kind::kBuffer, buffer.bytes, 1, 1, {}});
      }
    }
    return ModelGraph{std::move(graph),  Roles(),
                      Warnings(),        TensorsOfValues(),
                      std::move(nodes_), std::move(modules),
                      AbsentValues(),    std::move(parameters),
                      std::move(works_)};
  }

 private:
  // Returns the signature's buffers that ModelFacts::parameters does not count: integers, such as
  // positions and counters.
  std::vector<SignatureBuffer> UncountedBuffers() const {
    std::unordered_set<std::string_view> counted;
    for (const ValueIndex value : facts_.counted) counted.insert(model_.value(value).name);
    std::vector<SignatureBuffer> others = BuffersOfSignature(model_);
    std::erase_if(others, [&](const SignatureBuffer& one) { return counted.contains(one.name); });
    return others;
  }

  std::vector<OptimizedTensors> TrainedTensors() const {
    std::vector<OptimizedTensors> tensors;
    for (const ValueIndex trained : facts_.trained) {
      const ModelValue& value = model_.value(trained);
      const int64_t elements = ElementCount(value.dims).value_or(0);
      if (elements > 0) tensors.push_back({elements, value.bytes.count() / elements, 1});
    }
    return Merged(std::move(tensors));
  }

  // ---- Tensors --------------------------------------------------------------------------------

  TensorId TensorOf(ValueIndex value) const {
    return tensors_[static_cast<size_t>(facts_.value(value).root)];
  }

  TensorId AddTensor(std::string name, Bytes bytes, TensorKind kind, bool requires_grad) {
    Tensor tensor;
    tensor.file_id = static_cast<int64_t>(parts_.tensors.size());
    tensor.name = std::move(name);
    tensor.bytes = bytes;
    tensor.kind = kind;
    tensor.requires_grad = requires_grad;
    return parts_.tensors.push_back(std::move(tensor));
  }

  // Optional outputs without readers are not produced.
  void FindReadValues() {
    for (const ValueIndex output : facts_.outputs) is_read_[static_cast<size_t>(output)] = true;
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const ModelOperation& operation = model_.operations[i];
      const OperationFacts& own = facts_.operations[i];
      if (!own.is_live || own.is_view) continue;
      for (size_t k = 0; k < operation.inputs.size(); ++k) {
        if (operation.inputs[k] == kNoValue || !ReadsContents(*own.rule, k)) continue;
        is_read_[static_cast<size_t>(facts_.value(operation.inputs[k]).root)] = true;
      }
    }
  }

  void AddInputs() {
    for (const ValueIndex input : model_.graph_inputs) {
      const ModelValue& value = model_.value(input);
      tensors_[static_cast<size_t>(input)] =
          AddTensor(value.name, value.bytes, TensorKind::kInput, false);
    }
  }

  // True if the step is PyTorch's own, with everything that its operations allocate. Other readings
  // of the file keep their figures.
  bool IsEager() const { return model_.is_captured && IsTorch(options_.autograd); }

  // ---- Nodes ----------------------------------------------------------------------------------

  void AddNode(size_t index) {
    const ModelOperation& operation = model_.operations[index];
    const OperationFacts& own = facts_.operations[index];
    Node node;
    node.file_id = static_cast<int64_t>(parts_.nodes.size());
    node.name = operation.name;
    node.op = own.spec.type;
    node.is_random = own.rule->is_random();
    node.shared_parameters = std::move(shared_parameters_[index]);
    node.parameter_gradients = own.parameter_gradients;
    AddInputsOf(operation, own, node);
    const std::vector<bool> is_tensor = AddOutputsOf(operation, node);
    AddRests(index, node);
    BackwardReads backward;
    Bytes statistic;
    TensorId statistic_tensor;
    if (own.has_backward) {
      backward = FindBackwardReads(own.spec, options_.autograd);
      const auto saved = StatisticOf(own.spec, options_.autograd, is_tensor);
      if (backward.statistic && saved.has_value()) {
        statistic = saved->bytes;
        statistic_tensor = AddTensor(fmt::format("{}:{}", node.name, saved->suffix), saved->bytes,
                                     TensorKind::kStatistic, false);
        node.outputs.push_back(statistic_tensor);
      }
      AddReads(operation, own, backward, statistic_tensor, node);
      AddHeldRests(index, node);
      AddPassthrough(operation, own, node);
      // PyTorch computes a weight's whole gradient before adding it to that of another use.
      if (IsEager()) {
        node.backward_workspace =
            std::max(own.added_gradients,
                     EagerTemporaries(own.spec) + TemporariesByOrigin(operation, own.spec));
      }
    }
    AddInPlace(operation, own, node);
    if (options_.cost.kind != CostKind::kFile) {
      works_.push_back(WorkOf(own.spec, backward, statistic));
      const OpCost cost = CostOf(options_.cost, works_.back());
      node.forward_cost = cost.forward;
      node.backward_cost = own.has_backward ? cost.backward : Cost(0);
    }
    if (!own.rule->is_known() && !own.spec.Has(kHintedInputs)) {
      unknown_[node.op].push_back(node.name);
    }
    nodes_[index] = parts_.nodes.push_back(std::move(node));
  }

  // Temporary tensors of gradients that depend on which PyTorch operation the node was. clamp
  // compares its input with each bound; hardtanh and relu6 are exported as a Clip as well, but have
  // a kernel for their gradient. Selecting by indices, unlike an embedding, adds to a copy of
  // zeros.
  Bytes TemporariesByOrigin(const ModelOperation& operation, const OpSpec& spec) const {
    if (spec.type != "Clip" && spec.type != "Gather") return Bytes(0);
    const Origin origin = OriginOf(model_, operation);
    if (spec.type == "Gather") {
      const bool adds = origin.Is("aten.index_select") || origin.Is("aten.index");
      return adds && spec.input(0).has_gradient ? Bytes(spec.input(0).bytes()) : Bytes(0);
    }
    if (!origin.target.starts_with("aten.clamp")) return Bytes(0);
    const int64_t bounds = spec.input(1).is_present + spec.input(2).is_present;
    return Bytes(SaturatingProduct({bounds, spec.output(0).elements()}));
  }

  void AddInputsOf(const ModelOperation& operation, const OperationFacts& own, Node& node) const {
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      if (input == kNoValue || !facts_.value(input).is_batch) continue;
      if (ReadsContents(*own.rule, i)) node.inputs.push_back(TensorOf(input));
    }
  }

  // Returns by position whether the output exists as a tensor.
  std::vector<bool> AddOutputsOf(const ModelOperation& operation, Node& node) {
    std::vector<bool> is_tensor(operation.outputs.size(), false);
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      const ValueIndex output = operation.outputs[i];
      if (output == kNoValue || !is_read_[static_cast<size_t>(output)]) continue;
      const ModelValue& value = model_.value(output);
      const TensorId tensor = AddTensor(value.name, value.bytes, TensorKind::kActivation,
                                        facts_.value(output).requires_grad);
      tensors_[static_cast<size_t>(output)] = tensor;
      node.outputs.push_back(tensor);
      is_tensor[i] = true;
    }
    return is_tensor;
  }

  // Lists only tensors, because parameters and constants always exist.
  void AddReads(const ModelOperation& operation, const OperationFacts& own,
                const BackwardReads& backward, TensorId statistic, Node& node) const {
    UniqueAppender reads(node.backward_reads);
    const auto add = [&reads](TensorId tensor) {
      if (!tensor.is_none()) reads.Append(tensor);
    };
    for (const size_t i : backward.inputs) {
      const ValueIndex input = operation.inputs[i];
      if (facts_.value(input).is_batch && ReadsContents(*own.rule, i)) {
        add(TensorOf(input));
      }
    }
    for (const size_t i : backward.outputs) {
      if (operation.output(i) != kNoValue) add(tensors_[static_cast<size_t>(operation.outputs[i])]);
    }
    if (!backward.statistic) return;
    const bool uses_own_indices = statistic.is_none() && OutputServesAsStatistic(own.spec);
    add(uses_own_indices ? tensors_[static_cast<size_t>(operation.outputs[1])] : statistic);
  }

  // ---- Memory that is held because a part of it is saved: see held_storage.h ------------------

  void FindRests() {
    rests_ = FindHeldRests(model_, facts_, options_.autograd);
    rest_tensors_.resize(rests_.size());
    for (size_t i = 0; i < rests_.size(); ++i) {
      rests_made_by_[rests_[i].maker].push_back(i);
      for (const size_t holder : rests_[i].holders) rests_held_by_[holder].push_back(i);
    }
  }

  void AddRests(size_t index, Node& node) {
    const auto made = rests_made_by_.find(index);
    if (made == rests_made_by_.end()) return;
    for (const size_t rest : made->second) {
      const std::string name = fmt::format("{}:rest", model_.value(rests_[rest].storage).name);
      rest_tensors_[rest] = AddTensor(name, rests_[rest].bytes, TensorKind::kStatistic, false);
      node.outputs.push_back(rest_tensors_[rest]);
    }
  }

  void AddHeldRests(size_t index, Node& node) const {
    const auto held = rests_held_by_.find(index);
    if (held == rests_held_by_.end()) return;
    for (const size_t rest : held->second) {
      if (rests_[rest].maker != index) node.inputs.push_back(rest_tensors_[rest]);
      node.backward_reads.push_back(rest_tensors_[rest]);
    }
  }

  // If an input contributes without a change of shape, the output's gradient serves as its
  // gradient.
  void AddPassthrough(const ModelOperation& operation, const OperationFacts& own,
                      Node& node) const {
    if (IsCarried(operation, own)) {
      node.gradient_passthrough.push_back(TensorOf(operation.inputs[0]));
      return;
    }
    if (own.rule->kind != OpKind::kAdd && own.rule->kind != OpKind::kSub) return;
    const bool is_sub = own.rule->kind == OpKind::kSub;
    UniqueAppender passed(node.gradient_passthrough);
    for (size_t i = 0; i < (is_sub ? 1 : operation.inputs.size()); ++i) {
      if (!HasShapeOfOutput(operation, i)) continue;
      const ValueFacts& input = facts_.value(operation.inputs[i]);
      if (!input.is_batch || !input.requires_grad) continue;
      // In Sub(x, x) and similar operations, the same tensor can't both pass through and not.
      const TensorId tensor = TensorOf(operation.inputs[i]);
      if (is_sub && std::count(node.inputs.begin(), node.inputs.end(), tensor) > 1) continue;
      passed.Append(tensor);
    }
  }

  // True if the operation produces or reads integers that represent rounded floats. Their gradient
  // is that of the floats, whatever their type.
  bool IsCarried(const ModelOperation& operation, const OperationFacts& own) const {
    const ValueIndex input = operation.input(0);
    const ValueIndex output = operation.output(0);
    return input != kNoValue && output != kNoValue && own.spec.inputs[0].has_gradient &&
           facts_.value(input).is_batch &&
           (facts_.value(input).is_rounded || facts_.value(output).is_rounded) &&
           ElementCount(model_.value(input).dims) == ElementCount(model_.value(output).dims);
  }

  // If the file does not mark in-place operations, any activation may have been one. PyTorch adds
  // the bias of a linear layer in place.
  bool MayBeInPlace(const ModelOperation& operation, const OperationFacts& own) const {
    if (own.rule->kind == OpKind::kAdd && OriginOf(model_, operation).Is("aten.linear"))
      return true;
    return model_.tells_in_place ? IsInPlace(own.spec) : own.rule->has(traits::kActivation);
  }

  void AddInPlace(const ModelOperation& operation, const OperationFacts& own, Node& node) const {
    if (!own.rule->is_elementwise() || operation.output(0) == kNoValue) return;
    if (IsEager() && !MayBeInPlace(operation, own)) return;
    const TensorId output = tensors_[static_cast<size_t>(operation.outputs[0])];
    if (output.is_none()) return;
    std::vector<TensorId> inputs;
    UniqueAppender fitting(inputs);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!HasShapeOfOutput(operation, i) || !facts_.value(operation.inputs[i]).is_batch) continue;
      if (!ReadsContents(*own.rule, i)) continue;
      const TensorId input = TensorOf(operation.inputs[i]);
      if (parts_.tensors[input].kind == TensorKind::kActivation) fitting.Append(input);
    }
    for (const TensorId input : inputs) node.in_place.push_back({output, input});
  }

  bool HasShapeOfOutput(const ModelOperation& operation, size_t input) const {
    if (operation.input(input) == kNoValue || operation.output(0) == kNoValue) return false;
    const ModelValue& from = model_.value(operation.inputs[input]);
    const ModelValue& to = model_.value(operation.outputs[0]);
    return from.dims == to.dims && from.bytes == to.bytes &&
           IsFloatType(from.elem_type) == IsFloatType(to.elem_type);
  }

  // ---- The rest -------------------------------------------------------------------------------

  std::vector<TensorId> TensorsOfValues() const {
    std::vector<TensorId> tensors(model_.values.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (facts_.values[i].is_batch) tensors[i] = TensorOf(static_cast<ValueIndex>(i));
    }
    return tensors;
  }

  std::vector<AbsentValue> AbsentValues() const {
    using Kind = AbsentValue::Kind;
    std::vector<AbsentValue> absent;
    for (size_t i = 0; i < model_.values.size(); ++i) {
      const auto value = static_cast<ValueIndex>(i);
      const std::string& name = model_.value(value).name;
      const bool is_batch = facts_.value(value).is_batch;
      const bool is_view = facts_.value(value).root != value;
      const TensorId tensor = is_batch ? TensorOf(value) : TensorId();
      if (name.empty() || (!tensor.is_none() && !is_view)) continue;
      const Kind kind = !is_batch          ? Kind::kConstant
                        : tensor.is_none() ? Kind::kUnread
                                           : Kind::kView;
      absent.push_back({name, kind, tensor});
    }
    return absent;
  }

  std::vector<ModelNodeRole> Roles() const {
    std::vector<ModelNodeRole> roles(static_cast<size_t>(model_.proto->graph().node_size()));
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      ModelNodeRole& role = roles[static_cast<size_t>(model_.operations[i].file_node)];
      if (role.role == NodeRole::kNode) continue;
      if (!nodes_[i].is_none()) {
        role = {NodeRole::kNode, nodes_[i]};
      } else if (facts_.operations[i].is_view) {
        role.role = NodeRole::kView;
      }
    }
    return roles;
  }

  std::vector<std::string> Warnings() const {
    std::vector<std::string> warnings;
    const bool has_frozen = std::any_of(model_.values.begin(), model_.values.end(),
                                        [](const ModelValue& value) { return value.is_frozen; });
    if (facts_.parameter_gradients == Bytes(0) && has_frozen) {
      warnings.push_back(fmt::format(
          "{}: all parameters are frozen, so nothing has a gradient; exclude those that are "
          "trained",
          model_.identity.name));
    } else if (facts_.parameter_gradients == Bytes(0)) {
      warnings.push_back(
          fmt::format("{}: no trained parameter was found, so nothing has a gradient; if weights "
                      "are inputs of the file, name them with --weights{}",
                      model_.identity.name, SuggestedWeights()));
    }
    if (!facts_.rounding.empty()) {
      std::vector<std::string> shown;
      for (const int32_t i : facts_.rounding) {
        const ModelOperation& operation = model_.operations[static_cast<size_t>(i)];
        shown.push_back(fmt::format("{} \"{}\"", operation.type(), ShortName(operation.name)));
      }
      warnings.push_back(
          fmt::format("{}: gradients pass straight through rounding, as in quantization-aware "
                      "training ({}); --rounding no-gradient ends them there",
                      model_.identity.name, ShortList(shown, 3)));
    }
    if (const std::string quantized = QuantizedWarning(); !quantized.empty()) {
      warnings.push_back(fmt::format("{}: {}", model_.identity.name, quantized));
    }
    for (const auto& [op, names] : unknown_) {
      std::vector<std::string> shown;
      for (const std::string& name : names) shown.push_back(fmt::format("\"{}\"", ShortName(name)));
      warnings.push_back(
          fmt::format("{}: operator {} is unknown: its cost is that of moving its bytes, and its "
                      "backward is assumed to read all its inputs and outputs ({})",
                      model_.identity.name, op, ShortList(shown, 3)));
    }
    return warnings;
  }

  // True if an operator reads the input as a weight or adds it as a vector.
  bool IsReadAsWeight(ValueIndex input) const {
    const bool is_vector = model_.value(input).dims.size() == 1;
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const std::vector<ValueIndex>& inputs = model_.operations[i].inputs;
      const OpRule& rule = *facts_.operations[i].rule;
      if (!rule.has(traits::kWeights) && !(is_vector && rule.has(traits::kVectors))) continue;
      const size_t first = rule.has(traits::kWeights) ? 1 : 0;
      if (inputs.size() <= first) continue;
      const auto begin = inputs.begin() + static_cast<std::ptrdiff_t>(first);
      if (std::find(begin, inputs.end(), input) != inputs.end()) return true;
    }
    return false;
  }

  // Returns patterns for the inputs that operators read as weights: " k1,b1,k2" or, if there are
  // many, " '!x,!labels'" to exclude all others. Empty if there are none.
  std::string SuggestedWeights() const {
    constexpr size_t kMaxShown = 6;
    std::vector<std::string> weights, others;
    for (const ValueIndex input : model_.graph_inputs) {
      const std::string pattern = AsPattern(model_.value(input).name);
      if (IsFloatType(model_.value(input).elem_type) && IsReadAsWeight(input)) {
        weights.push_back(pattern);
      } else {
        others.push_back("!" + pattern);
      }
    }
    if (weights.empty()) return "";
    if (weights.size() <= kMaxShown) return fmt::format(" {}", fmt::join(weights, ","));
    if (!others.empty() && others.size() <= kMaxShown) {
      return fmt::format(" '{}'", fmt::join(others, ","));
    }
    weights.resize(kMaxShown);
    return fmt::format(" {} and so on", fmt::join(weights, ","));
  }

  std::vector<bool> FindZeroPoints() const {
    constexpr size_t kZeroPoint = 2, kZeroPointOfNBits = 3;
    std::vector<bool> are_zero_points(model_.values.size(), false);
    for (const ModelOperation& operation : model_.operations) {
      const std::string& type = operation.type();
      const bool is_packed = type == "MatMulNBits";
      if (type != "QuantizeLinear" && type != "DequantizeLinear" && !is_packed) continue;
      const ValueIndex zero_point = operation.input(is_packed ? kZeroPointOfNBits : kZeroPoint);
      if (zero_point != kNoValue) are_zero_points[static_cast<size_t>(zero_point)] = true;
    }
    return are_zero_points;
  }

  // Zero points need no warning. Those of other operators have one element.
  std::string QuantizedWarning() const {
    const std::vector<bool> are_zero_points = FindZeroPoints();
    std::vector<std::string> shown;
    for (const ValueIndex index : facts_.quantized) {
      const ModelValue& value = model_.value(index);
      if (ElementCount(value.dims).value_or(0) <= 1) continue;
      if (are_zero_points[static_cast<size_t>(index)]) continue;
      shown.push_back(
          fmt::format("\"{}\" {}", ShortName(value.name), TypeText(value.elem_type, value.dims)));
    }
    if (shown.empty()) return "";
    return fmt::format(
        "weights are quantized ({}): they count as stored, without gradients and without the "
        "floats "
        "computed from them; to plan their training, use the model from before",
        ShortList(shown, 3));
  }

  const Model::Impl& model_;
  const LowerOptions& options_;
  const ModelFacts facts_;
  std::vector<std::vector<int32_t>> shared_parameters_;  // By operation.
  std::vector<TensorId> tensors_;  // By value; views use another value's tensor.
  std::vector<bool> is_read_;      // By value.
  std::vector<HeldRest> rests_;
  std::vector<TensorId> rest_tensors_;  // For each rest, once its maker has a node.
  std::map<size_t, std::vector<size_t>> rests_made_by_;  // By operation.
  std::map<size_t, std::vector<size_t>> rests_held_by_;
  TensorGraphParts parts_;
  std::vector<NodeId> nodes_;  // By operation; invalid if it is not a node.
  std::vector<OpWork> works_;  // By node.
  std::map<std::string, std::vector<std::string>> unknown_;
};

}  // namespace

Result<ModelGraph> LowerModel(const Model& model, const LowerOptions& options) {
  return Lowerer(model.impl(), options).Lower();
}

}  // namespace ckplan
