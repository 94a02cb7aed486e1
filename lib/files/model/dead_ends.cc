#include "lib/files/model/dead_ends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/facts.h"
#include "lib/files/model/infer_types.h"
#include "lib/files/model/input_uses.h"

namespace ckplan {

namespace {

constexpr size_t kMaxEnds = 8;
constexpr int64_t kMaxSwitchElements = 8;

// Calls `visit` with each input of the operation that produces `value`.
template <typename Visit>
void ForEachRead(const Model::Impl& model, const DeadEnds& dead_ends, ValueIndex value,
                 const Visit& visit) {
  const auto dead = dead_ends.find(value);
  if (dead != dead_ends.end()) {
    for (const ValueIndex read : dead->second.reads) {
      if (read != kNoValue) visit(read);
    }
    return;
  }
  const int32_t producer = model.value(value).producer;
  if (producer < 0) return;
  for (const ValueIndex read : model.operations[static_cast<size_t>(producer)].inputs) {
    if (read != kNoValue) visit(read);
  }
}

// Marks the given values and all values that they depend on.
std::vector<bool> FindDependencies(const Model::Impl& model, const DeadEnds& dead_ends,
                                   std::vector<ValueIndex> pending) {
  std::vector<bool> is_behind(model.values.size(), false);
  while (!pending.empty()) {
    const ValueIndex value = pending.back();
    pending.pop_back();
    if (is_behind[static_cast<size_t>(value)]) continue;
    is_behind[static_cast<size_t>(value)] = true;
    ForEachRead(model, dead_ends, value, [&](ValueIndex read) { pending.push_back(read); });
  }
  return is_behind;
}

// Finds the float values that a step computes from at least one parameter.
class TrainableValues {
 public:
  // Not those in `is_dead`.
  TrainableValues(const Model::Impl& model, const std::vector<bool>& is_dead) : model_(model) {
    is_batch_.resize(model.values.size());
    has_weight_.resize(model.values.size());
    for (const ValueIndex input : model.graph_inputs) is_batch_[At(input)] = true;
    for (size_t i = 0; i < model.values.size(); ++i) {
      const ModelValue& value = model.values[i];
      has_weight_[i] = value.source == ModelValue::Source::kInitializer &&
                       IsFloatType(value.elem_type) &&
                       value.signature != ModelValue::Signature::kConstant;
    }
    for (const ModelOperation& operation : model.operations) Visit(operation);
    for (size_t i = 0; i < is_dead.size(); ++i) is_batch_[i] = is_batch_[i] && !is_dead[i];
  }

  bool Has(ValueIndex index) const {
    const ModelValue& value = model_.value(index);
    return is_batch_[At(index)] && has_weight_[At(index)] && value.producer >= 0 &&
           value.has_shape && IsFloatType(value.elem_type);
  }

 private:
  static size_t At(ValueIndex value) { return static_cast<size_t>(value); }

  void Visit(const ModelOperation& operation) {
    bool is_batch = false;
    bool has_weight = operation.type() == "Constant";
    for (const ValueIndex input : operation.inputs) {
      if (input == kNoValue) continue;
      is_batch = is_batch || is_batch_[At(input)];
      has_weight = has_weight || has_weight_[At(input)];
    }
    for (const ValueIndex output : operation.outputs) {
      if (output == kNoValue) continue;
      is_batch_[At(output)] = is_batch;
      has_weight_[At(output)] = has_weight;
    }
  }

  const Model::Impl& model_;
  std::vector<bool> is_batch_;
  std::vector<bool> has_weight_;
};

// Marks each value that depends on something unknown.
std::vector<bool> FindDead(const Model::Impl& model, const DeadEnds& dead_ends) {
  std::vector<bool> is_dead(model.values.size(), false);
  for (size_t i = 0; i < model.values.size(); ++i) {
    const ModelValue& value = model.values[i];
    const bool is_made = value.source == ModelValue::Source::kOperation;
    is_dead[i] = dead_ends.contains(static_cast<ValueIndex>(i)) || (is_made && !value.has_shape);
  }
  for (const ModelOperation& operation : model.operations) {
    const bool reads_dead = std::any_of(
        operation.inputs.begin(), operation.inputs.end(),
        [&](ValueIndex input) { return input != kNoValue && is_dead[static_cast<size_t>(input)]; });
    if (!reads_dead) continue;
    for (const ValueIndex output : operation.outputs) {
      if (output != kNoValue) is_dead[static_cast<size_t>(output)] = true;
    }
  }
  return is_dead;
}

// Walks back from the outputs to the first values that can be trained.
std::vector<std::string> TrainableEnds(const Model::Impl& model, const DeadEnds& dead_ends,
                                       const std::vector<bool>& is_dead) {
  const TrainableValues trainable(model, is_dead);
  std::vector<bool> is_visited(model.values.size(), false);
  std::vector<ValueIndex> pending = model.graph_outputs;
  std::set<ValueIndex> ends;
  while (!pending.empty()) {
    const ValueIndex value = pending.back();
    pending.pop_back();
    if (is_visited[static_cast<size_t>(value)]) continue;
    is_visited[static_cast<size_t>(value)] = true;
    if (trainable.Has(value)) {
      ends.insert(value);
      continue;
    }
    ForEachRead(model, dead_ends, value, [&](ValueIndex read) { pending.push_back(read); });
  }
  // Users can name only values of the main graph.
  std::set<std::string> names;
  for (const auto& node : model.proto->graph().node()) {
    names.insert(node.output().begin(), node.output().end());
  }
  // Exporters put views before NMS: the value that they show is an end already.
  const auto viewed = [&](ValueIndex value) {
    const ModelValue& view = model.value(value);
    if (view.producer < 0) return kNoValue;
    const ModelOperation& producer = model.operations[static_cast<size_t>(view.producer)];
    const ValueIndex input = producer.input(0);
    if (input == kNoValue) return kNoValue;
    const bool is_same =
        producer.type() == "Cast" && model.value(input).elem_type == view.elem_type;
    return is_same || RuleOf(producer.type()).kind == OpKind::kView ? input : kNoValue;
  };
  std::set<ValueIndex> shown;
  std::copy_if(ends.begin(), ends.end(), std::inserter(shown, shown.end()), [&](ValueIndex end) {
    return names.contains(model.value(end).name) || model.main_names.contains(end);
  });
  std::erase_if(ends, [&](ValueIndex end) {
    ValueIndex value = viewed(end);
    while (value != kNoValue && !shown.contains(value)) value = viewed(value);
    return value != kNoValue;
  });
  std::vector<std::string> found;
  for (const ValueIndex end : ends) {
    std::string name = model.value(end).name;
    const auto in_main = model.main_names.find(end);
    if (!names.contains(name) && in_main != model.main_names.end()) name = in_main->second;
    if (found.size() == kMaxEnds || !names.contains(name)) continue;
    std::string pattern = PatternFor(model.proto->graph(), name);
    if (!pattern.empty()) found.push_back(std::move(pattern));
  }
  return found;
}

}  // namespace

std::vector<bool> FindNeeded(const Model::Impl& model, const DeadEnds& dead_ends) {
  return FindDependencies(model, dead_ends, model.graph_outputs);
}

namespace {

void MarkOutputs(const DeadEnds& dead_ends, const std::vector<bool>& is_dead, Model::Impl* model) {
  model->live_outputs.clear();
  for (size_t i = 0; i < model->graph_outputs.size(); ++i) {
    const ValueIndex output = model->graph_outputs[i];
    const bool is_float = IsFloatType(model->value(output).elem_type);
    const bool is_live = is_float && !is_dead[static_cast<size_t>(output)];
    if (is_live) model->live_outputs.push_back(model->part.outputs[i]);
  }
  if (model->live_outputs.empty())
    model->trainable_ends = TrainableEnds(*model, dead_ends, is_dead);
}

}  // namespace

void MarkDeadOutputs(const DeadEnds& dead_ends, Model::Impl* model) {
  MarkOutputs(dead_ends, FindDead(*model, dead_ends), model);
}

bool MarkUntrainedOutputs(Model::Impl* model) {
  const ModelFacts facts = FindFacts(*model);
  std::vector<bool> is_dead(model->values.size());
  for (size_t i = 0; i < is_dead.size(); ++i) {
    is_dead[i] = facts.values[i].is_batch && !facts.values[i].is_differentiable;
  }
  MarkOutputs({}, is_dead, model);
  return model->live_outputs.size() < model->part.outputs.size();
}

bool IsPossibleSwitch(const ModelValue& input) {
  return input.dims.size() <= 1 && ElementCount(input.dims) <= kMaxSwitchElements;
}

std::vector<std::string> FindSwitches(const Model::Impl& model, const DeadEnds& dead_ends,
                                      ValueIndex value) {
  const std::vector<bool> is_behind = FindDependencies(model, dead_ends, {value});
  std::vector<std::string> switches;
  for (const ValueIndex input : model.graph_inputs) {
    const ModelValue& read = model.value(input);
    if (!is_behind[static_cast<size_t>(input)] || IsFloatType(read.elem_type)) continue;
    if (IsPossibleSwitch(read)) switches.push_back(read.name);
  }
  return switches;
}

Result<Done> CheckDeadEnds(const Model::Impl& model, const DeadEnds& dead_ends,
                           const std::vector<bool>& is_needed, const std::string& file) {
  std::vector<std::string> of_kind[3];
  std::vector<ValueIndex> undecided;
  for (const auto& [value, dead] : dead_ends) {
    if (!is_needed[static_cast<size_t>(value)]) continue;
    std::vector<std::string>& list = of_kind[static_cast<size_t>(dead.kind)];
    // A node with several outputs counts as one dead end.
    if (list.empty() || list.back() != dead.what) list.push_back(dead.what);
    undecided.insert(undecided.end(), dead.reads.begin(), dead.reads.end());
  }
  const auto& [inputs, control_flow, sequences] = of_kind;
  if (inputs.empty() && control_flow.empty() && sequences.empty()) return Done{};
  Error error = MakeError(ErrorCode::kUnsupported, "");
  if (!inputs.empty()) {
    error.message = fmt::format("{}: {}, which cannot be planned", file, ShortList(inputs, 3));
  } else if (!control_flow.empty()) {
    error.message =
        fmt::format("{}: control flow cannot be planned: {}", file, ShortList(control_flow, 3));
  } else {
    error.message = fmt::format("{}: only tensors and sequences of known parts can be planned: {}",
                                file, ShortList(sequences, 3));
  }
  std::set<std::string> switches;
  for (const ValueIndex read : undecided) {
    if (read == kNoValue) continue;
    for (std::string& name : FindSwitches(model, dead_ends, read)) switches.insert(name);
  }
  if (!switches.empty()) {
    SuggestContents(switches, &error);
    return error;
  }
  SuggestEnds(model, &error);
  // LoadModel may be able to choose other outputs.
  const bool may_choose = model.part.is_chosen && !model.live_outputs.empty();
  if (error.remedy.settings.empty() && !may_choose) {
    error.message += "; export the model without it";
  }
  return error;
}

void SuggestContents(const std::set<std::string>& inputs, Error* error) {
  error->remedy.advice = "set the values that decide it with";
  for (const std::string& name : inputs) {
    if (error->remedy.settings.size() == kMaxEnds) break;
    error->remedy.settings.push_back({"set_inputs", name + "=..."});
  }
}

void SuggestEnds(const Model::Impl& model, Error* error) {
  if (model.trainable_ends.empty()) return;
  error->remedy = {"end the step before it with",
                   {{"outputs", fmt::format("{}", fmt::join(model.trainable_ends, ","))}}};
}

}  // namespace ckplan
