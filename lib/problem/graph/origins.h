// Where the nodes of a graph come from: the nodes and values of the model's file, and the
// modules of the original program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// What became of the nodes and values of a model's file in its graph: users still ask for them.

// The role of a file node in the graph.
enum class NodeRole {
  kNode,  // A node of the graph, given by `node`.
  kView,  // A view: its output has the memory of its input.
  // Folded, or computed from parameters and constants only: it runs once, before the steps.
  kConstant,
};

struct ModelNodeRole {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // Set only for kNode.
};

// A value that the file names and the graph does not hold.
struct AbsentValue {
  enum class Kind : uint8_t {
    kView,      // The result of a Reshape, say: it shares the memory of `tensor`.
    kConstant,  // Exists before the step begins: a parameter, or computed from parameters alone.
    kUnread,    // No operation reads it, so it is not made.
  };
  std::string name;
  Kind kind = Kind::kConstant;
  TensorId tensor;  // None unless the value is a view.

  bool operator==(const AbsentValue&) const = default;
};

// A node of the graph that the file spells out as several operators.
struct RestoredOperation {
  std::string name;  // The node's name in the graph.
  std::string op;    // Its operator, such as "Swish".
  // The PyTorch operation that the exporter names, such as "aten.silu.default". Empty if the file
  // names none, and the operators were recognised by their form.
  std::string origin;
  std::vector<std::string> replaced;  // The operators of the file, such as "Sigmoid", "Mul".
};

// The module of the original program that each node comes from, as exporters record it in models.
//
//   "" (ResNet) ─▶ "layer1" (Sequential) ─▶ "layer1.0" (BasicBlock) ─▶ "layer1.0.conv1" (Conv2d)
//
// A module that the program calls twice has two calls with the same path.
struct ModuleCall {
  std::string path;        // For example "layer1.0"; empty for the model itself.
  std::string class_name;  // For example "torchvision.models.resnet.BasicBlock".
  int32_t parent = -1;     // The index of the calling call; -1 for the model itself.

  bool operator==(const ModuleCall&) const = default;
};

struct ModuleCalls {
  std::vector<ModuleCall> calls;      // Callers come before the calls they make.
  IdVector<NodeId, int32_t> call_of;  // The innermost call of each node; -1 if unknown.

  bool empty() const { return calls.empty(); }
  const ModuleCall& call(int32_t index) const { return calls[static_cast<size_t>(index)]; }
};

// The modules that contain a node, derived from the path of the innermost module or from the node's
// name.

// Returns the modules on a path, the outermost first: "a", "a.b" and "a.b.c" for "a.b.c".
std::vector<std::string> ModulesOnPath(std::string_view path, char separator = '.');

// Returns each part of a node's name that ends before a slash: "/a" and "/a/b" for "/a/b/Conv".
std::vector<std::string> ModulesInName(std::string_view name);

}  // namespace ckplan
