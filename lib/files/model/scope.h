// The scopes for name lookup while a model is expanded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/files/model/model_impl.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

using OpsetVersions = std::unordered_map<std::string, int>;
using DeclaredTypes = std::unordered_map<std::string, const onnx::TypeProto*>;

// The main graph, a branch of an If within it, or a function's body.
struct Scope {
  const Scope* parent = nullptr;  // A branch sees the names of its parent; a function does not.
  std::string prefix;             // The prefix of names in this scope.
  const OpsetVersions* opsets = nullptr;
  const CallAttributes* attributes = nullptr;  // In a function: the attributes of its call.
  const DeclaredTypes* declared = nullptr;
  int depth = 0;
  int32_t file_node = 0;
  std::unordered_map<std::string, ValueIndex> names;
};

// Returns a scope for nodes that replace a node of the file. It doesn't contain the names of
// `around`.
Scope MadeScope(const Scope& around);

std::optional<ValueIndex> Find(const std::string& name, const Scope& scope);
// Returns null if the operator is unknown.
const onnx::OpSchema* SchemaOf(const onnx::NodeProto& node, const Scope& scope);

// Returns the name, or "name#2" and so on if it is taken, and marks the result as taken.
std::string UniqueName(std::string name, std::unordered_map<std::string, int>& used);

OpsetVersions OpsetsOf(const onnx::ModelProto& model);
OpsetVersions OpsetsOf(const onnx::FunctionProto& function);
DeclaredTypes DeclaredIn(const onnx::GraphProto& graph);

}  // namespace ckplan
