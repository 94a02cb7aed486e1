// The blocks of a model, the units of other runtimes: the elements of its longest list of modules,
// such as the layers of a transformer, and the modules around them.
//
//   layers.0   layers.0.attention  layers.0.mlp      a block and its parts
//   layers.1   …                                      the next one
//   head                                              not repeated
//
// If lists are nested, like the stages of a ResNet and their blocks, the blocks are the elements of
// the innermost list that have at least kMinOps forward operations on average.
#pragma once

#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// The forward and backward operations of a module, each in the order of the graph.
struct ModuleOps {
  std::string path;
  std::vector<OpId> forward;
  std::vector<OpId> backward;
};

struct Block {
  ModuleOps ops;
  // Its outermost submodules that have forward operations, in the order of these. Operations of the
  // block itself are in none.
  std::vector<ModuleOps> parts;
  bool is_repeated = false;
  // Blocks of the same kind have equal operations, in the same order, with equal costs and sizes.
  int32_t kind = 0;
};

// Returns the blocks in the order of their first operations, from Operation::module, where dots
// separate names. Omits a module whose operations alternate with those of other blocks, as if it
// was called twice. Fails with kUnsupported if no operation names its module.
Result<std::vector<Block>> FindBlocks(const JointGraph& graph);

}  // namespace ckplan
