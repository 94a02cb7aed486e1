#include "lib/files/model/origin.h"

#include <algorithm>
#include <optional>

#include "lib/files/model/module_calls.h"

namespace ckplan {

namespace {

constexpr std::string_view kFxNode = "pkg.torch.onnx.fx_node";
constexpr std::string_view kOriginNote = "ckplan.origin";
constexpr std::string_view kScopesOfNode = "pkg.torch.onnx.name_scopes";
constexpr std::string_view kStackTrace = "pkg.torch.onnx.stack_trace";
constexpr std::string_view kTarget = "[target=";
constexpr std::string_view kNamespace = "torch.ops.";

std::string_view MetadataOf(const onnx::NodeProto& node, std::string_view key) {
  for (const auto& property : node.metadata_props()) {
    if (property.key() == key) return property.value();
  }
  return {};
}

// Reads "%name : [num_users=1] = call_function[target=torch.ops.aten.silu.default](args = …".
Origin ReadFxNode(std::string_view text) {
  const size_t end = text.find(' ');
  const size_t call = text.find(kTarget);
  if (!text.starts_with('%') || end == text.npos || call == text.npos) return {};
  std::string_view target = text.substr(call + kTarget.size());
  target = target.substr(0, target.find(']'));
  if (target.starts_with(kNamespace)) target.remove_prefix(kNamespace.size());
  return {std::string(text.substr(1, end - 1)), std::string(target)};
}

// The last class is the operation itself: "aten.silu.default". Other classes are modules.
Origin ReadScopes(const onnx::NodeProto& node) {
  const auto scopes = ParsePythonStrings(MetadataOf(node, kScopesOfNode));
  const std::vector<std::string> classes = ClassesOf(node);
  if (!scopes || scopes->empty() || classes.empty() || !classes.back().starts_with("aten.")) {
    return {};
  }
  return {scopes->back(), classes.back()};
}

// Reads "huber_loss aten.huber_loss.default", which ckplan.torch.export notes.
Origin ReadNote(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == text.npos) return {};
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

Origin OriginOfNode(const onnx::NodeProto& node) {
  if (Origin noted = ReadNote(MetadataOf(node, kOriginNote)); noted.is_known()) return noted;
  Origin origin = ReadFxNode(MetadataOf(node, kFxNode));
  return origin.is_known() ? origin : ReadScopes(node);
}

}  // namespace

bool Origin::Is(std::string_view packet) const {
  return target.starts_with(packet) &&
         (target.size() == packet.size() || target[packet.size()] == '.');
}

Origin OriginOf(const Model::Impl& model, const ModelOperation& operation) {
  Origin origin = OriginOfNode(*operation.node);
  const onnx::GraphProto& graph = model.proto->graph();
  if (origin.is_known() || operation.file_node >= graph.node_size()) return origin;
  return OriginOfNode(graph.node(operation.file_node));
}

namespace {

std::string_view TraceOf(const Model::Impl& model, const ModelOperation& operation) {
  const onnx::GraphProto& graph = model.proto->graph();
  if (operation.file_node >= graph.node_size()) return {};
  return MetadataOf(graph.node(operation.file_node), kStackTrace);
}

}  // namespace

bool TraceHas(const Model::Impl& model, const ModelOperation& operation, std::string_view text) {
  const std::string_view trace = TraceOf(model, operation);
  return trace.find(text) != trace.npos;
}

bool AreFromOneLine(const Model::Impl& model, const std::vector<size_t>& operations) {
  if (operations.empty()) return false;
  const std::string_view first = TraceOf(model, model.operations[operations[0]]);
  return std::all_of(operations.begin(), operations.end(), [&](size_t i) {
    const ModelOperation& operation = model.operations[i];
    if (first.empty() && OriginOf(model, operation).is_known()) return false;
    return TraceOf(model, operation) == first;
  });
}

std::optional<Origin> CommonOrigin(const Model::Impl& model,
                                   const std::vector<size_t>& operations) {
  std::optional<Origin> common;
  for (const size_t operation : operations) {
    Origin origin = OriginOf(model, model.operations[operation]);
    if (!common) {
      common = std::move(origin);
    } else if (common->name != origin.name) {
      return std::nullopt;
    }
  }
  return common;
}

}  // namespace ckplan
