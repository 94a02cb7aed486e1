// Expands Ifs (the known or the costlier branch) and loops with a known number of rounds.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/stop.h"
#include "lib/files/model/expander.h"
#include "lib/files/model/op_spec_of.h"
#include "lib/files/model/sequences.h"
#include "lib/problem/ops/work.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr size_t kMaxUnrolledOperations = 250'000;
constexpr size_t kMaxUnrolledNameBytes = size_t{256} << 20;
constexpr int kFirstOpsetOfPlainScan = 9;  // Before, Scan had a batch axis.

const GraphProto* BodyOf(const NodeProto& node, std::string_view attribute) {
  const onnx::AttributeProto* body = FindAttribute(node, attribute);
  return body == nullptr || !body->has_g() ? nullptr : &body->g();
}

// The cost of a branch's operations; unknown shapes count as zero.
struct BranchCost {
  int64_t flops = 0;
  int64_t bytes = 0;

  bool operator<(const BranchCost& other) const {
    return flops != other.flops ? flops < other.flops : bytes < other.bytes;
  }
};

BranchCost CostOf(const Model::Impl& model, size_t begin, size_t end) {
  constexpr int64_t kMost = int64_t{1} << 60;
  BranchCost cost;
  for (size_t i = begin; i < end; ++i) {
    const ModelOperation& operation = model.operations[i];
    const auto is_known = [&](ValueIndex value) {
      return value == kNoValue || model.value(value).has_shape;
    };
    if (!std::all_of(operation.inputs.begin(), operation.inputs.end(), is_known) ||
        !std::all_of(operation.outputs.begin(), operation.outputs.end(), is_known)) {
      continue;
    }
    const OpWork work = WorkOf(PlannedSpecOf(model, operation), {}, Bytes(0));
    cost.flops = std::min(kMost, cost.flops + std::min(kMost, work.forward_flops));
    cost.bytes = std::min(kMost, cost.bytes + std::min(kMost, work.forward_traffic.count()));
  }
  return cost;
}

// Returns a Scan's attribute for one input or output; 0 if the list is shorter.
int64_t NumberFor(const NodeProto& node, std::string_view attribute, size_t position) {
  const std::vector<int64_t> list = IntsAttribute(node, attribute);
  return position < list.size() ? list[position] : 0;
}

}  // namespace

void Expander::ExpandControlFlow(const NodeProto& node, Scope& scope) {
  const auto inputs = ResolveInputs(node, scope);
  if (!inputs.has_value()) return builder_.AddUnknownOutputs(node, scope);
  const bool is_expanded =
      IsStandard(node) &&
      ((node.op_type() == "If" && ExpandIf(node, *inputs, scope)) ||
       (node.op_type() == "Loop" && ExpandLoop(node, *inputs, scope)) ||
       (node.op_type() == "Scan" && ExpandScan(node, *inputs, scope)) ||
       (node.op_type() == "SequenceMap" && ExpandSequenceMap(node, *inputs, scope)));
  if (is_expanded) return;
  Values reads = *inputs;
  const Values captured = CapturedBy(node, scope);
  reads.insert(reads.end(), captured.begin(), captured.end());
  AddDeadEnd(node, DeadEnd::Kind::kControlFlow, std::exchange(why_not_, ""), std::move(reads),
             scope);
}

std::optional<int64_t> Expander::KnownScalar(ValueIndex value) const {
  const ConstantValue* contents = KnownContents(value);
  if (contents == nullptr || contents->ints.size() != 1) return std::nullopt;
  return contents->ints[0];
}

ValueIndex Expander::AddScalar(const NodeProto& node, const std::string& name, int32_t type,
                               int64_t number, Scope& scope) {
  NodeProto made;
  made.set_op_type("Constant");
  if (node.output_size() > 0 && name == node.output(0)) made.set_name(node.name());
  made.add_output(name);
  onnx::AttributeProto& attribute = *made.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = MakeTensor({type, {}, {number}, {}});
  return builder_.AppendMade(std::move(made), {}, scope)[0];
}

// ---- If -----------------------------------------------------------------------------------------

bool Expander::ExpandIf(const NodeProto& node, const Values& inputs, Scope& scope) {
  if (inputs.size() != 1 || inputs[0] == kNoValue) return false;
  const std::optional<int64_t> condition = KnownScalar(inputs[0]);
  if (!condition) {
    if (BodyOf(node, "then_branch") == nullptr || BodyOf(node, "else_branch") == nullptr) {
      return false;
    }
    ExpandCostlierBranch(node, inputs[0], scope);
    return true;
  }
  const GraphProto* branch = BodyOf(node, *condition != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr) return false;
  ExpandBranch(node, builder_.NodeName(node, scope) + "/", *branch, scope);
  return true;
}

Expander::Values Expander::ExpandBody(const std::string& prefix, const GraphProto& branch,
                                      const Scope& scope) {
  const DeclaredTypes declared = DeclaredIn(branch);
  Scope inner{&scope,    prefix,          scope.opsets,    nullptr,
              &declared, scope.depth + 1, scope.file_node, {}};
  builder_.AddInitializers(branch, inner);
  ExpandAll(branch.node(), inner);
  Values values;
  for (const auto& output : branch.output()) {
    values.push_back(Find(output.name(), inner).value_or(kNoValue));
  }
  return values;
}

void Expander::ExpandBranch(const NodeProto& node, const std::string& prefix,
                            const GraphProto& branch, Scope& scope) {
  NameOutputs(node, ExpandBody(prefix, branch, scope), scope);
}

void Expander::ExpandCostlierBranch(const NodeProto& node, ValueIndex condition, Scope& scope) {
  constexpr const char* kBranches[] = {"then_branch", "else_branch"};
  const std::string name = builder_.NodeName(node, scope);
  Values outputs[2];
  BranchCost costs[2];
  bool is_known[2];
  bool is_empty[2];
  for (size_t i = 0; i < 2; ++i) {
    const size_t begin = model_.operations.size();
    outputs[i] =
        ExpandBody(fmt::format("{}/{}/", name, kBranches[i]), *BodyOf(node, kBranches[i]), scope);
    costs[i] = CostOf(model_, begin, model_.operations.size());
    is_known[i] = std::all_of(outputs[i].begin(), outputs[i].end(), [this](ValueIndex value) {
      return value != kNoValue && (model_.value(value).has_shape || sequences_.contains(value));
    });
    is_empty[i] = std::any_of(outputs[i].begin(), outputs[i].end(), [this](ValueIndex value) {
      if (value == kNoValue || !model_.value(value).has_shape) return false;
      const Dims& dims = model_.value(value).dims;
      return std::find(dims.begin(), dims.end(), 0) != dims.end();
    });
  }
  size_t chosen = costs[0] < costs[1] ? 1 : 0;
  const char* why = "costlier one";
  if (is_known[0] != is_known[1]) {
    chosen = is_known[0] ? 0 : 1;
    why = "only one with known shapes";
    if (is_empty[chosen]) {  // Such as that of a detector that found nothing.
      chosen = 1 - chosen;
      why = "only one that isn't empty";
    }
  }
  NameOutputs(node, outputs[chosen], scope);
  Warn(fmt::format("If \"{}\" is planned with its {}, the {}", ShortName(name), kBranches[chosen],
                   why),
       condition, "; its condition depends on the batch");
}

void Expander::NameOutputs(const NodeProto& node, const Values& values, Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const auto at = static_cast<size_t>(i);
    if (at < values.size() && values[at] != kNoValue) {
      builder_.AddName(node.output(i), values[at], node.op_type(), scope);
      continue;
    }
    if (scope.names.contains(node.output(i))) continue;  // Already added as a dead end.
    if (!is_too_large_) {
      builder_.AddFault(fmt::format("nothing in \"{}\" ({}) produces its output \"{}\"",
                                    ShortName(node.name()), node.op_type(),
                                    ShortName(node.output(i))));
    }
    builder_.AddValue(node.output(i), scope, ModelValue::Source::kOperation);
  }
}

// ---- Rounds -------------------------------------------------------------------------------------

Scope Expander::LoopScope(const NodeProto& node, const GraphProto& body, const Scope& scope) {
  static const DeclaredTypes kNone;
  Scope shared{&scope,          builder_.NodeName(node, scope) + "/",
               scope.opsets,    nullptr,
               &kNone,          scope.depth + 1,
               scope.file_node, {}};
  builder_.AddInitializers(body, shared);
  return shared;
}

std::optional<Expander::Values> Expander::ExpandRound(const GraphProto& body, int64_t round,
                                                      const Values& inputs, const Scope& shared) {
  PollStop();
  static const CallAttributes kNoAttributes;  // Shapes may differ between rounds.
  const DeclaredTypes declared = DeclaredIn(body);
  const size_t begin = model_.operations.size();
  const size_t unrolled = unrolled_;
  Scope inner{&shared,          fmt::format("{}{}/", shared.prefix, round),
              shared.opsets,    &kNoAttributes,
              &declared,        shared.depth + 1,
              shared.file_node, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    inner.names.emplace(body.input(static_cast<int>(i)).name(), inputs[i]);
  }
  ExpandAll(body.node(), inner);
  // Operations of inner loops were already counted.
  const size_t made = model_.operations.size() - begin + 1;
  const size_t own = made - std::min(made, unrolled_ - unrolled);
  unrolled_ += own;
  unrolled_name_bytes_ += own * inner.prefix.size();
  if (unrolled_ > kMaxUnrolledOperations || unrolled_name_bytes_ > kMaxUnrolledNameBytes) {
    why_not_ = fmt::format("its rounds unroll to more than {} operations, or {} MiB of names",
                           kMaxUnrolledOperations, kMaxUnrolledNameBytes >> 20);
    return std::nullopt;
  }
  Values outputs;
  for (const auto& output : body.output()) {
    outputs.push_back(Find(output.name(), inner).value_or(kNoValue));
    if (outputs.back() == kNoValue) {
      why_not_ = fmt::format("nothing in its body produces \"{}\"", ShortName(output.name()));
      return std::nullopt;
    }
  }
  return outputs;
}

ValueIndex Expander::Stack(const NodeProto& node, int output, const Values& rounds, int64_t axis,
                           Scope& scope) {
  const int opset = scope.opsets->at("");
  const std::string& name = node.output(output);
  Scope inner = MadeScope(scope);
  Values whole;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const std::string part = fmt::format("{}:{}", name, i);
    NodeProto unsqueeze = UnsqueezeNode(node, part, axis, opset);
    Values operands = {rounds[i]};
    if (opset >= kFirstOpsetOfListInputs) {
      NodeProto source;
      source.add_output(part);
      operands.push_back(builder_.AppendMade(ListNode(source, "axes", {axis}), {}, inner)[0]);
    }
    whole.push_back(builder_.AppendMade(std::move(unsqueeze), std::move(operands), inner)[0]);
  }
  if (whole.size() == 1) return whole.front();
  return builder_.AppendMade(ConcatNode(node, name, whole.size(), axis), whole, inner)[0];
}

Expander::Values Expander::Unstack(const NodeProto& node, int input, ValueIndex value, int64_t axis,
                                   Scope& scope) {
  const int opset = scope.opsets->at("");
  NodeProto source;
  source.set_name(node.name());
  source.add_input(node.input(input));
  source.add_output(fmt::format("{}:unstack", node.input(input)));
  const int64_t rounds = model_.value(value).dims[static_cast<size_t>(axis)];
  const SequenceSplit split{axis, std::vector<int64_t>(static_cast<size_t>(rounds), 1), false};
  Scope inner = MadeScope(scope);
  Values parts = {value};
  if (rounds != 1) {
    if (opset >= kFirstOpsetOfListInputs) {
      parts.push_back(builder_.AppendMade(ListNode(source, "sizes", split.sizes), {}, inner)[0]);
    }
    parts = builder_.AppendMade(SplitNode(source, split, opset), std::move(parts), inner);
  }
  Values slices;
  for (size_t i = 0; i < parts.size(); ++i) {
    NodeProto one = source;
    one.set_output(0, fmt::format("{}:slice{}", node.input(input), i));
    AddPart(one, {parts[i], axis}, inner);
    slices.push_back(*Find(one.output(0), inner));
  }
  return slices;
}

// ---- Loop ---------------------------------------------------------------------------------------

bool Expander::ExpandLoop(const NodeProto& node, const Values& inputs, Scope& scope) {
  const GraphProto* body = BodyOf(node, "body");
  if (body == nullptr || inputs.size() < 2) return false;
  const size_t states = inputs.size() - 2;
  const auto outputs = static_cast<size_t>(body->output_size());
  if (body->input_size() != static_cast<int>(inputs.size()) || outputs < 1 + states) return false;
  const size_t collected = outputs - 1 - states;
  std::optional<int64_t> trips = KnownScalar(inputs[0]);
  std::optional<int64_t> goes_on = inputs[1] == kNoValue ? 1 : KnownScalar(inputs[1]);
  if (goes_on == 0) trips = 0;
  if (inputs[0] != kNoValue && !trips) return Refuse("its number of rounds is unknown");
  if (trips && *trips <= 0) goes_on = 0;
  if (!goes_on) return Refuse("whether it runs at all is unknown");
  Scope shared = LoopScope(node, *body, scope);
  const ValueIndex yes = AddScalar(node, "goes_on", onnx::TensorProto::BOOL, 1, shared);
  Values carried(inputs.begin() + 2, inputs.end());
  std::vector<Values> rounds(collected);
  for (int64_t round = 0; *goes_on != 0 && (!trips || round < *trips); ++round) {
    Values operands = {
        AddScalar(node, fmt::format("round{}", round), onnx::TensorProto::INT64, round, shared),
        yes};
    operands.insert(operands.end(), carried.begin(), carried.end());
    const std::optional<Values> made = ExpandRound(*body, round, operands, shared);
    if (!made || is_too_large_) return false;
    goes_on = KnownScalar((*made)[0]);
    if (!goes_on)
      return Refuse(fmt::format("whether it continues after round {} is unknown", round));
    carried.assign(made->begin() + 1, made->begin() + 1 + static_cast<std::ptrdiff_t>(states));
    for (size_t i = 0; i < collected; ++i) rounds[i].push_back((*made)[1 + states + i]);
  }
  if (collected > 0 && rounds[0].empty()) {
    Values operands = {AddScalar(node, "round0", onnx::TensorProto::INT64, 0, shared), yes};
    operands.insert(operands.end(), carried.begin(), carried.end());
    const Values sample = TypesOfRound(*body, operands, shared);
    for (size_t i = 0; i < collected; ++i) {
      carried.push_back(Empty(node, states + i, sample[1 + states + i], 0, inputs, scope));
    }
  }
  for (size_t i = 0; i < collected && !rounds[i].empty(); ++i) {
    const auto at = static_cast<int>(states + i);
    const bool is_wanted = at < node.output_size() && !node.output(at).empty();
    carried.push_back(is_wanted ? Stack(node, at, rounds[i], 0, scope) : kNoValue);
  }
  NameOutputs(node, carried, scope);
  return true;
}

Expander::Values Expander::TypesOfRound(const GraphProto& body, const Values& operands,
                                        const Scope& shared) {
  // What is wrong with a round that never runs doesn't matter.
  const size_t faults = builder_.faults().size();
  const auto made = ExpandRound(body, 0, operands, shared);
  builder_.DropFaults(faults);
  why_not_.clear();
  return made.value_or(Values(static_cast<size_t>(body.output_size()), kNoValue));
}

ValueIndex Expander::AddTyped(const std::string& name, int32_t type, const Dims& dims,
                              Scope& scope) {
  NodeProto made;
  made.set_op_type("Constant");
  made.add_output(name);
  onnx::AttributeProto& attribute = *made.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->set_data_type(type);
  for (const int64_t dim : dims) attribute.mutable_t()->add_dims(dim);
  return builder_.AppendMade(std::move(made), {}, scope)[0];
}

ValueIndex Expander::Empty(const NodeProto& node, size_t output, ValueIndex round, int64_t axis,
                           const Values& reads, Scope& scope) {
  const auto at = static_cast<int>(output);
  if (at >= node.output_size() || node.output(at).empty()) return kNoValue;
  if (round != kNoValue && model_.value(round).has_shape) {
    Dims dims = model_.value(round).dims;
    const auto rank = static_cast<int64_t>(dims.size()) + 1;
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) {
      dims.insert(dims.begin() + axis, 0);
      Scope inner = MadeScope(scope);
      return AddTyped(node.output(at), model_.value(round).elem_type, dims, inner);
    }
  }
  NodeProto collector;
  collector.set_op_type(node.op_type());
  collector.set_name(node.name());
  collector.add_output(node.output(at));
  AddDeadEnd(collector, DeadEnd::Kind::kControlFlow,
             "it runs no round, and the shape of its output is unknown", reads, scope);
  return kNoValue;
}

bool Expander::Refuse(std::string why) {
  why_not_ = std::move(why);
  return false;
}

// ---- Scan ---------------------------------------------------------------------------------------

bool Expander::ExpandScan(const NodeProto& node, const Values& inputs, Scope& scope) {
  const GraphProto* body = BodyOf(node, "body");
  const auto scanned =
      static_cast<size_t>(std::max<int64_t>(0, IntAttribute(node, "num_scan_inputs", 0)));
  const bool has_batch = scope.opsets->at("") < kFirstOpsetOfPlainScan;
  const size_t first = has_batch ? 1 : 0;  // The first operand has the lengths of the samples.
  if (body == nullptr || scanned == 0 || scanned + first > inputs.size()) return false;
  const size_t states = inputs.size() - first - scanned;
  const bool has_outputs = body->output_size() >= static_cast<int>(states);
  if (body->input_size() != static_cast<int>(inputs.size() - first) || !has_outputs) return false;
  Scope shared = LoopScope(node, *body, scope);
  NodeProto named;  // The names of what the rounds read and make.
  named.set_name(node.name());
  named.set_op_type(node.op_type());
  for (size_t i = first; i < inputs.size(); ++i) named.add_input(node.input(static_cast<int>(i)));
  for (const std::string& output : node.output()) named.add_output(output);
  const Values given(inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end());
  if (has_batch) return ExpandScanOfBatch(node, named, *body, inputs[0], given, shared, scope);
  const std::optional<Values> made = ScanRounds(node, named, *body, given, shared, scope);
  if (!made) return false;
  NameOutputs(node, *made, scope);
  return true;
}

std::optional<Expander::Values> Expander::ScanRounds(const NodeProto& node, const NodeProto& named,
                                                     const GraphProto& body, const Values& given,
                                                     const Scope& shared, Scope& scope) {
  const auto scanned = static_cast<size_t>(IntAttribute(node, "num_scan_inputs", 0));
  const size_t states = given.size() - scanned;
  const bool has_batch = scope.opsets->at("") < kFirstOpsetOfPlainScan;
  std::optional<int64_t> length;
  std::vector<Values> slices;
  Values sample(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(states));
  for (size_t i = 0; i < scanned; ++i) {
    const ValueIndex value = given[states + i];
    if (value == kNoValue || !model_.value(value).has_shape) {
      Refuse("the length of its scan inputs is unknown");
      return std::nullopt;
    }
    Dims dims = model_.value(value).dims;
    const auto rank = static_cast<int64_t>(dims.size());
    int64_t axis = NumberFor(node, "scan_input_axes", i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    const int64_t own = dims[static_cast<size_t>(axis)];
    if (own < 0 || own > static_cast<int64_t>(kMaxUnrolledOperations) ||
        length.value_or(own) != own) {
      Refuse(length ? "its scan inputs have different lengths"
                    : fmt::format("it has {} rounds", own));
      return std::nullopt;
    }
    length = own;
    if (own == 0) {
      dims.erase(dims.begin() + axis);
      Scope inner = MadeScope(scope);
      sample.push_back(AddTyped(fmt::format("{}:slice", named.input(static_cast<int>(states + i))),
                                model_.value(value).elem_type, dims, inner));
      continue;
    }
    slices.push_back(Unstack(named, static_cast<int>(states + i), value, axis, scope));
    if (NumberFor(node, has_batch ? "directions" : "scan_input_directions", i) != 0) {
      std::reverse(slices.back().begin(), slices.back().end());
    }
  }
  Values carried(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<Values> rounds(static_cast<size_t>(body.output_size()) - states);
  for (int64_t round = 0; round < *length; ++round) {
    Values operands = carried;
    for (const Values& slice : slices) operands.push_back(slice[static_cast<size_t>(round)]);
    const auto made = ExpandRound(body, round, operands, shared);
    if (!made || is_too_large_) return std::nullopt;
    carried.assign(made->begin(), made->begin() + static_cast<std::ptrdiff_t>(states));
    for (size_t i = 0; i < rounds.size(); ++i) rounds[i].push_back((*made)[states + i]);
  }
  if (*length == 0) sample = TypesOfRound(body, sample, shared);
  for (size_t i = 0; i < rounds.size(); ++i) {
    const auto at = static_cast<int>(states + i);
    if (at >= named.output_size()) break;
    const int64_t axis = NumberFor(node, "scan_output_axes", i);
    if (*length == 0) {
      carried.push_back(Empty(named, states + i, sample[states + i], axis, given, scope));
    } else if (named.output(at).empty()) {
      carried.push_back(kNoValue);
    } else {
      if (NumberFor(node, "scan_output_directions", i) != 0) {
        std::reverse(rounds[i].begin(), rounds[i].end());
      }
      carried.push_back(Stack(named, at, rounds[i], axis, scope));
    }
  }
  return carried;
}

bool Expander::ExpandScanOfBatch(const NodeProto& node, const NodeProto& named,
                                 const GraphProto& body, ValueIndex lengths, const Values& given,
                                 const Scope& shared, Scope& scope) {
  int64_t samples = -1;
  int64_t longest = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const bool is_known = given[i] != kNoValue && model_.value(given[i]).has_shape &&
                          !model_.value(given[i]).dims.empty();
    if (!is_known) return Refuse("the shape of its inputs is unknown");
    const Dims& dims = model_.value(given[i]).dims;
    if (samples >= 0 && dims[0] != samples) return Refuse("its inputs have different batch sizes");
    samples = dims[0];
    if (dims.size() > 1 && i + 1 == given.size()) longest = dims[1];
  }
  const std::optional<int64_t> all = CheckedMul(samples, std::max<int64_t>(longest, 1));
  if (samples <= 0 || !all || *all > static_cast<int64_t>(kMaxUnrolledOperations)) {
    return Refuse(fmt::format("it has {} samples of {} rounds", samples, longest));
  }
  if (lengths != kNoValue) {
    const ConstantValue* known = KnownContents(lengths);
    if (known == nullptr) return Refuse("the lengths of its samples are unknown");
    const bool is_whole = std::all_of(known->ints.begin(), known->ints.end(),
                                      [&](int64_t length) { return length == longest; });
    if (!is_whole) return Refuse("its samples have different lengths");
  }
  std::vector<Values> columns;
  for (size_t i = 0; i < given.size(); ++i) {
    columns.push_back(Unstack(named, static_cast<int>(i), given[i], 0, scope));
  }
  std::vector<Values> outputs(static_cast<size_t>(named.output_size()));
  for (int64_t k = 0; k < samples; ++k) {
    Values operands;
    for (const Values& column : columns) operands.push_back(column[static_cast<size_t>(k)]);
    NodeProto own = named;
    const std::string suffix = samples == 1 ? "" : fmt::format(":sample{}", k);
    for (std::string& name : *own.mutable_input()) name += suffix;
    for (std::string& name : *own.mutable_output()) name += name.empty() ? "" : suffix;
    Scope sample{&shared,          fmt::format("{}{}/", shared.prefix, k),
                 shared.opsets,    shared.attributes,
                 shared.declared,  shared.depth + 1,
                 shared.file_node, {}};
    const std::optional<Values> made = ScanRounds(node, own, body, operands, sample, scope);
    if (!made) return false;
    for (size_t i = 0; i < outputs.size() && i < made->size(); ++i)
      outputs[i].push_back((*made)[i]);
  }
  Values whole;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_wanted = !node.output(static_cast<int>(i)).empty();
    const bool is_made = outputs[i].size() == static_cast<size_t>(samples) &&
                         std::count(outputs[i].begin(), outputs[i].end(), kNoValue) == 0;
    if (is_wanted && !is_made) return Refuse("the shape of its output is unknown");
    whole.push_back(is_wanted ? Stack(named, static_cast<int>(i), outputs[i], 0, scope) : kNoValue);
  }
  NameOutputs(node, whole, scope);
  return true;
}

// ---- SequenceMap --------------------------------------------------------------------------------

bool Expander::ExpandSequenceMap(const NodeProto& node, const Values& inputs, Scope& scope) {
  const GraphProto* body = BodyOf(node, "body");
  if (body == nullptr || inputs.empty()) return false;
  if (body->input_size() != static_cast<int>(inputs.size())) return false;
  const Parts* first = PartsOf(inputs[0]);
  if (first == nullptr) return Refuse("the parts of its sequence are unknown");
  const size_t rounds = first->size();
  std::vector<Values> columns(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Parts* known = PartsOf(inputs[i]);
    const Parts parts = known == nullptr ? Parts(rounds, Part{inputs[i], std::nullopt}) : *known;
    if (parts.size() != rounds) return Refuse("its sequences have different lengths");
    NodeProto source = node;
    source.set_output(0, fmt::format("{}:map{}", node.output(0), i));
    for (size_t k = 0; k < rounds; ++k) {
      columns[i].push_back(ValueOfPart(source, parts[k], k, scope));
    }
  }
  Scope shared = LoopScope(node, *body, scope);
  std::vector<Parts> made_parts(static_cast<size_t>(node.output_size()));
  for (size_t round = 0; round < rounds; ++round) {
    Values operands;
    for (const Values& column : columns) operands.push_back(column[round]);
    const auto made = ExpandRound(*body, static_cast<int64_t>(round), operands, shared);
    if (!made || is_too_large_) return false;
    for (size_t i = 0; i < made_parts.size() && i < made->size(); ++i) {
      made_parts[i].push_back({(*made)[i], std::nullopt});
    }
  }
  for (size_t i = 0; i < made_parts.size(); ++i) {
    NodeProto named;
    named.add_output(node.output(static_cast<int>(i)));
    if (!named.output(0).empty() && !AddSequence(named, std::move(made_parts[i]), scope)) {
      return false;
    }
  }
  return true;
}

}  // namespace ckplan
