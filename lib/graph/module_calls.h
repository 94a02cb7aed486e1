// Which module of the original program each node comes from, as exporters write it into models.
//
//   "" (ResNet) ─▶ "layer1" (Sequential) ─▶ "layer1.0" (BasicBlock) ─▶ "layer1.0.conv1" (Conv2d)
//
// A module that the program calls twice has two calls of one path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

struct ModuleCall {
  std::string path;        // "layer1.0"; empty for the model itself.
  std::string class_name;  // "torchvision.models.resnet.BasicBlock".
  int32_t parent = -1;     // The call that made this one; -1 for the model's own.

  bool operator==(const ModuleCall&) const = default;
};

struct ModuleCalls {
  std::vector<ModuleCall> calls;      // A caller stands before those that it calls.
  IdVector<NodeId, int32_t> call_of;  // The innermost call of each node; -1 where none is known.

  bool empty() const { return calls.empty(); }
  const ModuleCall& call(int32_t index) const { return calls[static_cast<size_t>(index)]; }
};

}  // namespace ckplan
