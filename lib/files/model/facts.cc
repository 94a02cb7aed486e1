#include "lib/files/model/facts.h"

#include <algorithm>

#include "lib/base/lists.h"
#include "lib/files/model/detached.h"
#include "lib/files/model/op_spec_of.h"
#include "lib/files/model/parameters.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {

namespace {

// A literal counts as a weight if the operator applies weights, or if it is a vector (a bias or
// scale, with one dimension above 1) that is added or multiplied. An added matrix is a mask. A
// branch of Where or a part of Concat is a bound or padding.
bool TakesLiteralWeights(const OpRule& rule, const Dims& dims) {
  if (rule.has(traits::kWeights)) return true;
  const auto wide = std::count_if(dims.begin(), dims.end(), [](int64_t dim) { return dim > 1; });
  return wide == 1 && rule.has(traits::kVectors);
}

// True if numbers of this type are too narrow to be trained as stored, or to be sizes and indices:
// they are quantized weights or zero points.
bool IsNarrow(int32_t elem_type) {
  const TensorType type = TensorTypeOf(elem_type);
  const int64_t bits = BitsOf(type);
  return bits > 0 && bits <= 8 && type != TensorType::kBool;
}

bool IsQuantized(int32_t elem_type) {
  return IsNarrow(elem_type) && !IsFloat(TensorTypeOf(elem_type));
}

class FactFinder {
 public:
  explicit FactFinder(const Model::Impl& model) : model_(model), is_detached_(FindDetached(model)) {
    facts_.values.resize(model.values.size());
    facts_.operations.resize(model.operations.size());
  }

  ModelFacts Find() {
    MarkSources();
    for (size_t i = 0; i < model_.operations.size(); ++i) VisitForward(i);
    FindOutputs();
    DropUnreached();
    MarkLive();
    CountParameters();
    FindRounding();
    return std::move(facts_);
  }

 private:
  void MarkSources() {
    for (size_t i = 0; i < model_.values.size(); ++i) {
      const ModelValue& value = model_.values[i];
      ValueFacts& facts = facts_.values[i];
      facts.root = static_cast<ValueIndex>(i);
      facts.is_batch = value.source == ModelValue::Source::kGraphInput;
      facts.is_differentiable = facts.is_batch && IsFloatType(value.elem_type);
      facts.is_frozen = value.is_frozen;
      if (value.source != ModelValue::Source::kInitializer) continue;
      facts.is_unscaled = IsNarrow(value.elem_type);
      facts.may_be_trained = IsFloatType(value.elem_type) && !facts.is_unscaled &&
                             !value.is_frozen &&
                             value.signature != ModelValue::Signature::kConstant;
    }
  }

  void VisitForward(size_t index) {
    const ModelOperation& operation = model_.operations[index];
    OperationFacts& facts = facts_.operations[index];
    facts.spec = PlannedSpecOf(model_, operation);
    facts.rule = &RuleOf(facts.spec.type);
    facts.is_batch = DependsOnBatch(operation, *facts.rule);
    MarkCarriers(operation, facts);
    if (!facts.is_batch) return VisitConstant(operation, facts);
    facts.is_view = operation.input(0) != kNoValue && facts_.value(operation.inputs[0]).is_batch &&
                    IsView(*facts.rule, facts.spec);
    FindTrainedOperands(operation, facts);
    const bool has_gradient = FindGradients(operation, facts);
    VisitOutputs(operation, has_gradient, facts);
  }

  void VisitOutputs(const ModelOperation& operation, bool has_gradient, OperationFacts& facts) {
    const bool is_differentiable = has_gradient || ReadsDifferentiable(operation, facts);
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (operation.outputs[i] == kNoValue) continue;
      ValueFacts& output = facts_.value(operation.outputs[i]);
      // Updated running statistics are state between steps, not results of this step.
      if (facts.rule->kind == OpKind::kBatchNorm && i > 0) continue;
      output.is_batch = true;
      const bool may_carry =
          IsFloatType(model_.value(operation.outputs[i]).elem_type) || output.is_rounded;
      const bool passes = may_carry && PassesGradient(*facts.rule, i);
      output.requires_grad = has_gradient && passes;
      output.is_differentiable = is_differentiable && passes;
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

  // ---- Where gradients flow -------------------------------------------------------------------

  bool PassesStraight(const OpRule& rule) const {
    return rule.has(traits::kRounds) && model_.rounding == Rounding::kStraightThrough;
  }

  // True if the operation rounds floats to quantized integers or to whole floats.
  bool Rounds(const ModelOperation& operation, const OpRule& rule) const {
    if (PassesStraight(rule)) return true;
    if (rule.kind != OpKind::kCast || model_.rounding == Rounding::kNoGradient) return false;
    return operation.input(0) != kNoValue && operation.output(0) != kNoValue &&
           IsFloatType(model_.value(operation.inputs[0]).elem_type) &&
           IsQuantized(model_.value(operation.outputs[0]).elem_type);
  }

  // Marks outputs that are rounded floats stored as integers, and values that lack their scale.
  void MarkCarriers(const ModelOperation& operation, const OperationFacts& own) {
    const OpRule& rule = *own.rule;
    const bool is_unscaled = StaysUnscaled(operation, own);
    if (operation.output(0) == kNoValue) return;
    ValueFacts& first = facts_.value(operation.outputs[0]);
    first.is_unscaled = is_unscaled;
    if (operation.type() == "DynamicQuantizeLinear" && operation.output(1) != kNoValue) {
      facts_.value(operation.outputs[1]).is_unscaled = true;
    }
    if (operation.input(0) == kNoValue) return;
    const int32_t from = model_.value(operation.inputs[0]).elem_type;
    const int32_t to = model_.value(operation.outputs[0]).elem_type;
    if (IsFloatType(to)) return;
    const bool continues = facts_.value(operation.inputs[0]).is_rounded && rule.has_gradient() &&
                           (from == to || rule.kind == OpKind::kCast);
    first.is_rounded = continues || (Rounds(operation, rule) && IsFloatType(from));
  }

  // Moving, casting or shifting quantized weights, or multiplying by them, leaves a scale missing.
  bool StaysUnscaled(const ModelOperation& operation, const OperationFacts& own) const {
    const OpRule& rule = *own.rule;
    const bool is_product = own.is_batch && rule.uses_matrix_units();
    const bool is_shift = !own.is_batch && IsSum(rule);
    if (!rule.is_movement() && !rule.has(traits::kPicks) && !is_product && !is_shift &&
        rule.kind != OpKind::kNoGradientElementwise) {
      return false;
    }
    return std::any_of(operation.inputs.begin(), operation.inputs.end(), [&](ValueIndex input) {
      return IsUnscaled(input) && !(is_product && facts_.value(input).is_batch);
    });
  }

  static bool IsSum(const OpRule& rule) {
    return rule.kind == OpKind::kAdd || rule.kind == OpKind::kSub;
  }

  bool IsUnscaled(ValueIndex value) const {
    return value != kNoValue && facts_.value(value).is_unscaled;
  }

  // True if another operand is quantized weights without their scale. Then this operand is their
  // scale or zero point, or the table of their values, none of which is trained.
  bool ScalesWeights(const ModelOperation& operation, const OpRule& rule, size_t position) const {
    const bool is_table = rule.has(traits::kPicks) && position == 0;
    if (!rule.is_elementwise() && rule.is_known() && !is_table) return false;
    // A bias may follow a product that is never scaled.
    if (IsSum(rule) && facts_.operations[IndexOf(operation)].is_batch) return false;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (i != position && IsUnscaled(operation.inputs[i])) return true;
    }
    return false;
  }

  // True if a gradient of the operation's outputs flows to this input.
  bool FlowsTo(const ModelOperation& operation, const OperationFacts& own, size_t position) const {
    const ValueIndex input = operation.inputs[position];
    if (input == kNoValue || is_detached_[IndexOf(operation)]) return false;
    const OpRule& rule = *own.rule;
    const bool is_rounded = facts_.value(input).is_rounded;
    if (PassesStraight(rule)) {
      return position == 0 && (is_rounded || IsFloatType(model_.value(input).elem_type));
    }
    if (is_rounded) return position == 0 && rule.has_gradient() && ReadsContents(rule, 0);
    return IsDifferentiable(rule, own.spec, position);
  }

  // ---- Constants ------------------------------------------------------------------------------

  void VisitConstant(const ModelOperation& operation, OperationFacts& own) {
    bool may_be_trained = false;
    bool is_literal = IsLiteral(operation);
    bool is_frozen = false;
    const OpRule& rule = *own.rule;
    own.reads_trained.assign(operation.inputs.size(), false);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!FlowsTo(operation, own, i)) continue;
      const ValueFacts& input = facts_.value(operation.inputs[i]);
      const bool is_trained = input.may_be_trained && !rule.has(traits::kWave) &&
                              !IsUntrainedOperand(operation, rule, i);
      const bool moves_literal = input.is_literal && i == 0 && rule.is_movement();
      own.reads_trained[i] = is_trained || moves_literal;
      may_be_trained = may_be_trained || is_trained;
      is_literal = is_literal || moves_literal;
      is_frozen = is_frozen || input.is_frozen;
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue) continue;
      ValueFacts& facts = facts_.value(output);
      if (!IsFloatType(model_.value(output).elem_type) && !facts.is_rounded) continue;
      facts.may_be_trained = may_be_trained;
      facts.is_literal = is_literal && !may_be_trained && !facts.is_frozen;
      facts.is_frozen = facts.is_frozen || (is_frozen && !may_be_trained && !is_literal);
    }
  }

  // True if the operation produces a tensor with several elements whose contents are in the file.
  // In a file that lists its parameters, these are never weights.
  bool IsLiteral(const ModelOperation& operation) const {
    if (operation.output(0) == kNoValue || model_.has_signature) return false;
    if (ElementCount(model_.value(operation.outputs[0]).dims) == 1) return false;
    const OpKind kind = KindOf(operation);
    if (kind == OpKind::kLiteral) return true;
    if (kind != OpKind::kFill || operation.input(0) == kNoValue) return false;
    const ModelValue& shape = model_.value(operation.inputs[0]);
    return shape.source != ModelValue::Source::kOperation ||
           KindOf(model_.operations[static_cast<size_t>(shape.producer)]) == OpKind::kLiteral;
  }

  // Operations are visited in the order in which they run, so this one's producers are known.
  OpKind KindOf(const ModelOperation& operation) const {
    return facts_.operations[IndexOf(operation)].rule->kind;
  }

  // Finds the trained constants that a step reads, and the initializers that they depend on.
  void FindTrainedOperands(const ModelOperation& operation, OperationFacts& facts) {
    facts.reads_trained.assign(operation.inputs.size(), false);
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      const ValueIndex input = operation.inputs[i];
      if (input == kNoValue || facts_.value(input).is_batch) continue;
      const bool is_trained =
          FlowsTo(operation, facts, i) && IsTrainedOperand(operation, *facts.rule, i);
      facts.reads_trained[i] = is_trained;
      uses_.push_back({input, is_trained, static_cast<int32_t>(&facts - facts_.operations.data())});
    }
  }

  // True if this operand is a constant that is not trained: a literal number, unless the operator
  // applies weights; a branch of a mask that is computed once, outside the step; or the scale of
  // quantized weights.
  bool IsUntrainedOperand(const ModelOperation& operation, const OpRule& rule,
                          size_t position) const {
    const ModelValue& value = model_.value(operation.inputs[position]);
    if (ScalesWeights(operation, rule, position)) return true;
    // A Gemm without a bias adds a 0 (written by jax2onnx); a bias is a vector.
    if (operation.type() == "Gemm" && position == 2 && value.dims.empty()) return true;
    if (rule.has(traits::kWeights)) return false;
    const bool is_mask = operation.type() == "Where" && ElementCount(value.dims) == 1 &&
                         !facts_.operations[IndexOf(operation)].is_batch;
    if (value.signature == ModelValue::Signature::kParameter) return false;
    return is_mask || IsPlainNumber(value);
  }

  bool IsTrainedOperand(const ModelOperation& operation, const OpRule& rule,
                        size_t position) const {
    const ValueIndex input = operation.inputs[position];
    const ValueFacts& facts = facts_.value(input);
    if (IsUntrainedOperand(operation, rule, position)) return false;
    if (facts.may_be_trained) return true;
    return facts.is_literal && TakesLiteralWeights(rule, model_.value(input).dims);
  }

  size_t IndexOf(const ModelOperation& operation) const {
    return static_cast<size_t>(&operation - model_.operations.data());
  }

  // ---- Gradients ------------------------------------------------------------------------------

  // Returns false if the operation has no gradients.
  bool FindGradients(const ModelOperation& operation, OperationFacts& facts) const {
    bool has_any = false;
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!FlowsTo(operation, facts, i)) continue;
      const bool has_gradient =
          facts.reads_trained[i] || facts_.value(operation.inputs[i]).requires_grad;
      facts.spec.inputs[i].has_gradient = has_gradient;
      has_any = has_any || has_gradient;
    }
    return has_any;
  }

  bool ReadsDifferentiable(const ModelOperation& operation, const OperationFacts& facts) const {
    for (size_t i = 0; i < operation.inputs.size(); ++i) {
      if (!FlowsTo(operation, facts, i)) continue;
      if (facts_.value(operation.inputs[i]).is_differentiable) return true;
    }
    return false;
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

  // Removes the gradients of values that reach the outputs only through indices, comparisons and
  // the like. No gradient flows back through those, so nothing before them is trained.
  void DropUnreached() {
    std::vector<bool> is_reached(model_.values.size(), false);
    for (const ValueIndex output : model_.graph_outputs) {
      is_reached[static_cast<size_t>(output)] = true;
    }
    for (size_t i = model_.operations.size(); i-- > 0;) {
      const ModelOperation& operation = model_.operations[i];
      OperationFacts& own = facts_.operations[i];
      if (!own.is_batch) continue;
      MarkReachedInputs(operation, own, &is_reached);
      if (!KeepReachedOutputs(operation, is_reached, own)) ClearGradients(own);
    }
    for (Use& use : uses_) {
      const std::vector<bool>& trained =
          facts_.operations[static_cast<size_t>(use.operation)].reads_trained;
      use.is_trained = use.is_trained && std::count(trained.begin(), trained.end(), true) > 0;
    }
  }

  void MarkReachedInputs(const ModelOperation& operation, const OperationFacts& own,
                         std::vector<bool>* is_reached) const {
    const bool is_any_reached =
        std::any_of(operation.outputs.begin(), operation.outputs.end(), [&](ValueIndex output) {
          return output != kNoValue && (*is_reached)[static_cast<size_t>(output)];
        });
    if (!is_any_reached) return;
    for (size_t k = 0; k < operation.inputs.size(); ++k) {
      // PyTorch's round() and sign() propagate zeros.
      const bool has_zero_gradient = k == 0 && own.rule->has(traits::kRounds);
      if (operation.inputs[k] == kNoValue || (!has_zero_gradient && !FlowsTo(operation, own, k)))
        continue;
      (*is_reached)[static_cast<size_t>(operation.inputs[k])] = true;
    }
  }

  // Returns false if no output has a gradient.
  bool KeepReachedOutputs(const ModelOperation& operation, const std::vector<bool>& is_reached,
                          OperationFacts& own) {
    bool has_any = false;
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      const ValueIndex output = operation.outputs[i];
      if (output == kNoValue) continue;
      ValueFacts& facts = facts_.value(output);
      facts.requires_grad = facts.requires_grad && is_reached[static_cast<size_t>(output)];
      own.spec.outputs[i].has_gradient = facts.requires_grad;
      has_any = has_any || facts.requires_grad;
    }
    return has_any;
  }

  static void ClearGradients(OperationFacts& own) {
    own.has_backward = false;
    std::fill(own.reads_trained.begin(), own.reads_trained.end(), false);
    for (Operand& input : own.spec.inputs) input.has_gradient = false;
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
      if (use->is_trained) {
        const bool is_further = MarkTrainedRoots(*use, trained, buffers);
        OperationFacts& own = facts_.operations[static_cast<size_t>(use->operation)];
        if (is_further) own.added_gradients += model_.value(use->value).bytes;
      } else {
        MarkRoots(*use, is_norm ? state : buffers);
      }
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
      if (IsNarrow(value.elem_type)) {
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

  // The float and quantized initializers and literals that some constants depend on, and all values
  // on the way, so that each is visited once.
  struct RootMarks {
    explicit RootMarks(size_t values)
        : is_root(values, false), is_visited(values, false), last_reader(values) {}
    std::vector<bool> is_root;
    std::vector<bool> is_visited;
    std::vector<int32_t>
        last_reader;  // For each root: the last operation that reads a value computed from it.
  };

  // Must be called for later uses first, like MarkRoots. Constants that a trained one depends on
  // but that no gradient reaches are buffers. Returns true if a later use trains one of them.
  bool MarkTrainedRoots(const Use& use, RootMarks& trained, RootMarks& buffers) {
    bool is_further = false;
    std::vector<ValueIndex> pending = {use.value};
    while (!pending.empty()) {
      const ValueIndex at = pending.back();
      pending.pop_back();
      is_further = is_further || trained.is_visited[static_cast<size_t>(at)];
      const ModelOperation* const producer = MarkValue(at, use, trained);
      if (producer == nullptr) continue;
      OperationFacts& own = facts_.operations[IndexOf(*producer)];
      own.has_backward = true;
      for (size_t i = 0; i < producer->inputs.size(); ++i) {
        const ValueIndex input = producer->inputs[i];
        if (input == kNoValue) continue;
        if (own.reads_trained[i]) {
          pending.push_back(input);
        } else if (ReadsContents(*own.rule, i)) {
          MarkRoots({input, false, use.operation}, buffers);
        }
      }
    }
    return is_further;
  }

  void MarkRoots(const Use& use, RootMarks& marks) const {
    std::vector<ValueIndex> pending = {use.value};
    while (!pending.empty()) {
      const ValueIndex at = pending.back();
      pending.pop_back();
      const ModelOperation* const producer = MarkValue(at, use, marks);
      if (producer == nullptr) continue;
      const OpRule& rule = *facts_.operations[IndexOf(*producer)].rule;
      for (size_t i = 0; i < producer->inputs.size(); ++i) {
        const bool is_read = producer->inputs[i] != kNoValue && ReadsContents(rule, i);
        if (is_read) pending.push_back(producer->inputs[i]);
      }
    }
  }

  // Returns the operation whose inputs must also be marked, or null.
  const ModelOperation* MarkValue(ValueIndex index, const Use& use, RootMarks& marks) const {
    const auto at = static_cast<size_t>(index);
    const ModelValue& value = model_.values[at];
    const bool may_be_root = IsFloatType(value.elem_type) || IsQuantized(value.elem_type) ||
                             facts_.values[at].is_rounded;
    if (!may_be_root || marks.is_visited[at]) return nullptr;
    marks.is_visited[at] = true;
    marks.last_reader[at] = use.operation;
    if (value.source == ModelValue::Source::kInitializer) marks.is_root[at] = true;
    if (value.source != ModelValue::Source::kOperation) return nullptr;
    const ModelOperation& operation = model_.operations[static_cast<size_t>(value.producer)];
    if (!IsLiteral(operation)) return &operation;
    marks.is_root[at] = true;
    return nullptr;
  }

  // ---- Rounding -------------------------------------------------------------------------------

  // Finds the operations that round and pass on a gradient.
  void FindRounding() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const OperationFacts& own = facts_.operations[i];
      const bool runs = own.is_live || !own.is_batch;
      if (runs && own.has_backward && Rounds(model_.operations[i], *own.rule)) {
        facts_.rounding.push_back(static_cast<int32_t>(i));
      }
    }
  }

  const Model::Impl& model_;
  const std::vector<bool> is_detached_;  // By operation.
  ModelFacts facts_;
  std::vector<Use> uses_;
};

}  // namespace

ModelFacts FindFacts(const Model::Impl& model) { return FactFinder(model).Find(); }

}  // namespace ckplan
