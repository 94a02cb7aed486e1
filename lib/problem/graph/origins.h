// Maps the nodes of a graph to the nodes and values of the model's file, and to the modules of the
// original program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// ---- The nodes and values of a model's file, which users refer to ----

// The role of a file node in the graph.
enum class NodeRole {
  kNode,  // A node of the graph: see ModelNodeRole::node.
  kView,  // A view: its output shares its input's memory.
  // Folded, or computed only from parameters and constants: runs once, before the first step.
  kConstant,
};

struct ModelNodeRole {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // Set only for kNode.
};

// A value in the file that is not in the graph.
struct AbsentValue {
  enum class Kind : uint8_t {
    kView,      // Shares the memory of `tensor`, such as the result of a Reshape.
    kConstant,  // Exists before the step: a parameter, or computed only from parameters.
    kUnread,    // Not computed, since no operation reads it.
  };
  std::string name;
  Kind kind = Kind::kConstant;
  TensorId tensor;  // None unless the value is a view.

  bool operator==(const AbsentValue&) const = default;
};

// A node of the graph that replaces several operators of the file.
struct RestoredOperation {
  std::string name;  // The node's name in the graph.
  std::string op;    // Its operator, such as "Swish".
  // The PyTorch operation that the exporter recorded, such as "aten.silu.default". Empty if the
  // operators were recognised by their pattern.
  std::string origin;
  std::vector<std::string> replaced;  // The operators of the file, such as "Sigmoid", "Mul".
};

// The module of the original program from which each node comes, as exporters record it.
//
//   "" (ResNet) ─▶ "layer1" (Sequential) ─▶ "layer1.0" (BasicBlock) ─▶ "layer1.0.conv1" (Conv2d)
//
// A module that the program calls twice has two calls with the same path.
struct ModuleCall {
  std::string path;        // For example "layer1.0"; empty for the model itself.
  std::string class_name;  // For example "torchvision.models.resnet.BasicBlock".
  int32_t parent = -1;     // The index of the caller; -1 for the model itself.

  bool operator==(const ModuleCall&) const = default;
};

struct ModuleCalls {
  std::vector<ModuleCall> calls;      // Callers precede their callees.
  IdVector<NodeId, int32_t> call_of;  // The innermost call of each node; -1 if unknown.

  bool empty() const { return calls.empty(); }
  const ModuleCall& call(int32_t index) const { return calls[static_cast<size_t>(index)]; }
};

// Returns the modules on a path, outermost first: "a", "a.b" and "a.b.c" for "a.b.c".
std::vector<std::string> ModulesOnPath(std::string_view path, char separator = '.');

// Returns each prefix of a node's name that ends before a slash: "/a" and "/a/b" for "/a/b/Conv".
std::vector<std::string> ModulesInName(std::string_view name);

}  // namespace ckplan
