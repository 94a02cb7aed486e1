#include "lib/files/model/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ckplan {
namespace {

std::string KeyOf(const std::string& domain, const std::string& name, const std::string& overload) {
  return fmt::format("{}\n{}\n{}", PlainDomain(domain), name, overload);
}

}  // namespace

ModelFunctions::ModelFunctions(const onnx::ModelProto& model) {
  for (const onnx::FunctionProto& function : model.functions()) {
    functions_[KeyOf(function.domain(), function.name(), function.overload())] = &function;
  }
}

const onnx::FunctionProto* ModelFunctions::Find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(KeyOf(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

const std::string& PlainDomain(const std::string& domain) {
  static const std::string kEmpty;
  return domain == "ai.onnx" ? kEmpty : domain;
}

bool IsStandard(const onnx::NodeProto& node) { return PlainDomain(node.domain()).empty(); }

bool HoldsGraph(const onnx::NodeProto& node) {
  return std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
    return attribute.has_g() || attribute.graphs_size() > 0;
  });
}

void BindAttributes(onnx::NodeProto& node, const CallAttributes& attributes) {
  auto& own = *node.mutable_attribute();
  for (int i = own.size() - 1; i >= 0; --i) {
    onnx::AttributeProto& attribute = *own.Mutable(i);
    if (attribute.has_ref_attr_name() && !attribute.ref_attr_name().empty()) {
      const auto found = attributes.find(attribute.ref_attr_name());
      if (found == attributes.end()) {
        own.DeleteSubrange(i, 1);
        continue;
      }
      const std::string name = attribute.name();
      attribute = *found->second;
      attribute.set_name(name);
    }
    if (attribute.has_g()) {
      for (onnx::NodeProto& inner : *attribute.mutable_g()->mutable_node()) {
        BindAttributes(inner, attributes);
      }
    }
  }
}

bool NeedsBinding(const onnx::NodeProto& node) {
  return HoldsGraph(node) ||
         std::any_of(node.attribute().begin(), node.attribute().end(),
                     [](const auto& attribute) { return attribute.has_ref_attr_name(); });
}

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
