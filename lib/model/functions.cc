#include "lib/model/functions.h"

#include <fmt/format.h>

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

}  // namespace ckplan
