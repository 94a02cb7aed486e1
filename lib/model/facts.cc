#include "lib/model/facts.h"

#include <algorithm>

#include "lib/base/unique_list.h"
#include "lib/model/op_spec_of.h"
#include "lib/ops/op_rules.h"
#include "lib/ops/tensor_type.h"

namespace ckplan {

namespace {

// A literal counts as a weight if the operator applies weights, or if it is a vector (a bias, a
// scale: one dimension above 1) that is added or multiplied. An added matrix is a mask; a branch of
// Where or a part of Concat is a bound or padding.
bool TakesLiteralWeights(const OpRule& rule, const Dims& dims) {
  if (rule.has(traits::kWeights)) return true;
  const auto wide = std::count_if(dims.begin(), dims.end(), [](int64_t dim) { return dim > 1; });
  return wide == 1 && rule.has(traits::kVectors);
}

// Returns whether integers of this type are too narrow for sizes and indices: they are quantized
// weights or zero points.
bool IsQuantized(int32_t elem_type) {
  const TensorType type = TensorTypeOf(elem_type);
  const int64_t bits = BitsOf(type);
  return bits > 0 && bits <= 8 && type != TensorType::kBool && !IsFloat(type);
}

class FactFinder {
 public:
  explicit FactFinder(const Model::Impl& model) : model_(model) {
    facts_.values.resize(model.values.size());
    facts_.operations.resize(model.operations.size());
  }

  ModelFacts Find() {
    MarkSources();
    for (size_t i = 0; i < model_.operations.size(); ++i) VisitForward(i);
    FindOutputs();
    MarkLive();
    CountParameters();
    return std::move(facts_);
  }

 private:
  void MarkSources() {
    for (size_t i = 0; i < model_.values.size(); ++i) {
      const ModelValue& value = model_.values[i];
      ValueFacts& facts = facts_.values[i];
      facts.root = static_cast<ValueIndex>(i);
      facts.is_batch = value.source == ModelValue::Source::kGraphInput;
      facts.is_frozen = value.is_frozen;
      facts.may_be_trained = value.source == ModelValue::Source::kInitializer &&
                             IsFloatType(value.elem_type) && !value.is_frozen;
    }
  }

  void VisitForward(size_t index) {
    const ModelOperation& operation = model_.operations[index];
    OperationFacts& facts = facts_.operations[index];
    facts.spec = PlannedSpecOf(model_, operation);
    facts.rule = &RuleOf(facts.spec.type);
    facts.is_batch = DependsOnBatch(operation, *facts.rule);
    if (!facts.is_batch) return VisitConstant(operation, facts);
    facts.is_view = operation.input(0) != kNoValue && facts_.value(operation.inputs[0]).is_batch &&
                    IsView(*facts.rule, facts.spec);
    FindTrainedOperands(operation, facts);
    const bool has_gradient = FindGradients(operation, facts);
    VisitOutputs(operation, has_gradient, facts);
  }

  void VisitOutputs(const ModelOperation& operation, bool has_gradient, OperationFacts& facts) {
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == kNoValue) continue;
      ValueFacts& output = facts_.value(operation.outputs[i]);
      // Updated running statistics are state between steps, not results of this step.
      if (facts.rule->kind == OpKind::kBatchNorm && i > 0) continue;
      output.is_batch = true;
      const bool is_float = IsFloatType(model_.value(operation.outputs[i]).elem_type);
      output.requires_grad = has_gradient && is_float && PassesGradient(*facts.rule, i);
      facts.spec.outputs[i].has_gradient = output.requires_grad;
      facts.has_backward = facts.has_backward || output.requires_grad;
      if (facts.is_view && i == 0) output.root = facts_.value(operation.inputs[0]).root;
    }
    facts.has_backward = facts.has_backward && !facts.is_view;
  }

  bool DependsOnBatch(const ModelOperation& operation, const OpRule& rule) const {
    const bool is_folded =
        !operation.outputs.empty() &&
        std::all_of(operation.outputs.begin(), operation.outputs.end(), [this](ValueIndex output) {
          return output == kNoValue || model_.value(output).constant != nullptr;
        });
    if (is_folded) return false;
    if (rule.kind == OpKind::kRandom || rule.kind == OpKind::kRandomLike) return true;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (operation.inputs[i] != kNoValue && facts_.value(operation.inputs[i]).is_batch &&
          ReadsContents(rule, i)) {
        return true;
      }
    }
    return false;
  }

  // ---- Constants ------------------------------------------------------------------------------

  void VisitConstant(const ModelOperation& operation, const OperationFacts& own) {
    bool may_be_trained = false;
    bool is_literal = IsLiteral(operation);
    bool is_frozen = false;
    const OpRule& rule = *own.rule;
    const bool passes_training = !rule.has(traits::kWave);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!IsDifferentiable(rule, own.spec, i)) continue;
      const ValueFacts& input = facts_.value(operation.inputs[i]);
      may_be_trained = may_be_trained || (input.may_be_trained && passes_training &&
                                          !IsPlainNumber(rule, operation.inputs[i]));
      is_literal = is_literal || (input.is_literal && i == 0 && rule.is_movement());
      is_frozen = is_frozen || input.is_frozen;
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue || !IsFloatType(model_.value(output).elem_type)) continue;
      ValueFacts& facts = facts_.value(output);
      facts.may_be_trained = may_be_trained;
      facts.is_literal = is_literal && !may_be_trained && !facts.is_frozen;
      facts.is_frozen = facts.is_frozen || (is_frozen && !may_be_trained && !is_literal);
    }
  }

  // Returns whether the operation makes a tensor of more than one element whose contents are
  // written in the file.
  bool IsLiteral(const ModelOperation& operation) const {
    if (operation.output(0) == kNoValue) return false;
    if (ElementCount(model_.value(operation.outputs[0]).dims) == 1) return false;
    const OpKind kind = KindOf(operation);
    if (kind == OpKind::kLiteral) return true;
    if (kind != OpKind::kFill || operation.input(0) == kNoValue) return false;
    const ModelValue& shape = model_.value(operation.inputs[0]);
    return shape.source != ModelValue::Source::kOperation ||
           KindOf(model_.operations[static_cast<size_t>(shape.producer)]) == OpKind::kLiteral;
  }

  // Operations are visited in the order in which they run, so the producers of this one are known.
  OpKind KindOf(const ModelOperation& operation) const {
    return facts_.operations[static_cast<size_t>(&operation - model_.operations.data())].rule->kind;
  }

  // Finds the trained constants that a step reads, and the initializers that they are computed
  // from.
  void FindTrainedOperands(const ModelOperation& operation, OperationFacts& facts) {
    facts.reads_trained.assign(operation.inputs.size(), false);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      if (input == kNoValue || facts_.value(input).is_batch) continue;
      const bool is_trained =
          IsDifferentiable(*facts.rule, facts.spec, i) && IsTrainedHere(*facts.rule, input);
      facts.reads_trained[i] = is_trained;
      uses_.push_back({input, is_trained, static_cast<int32_t>(&facts - facts_.operations.data())});
    }
  }

  // Exporters move plain numbers (a scale, an epsilon, the branches of a mask) into initializers of
  // one element.
  bool IsPlainNumber(const OpRule& rule, ValueIndex input) const {
    return ElementCount(model_.value(input).dims) == 1 && !rule.has(traits::kWeights);
  }

  bool IsTrainedHere(const OpRule& rule, ValueIndex input) const {
    const ValueFacts& facts = facts_.value(input);
    if (IsPlainNumber(rule, input)) return false;
    if (facts.may_be_trained) return true;
    return facts.is_literal && TakesLiteralWeights(rule, model_.value(input).dims);
  }

  // ---- Gradients ------------------------------------------------------------------------------

  // Returns whether the operation has any gradients.
  bool FindGradients(const ModelOperation& operation, OperationFacts& facts) const {
    bool has_any = false;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!IsDifferentiable(*facts.rule, facts.spec, i)) continue;
      const bool has_gradient =
          facts.reads_trained[i] || facts_.value(operation.inputs[i]).requires_grad;
      facts.spec.inputs[i].has_gradient = has_gradient;
      has_any = has_any || has_gradient;
    }
    return has_any;
  }

  void FindOutputs() {
    UniqueAppender outputs(facts_.outputs);
    for (const ValueIndex output : model_.graph_outputs) {
      const ValueFacts& facts = facts_.value(output);
      const ModelValue& value = model_.value(facts.root);
      if (!facts.is_batch || !IsFloatType(model_.value(output).elem_type)) continue;
      // The input is passed through unchanged.
      if (value.source == ModelValue::Source::kGraphInput) continue;
      outputs.Append(facts.root);
    }
  }

  void MarkLive() {
    std::vector<bool> is_needed(model_.values.size(), false);
    for (const ValueIndex output : facts_.outputs) is_needed[static_cast<size_t>(output)] = true;
    for (size_t i = model_.operations.size(); i-- > 0;) {
      const ModelOperation& operation = model_.operations[i];
      OperationFacts& facts = facts_.operations[i];
      if (!facts.is_batch || facts.is_view) {
        facts.is_live = facts.is_view;
        continue;
      }
      facts.is_live =
          std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](ValueIndex output) {
            return output != kNoValue && is_needed[static_cast<size_t>(output)];
          });
      if (!facts.is_live) continue;
      for (size_t k = 0; k < operation.inputs.size(); ++k) {
        if (operation.inputs[k] == kNoValue || !ReadsContents(*facts.rule, k)) continue;
        is_needed[static_cast<size_t>(facts_.value(operation.inputs[k]).root)] = true;
      }
    }
  }

  // ---- Parameters -----------------------------------------------------------------------------

  void CountParameters() {
    RootMarks trained(model_.values.size());
    RootMarks buffers(model_.values.size());
    RootMarks state(model_.values.size());  // Running mean and variance.
    for (auto use = uses_.rbegin(); use != uses_.rend(); ++use) {
      const OperationFacts& reader = facts_.operations[static_cast<size_t>(use->operation)];
      if (!reader.is_live) continue;
      const bool is_norm = reader.rule->kind == OpKind::kBatchNorm;
      MarkRoots(*use, use->is_trained ? trained : is_norm ? state : buffers);
    }
    for (size_t i = 0; i < model_.values.size(); ++i) {
      const ModelValue& value = model_.values[i];
      const bool is_state = trained.is_root[i] || state.is_root[i];
      // Other untrained literals are part of the program, not of the model's state.
      const bool is_initializer = value.source == ModelValue::Source::kInitializer;
      const bool is_buffer = buffers.is_root[i] && (is_initializer || value.is_frozen);
      if (!is_state && !is_buffer) continue;
      // TensorGraph::Create refuses totals above the limit; adding on could overflow.
      if (facts_.parameters > kMaxTotalBytes) return;
      facts_.parameters += value.bytes;
      facts_.counted.push_back(static_cast<ValueIndex>(i));
      if (IsQuantized(value.elem_type)) {
        facts_.quantized.push_back(static_cast<ValueIndex>(i));
      } else if (trained.is_root[i] && !value.is_frozen) {
        facts_.trained.push_back(static_cast<ValueIndex>(i));
        facts_.parameter_gradients += value.bytes;
        const auto last = static_cast<size_t>(trained.last_reader[i]);
        facts_.operations[last].parameter_gradients += value.bytes;
      }
    }
  }

  struct Use {
    ValueIndex value = kNoValue;
    bool is_trained = false;
    int32_t operation = 0;
  };

  // The float and quantized initializers and literals from which some constants are computed, and
  // all values on the way to them, so that each is visited once.
  struct RootMarks {
    explicit RootMarks(size_t values)
        : is_root(values, false), is_visited(values, false), last_reader(values) {}
    std::vector<bool> is_root;
    std::vector<bool> is_visited;
    std::vector<int32_t>
        last_reader;  // For each root: the last operation that reads a value computed from it.
  };

  // Must be called for later uses first.
  void MarkRoots(const Use& use, RootMarks& marks) const {
    std::vector<ValueIndex> pending = {use.value};
    while (!pending.empty()) {
      const auto at = static_cast<size_t>(pending.back());
      pending.pop_back();
      const ModelValue& value = model_.values[at];
      if (!IsFloatType(value.elem_type) && !IsQuantized(value.elem_type)) continue;
      if (marks.is_visited[at]) continue;
      marks.is_visited[at] = true;
      marks.last_reader[at] = use.operation;
      if (value.source == ModelValue::Source::kInitializer) marks.is_root[at] = true;
      if (value.source != ModelValue::Source::kOperation) continue;
      const ModelOperation& operation = model_.operations[static_cast<size_t>(value.producer)];
      if (IsLiteral(operation)) {
        marks.is_root[at] = true;
        continue;
      }
      for (const ValueIndex input : operation.inputs) {
        if (input != kNoValue) pending.push_back(input);
      }
    }
  }

  const Model::Impl& model_;
  ModelFacts facts_;
  std::vector<Use> uses_;
};

}  // namespace

ModelFacts FindFacts(const Model::Impl& model) { return FactFinder(model).Find(); }

}  // namespace ckplan
