// The module of the original program that each node comes from, as exporters record it in models.
//
//   "" (ResNet) ─▶ "layer1" (Sequential) ─▶ "layer1.0" (BasicBlock) ─▶ "layer1.0.conv1" (Conv2d)
//
// A module that the program calls twice has two calls with the same path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

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
