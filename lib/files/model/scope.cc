#include "lib/files/model/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ckplan {

namespace {

template <typename Proto>
OpsetVersions ReadOpsets(const Proto& proto) {
  OpsetVersions versions;
  for (const auto& import : proto.opset_import()) {
    versions[PlainDomain(import.domain())] =
        static_cast<int>(std::clamp<int64_t>(import.version(), 0, std::numeric_limits<int>::max()));
  }
  return versions;
}

}  // namespace

Scope MadeScope(const Scope& around) {
  static const DeclaredTypes kNone;
  Scope scope;
  scope.parent = &around;
  scope.prefix = around.prefix;
  scope.opsets = around.opsets;
  scope.declared = &kNone;
  scope.depth = around.depth;
  scope.file_node = around.file_node;
  return scope;
}

std::optional<ValueIndex> Find(const std::string& name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
  }
  return std::nullopt;
}

const onnx::OpSchema* SchemaOf(const onnx::NodeProto& node, const Scope& scope) {
  const std::string& domain = PlainDomain(node.domain());
  const auto version = scope.opsets->find(domain);
  if (version == scope.opsets->end()) return nullptr;
  return onnx::OpSchemaRegistry::Schema(node.op_type(), version->second, domain);
}

std::string UniqueName(std::string name, std::unordered_map<std::string, int>& used) {
  const auto [entry, is_new] = used.emplace(name, 1);
  if (is_new) return name;
  int& last = entry->second;  // The reference stays valid when the table grows.
  for (;;) {
    std::string candidate = fmt::format("{}#{}", name, ++last);
    if (used.emplace(candidate, 1).second) return candidate;
  }
}

OpsetVersions OpsetsOf(const onnx::ModelProto& model) { return ReadOpsets(model); }
OpsetVersions OpsetsOf(const onnx::FunctionProto& function) { return ReadOpsets(function); }

DeclaredTypes DeclaredIn(const onnx::GraphProto& graph) {
  DeclaredTypes declared;
  for (const auto& info : graph.value_info()) declared[info.name()] = &info.type();
  for (const auto& info : graph.output()) declared[info.name()] = &info.type();
  return declared;
}

}  // namespace ckplan
