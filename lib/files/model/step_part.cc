#include "lib/files/model/step_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "lib/files/model/bind_dims.h"
#include "lib/files/model/constant.h"

namespace ckplan {

namespace {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr size_t kShownTypes = 5;

bool MayBeTrained(const onnx::ValueInfoProto& output) {
  if (!output.has_type() || output.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) {
    return true;
  }
  if (!output.type().has_tensor_type()) return false;
  const int32_t type = output.type().tensor_type().elem_type();
  return type == onnx::TensorProto::UNDEFINED || IsFloatType(type);
}

std::vector<std::string> OutputsOfFile(const GraphProto& graph) {
  std::vector<std::string> floats;
  std::vector<std::string> all;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    all.push_back(output.name());
    if (MayBeTrained(output)) floats.push_back(output.name());
  }
  return floats.empty() ? all : floats;
}

std::string NodeNameOf(const NodeProto& node) {
  if (!node.name().empty()) return node.name();
  return node.op_type() + ":" + (node.output_size() > 0 ? node.output(0) : std::string());
}

// Returns the matching values, in the order of the nodes that produce them.
Result<std::vector<std::string>> ValuesThatFit(const GraphProto& graph,
                                               const NamePatterns& patterns) {
  std::vector<std::string> node_names;
  for (const NodeProto& node : graph.node()) node_names.push_back(NodeNameOf(node));
  std::vector<NamedThing> things;
  for (int i = 0; i < graph.node_size(); ++i) {
    const NodeProto& node = graph.node(i);
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      things.push_back({{output, node_names[static_cast<size_t>(i)]}, node.op_type()});
    }
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<bool> chosen,
                          ChooseByName(patterns, things, "tensor or node"));
  std::vector<std::string> values;
  for (size_t i = 0; i < things.size(); ++i) {
    if (chosen[i]) values.emplace_back(things[i].names.front());
  }
  return values;
}

// Returns a text such as "3 nodes (2 TopK, ArgMax)".
std::string NodesText(const std::map<std::string, int>& types) {
  int count = 0;
  std::vector<std::string> shown;
  for (const auto& [type, nodes] : types) {
    count += nodes;
    shown.push_back(nodes == 1 ? ShortName(type) : fmt::format("{} {}", nodes, ShortName(type)));
  }
  return fmt::format("{} node{} ({})", count, count == 1 ? "" : "s", ShortList(shown, kShownTypes));
}

}  // namespace

void AppendReads(const NodeProto& node, std::vector<std::string>* names) {
  std::vector<const NodeProto*> pending = {&node};
  while (!pending.empty()) {
    const NodeProto& at = *pending.back();
    pending.pop_back();
    names->insert(names->end(), at.input().begin(), at.input().end());
    const auto add_body = [&](const GraphProto& body) {
      for (const NodeProto& inner : body.node()) pending.push_back(&inner);
      // A branch may return a value of the enclosing graph.
      for (const auto& output : body.output()) names->push_back(output.name());
    };
    for (const auto& attribute : at.attribute()) {
      if (attribute.has_g()) add_body(attribute.g());
      for (const GraphProto& body : attribute.graphs()) add_body(body);
    }
  }
}

StepPart PartOf(const GraphProto& graph, std::vector<std::string> outputs, bool is_chosen) {
  std::unordered_map<std::string, int> producer_of;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& output : graph.node(i).output()) {
      if (!output.empty()) producer_of.emplace(output, i);
    }
  }
  StepPart part;
  part.outputs = std::move(outputs);
  part.is_chosen = is_chosen;
  part.has_node.resize(static_cast<size_t>(graph.node_size()));
  std::vector<std::string> pending = part.outputs;
  std::vector<bool>& has_node = part.has_node;
  while (!pending.empty()) {
    std::string name = std::move(pending.back());
    pending.pop_back();
    const auto producer = producer_of.find(name);
    if (!part.names.insert(std::move(name)).second || producer == producer_of.end()) continue;
    if (has_node[static_cast<size_t>(producer->second)]) continue;
    has_node[static_cast<size_t>(producer->second)] = true;
    AppendReads(graph.node(producer->second), &pending);
  }
  std::vector<std::string> others;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!has_node[static_cast<size_t>(i)]) AppendReads(graph.node(i), &others);
  }
  for (std::string& name : others) {
    if (!part.names.contains(name)) part.left_out.insert(std::move(name));
  }
  return part;
}

Result<StepPart> ChoosePart(const GraphProto& graph, const NamePatterns& outputs,
                            const std::string& file) {
  if (outputs.empty()) return PartOf(graph, OutputsOfFile(graph), false);
  Result<std::vector<std::string>> values = ValuesThatFit(graph, outputs);
  if (!values.ok()) {
    Error error = std::move(values).error();
    error.message.insert(0, file + ": ");
    return error;
  }
  if (values->empty()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: --outputs {} chooses nothing; name a tensor or node that no "
                                 "later pattern excludes",
                                 file, ShortName(fmt::format("{}", fmt::join(outputs, ",")))));
  }
  return PartOf(graph, std::move(*values), true);
}

std::string LeftOutNote(const GraphProto& graph, const StepPart& part) {
  std::vector<std::string> outputs;
  std::vector<std::string> left;
  for (const auto& output : graph.output()) {
    const bool is_planned =
        std::find(part.outputs.begin(), part.outputs.end(), output.name()) != part.outputs.end();
    if (is_planned) continue;
    outputs.push_back(fmt::format("\"{}\"", ShortName(output.name())));
    left.push_back(output.name());
  }
  if (outputs.empty()) return "";
  const StepPart others = PartOf(graph, std::move(left), false);
  std::map<std::string, int> types;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (others.has_node[at] && !part.has_node[at]) ++types[graph.node(i).op_type()];
  }
  const std::string nodes = types.empty() ? "" : ", with " + NodesText(types);
  return fmt::format("output{} {}{}", outputs.size() == 1 ? "" : "s",
                     ShortList(outputs, kShownTypes), nodes);
}

}  // namespace ckplan
