#include "lib/files/model/functions.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace ckplan
