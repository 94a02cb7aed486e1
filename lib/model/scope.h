// Where names are looked up while a model is expanded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/model/model_impl.h"

namespace ckplan {

using OpsetVersions = std::unordered_map<std::string, int>;
using DeclaredTypes = std::unordered_map<std::string, const onnx::TypeProto*>;

// The main graph, a branch of an If within it, or a function's body.
struct Scope {
  const Scope* parent = nullptr;  // A branch sees the names around it; a function does not.
  std::string prefix;             // Begins the names that this scope makes.
  const OpsetVersions* opsets = nullptr;
  const CallAttributes* attributes = nullptr;  // Those of the call, in a function.
  const DeclaredTypes* declared = nullptr;
  int depth = 0;
  int32_t file_node = 0;
  std::unordered_map<std::string, ValueIndex> names;
};

// A scope for names of nodes that stand for one of the file, which has no such names.
Scope MadeScope(const Scope& around);

std::optional<ValueIndex> Find(const std::string& name, const Scope& scope);
// Null if the operator is not known.
const onnx::OpSchema* SchemaOf(const onnx::NodeProto& node, const Scope& scope);

// The name, or "name#2" and so on where it is taken; it is then taken itself.
std::string UniqueName(std::string name, std::unordered_map<std::string, int>& used);

OpsetVersions OpsetsOf(const onnx::ModelProto& model);
OpsetVersions OpsetsOf(const onnx::FunctionProto& function);
DeclaredTypes DeclaredIn(const onnx::GraphProto& graph);

}  // namespace ckplan
