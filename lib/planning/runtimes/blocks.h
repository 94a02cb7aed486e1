// The blocks of a model, which other runtimes decide about: the elements of its longest list of
// modules, such as the layers of a transformer, and what is around them.
//
//   layers.0   layers.0.attention  layers.0.mlp      a block and its parts
//   layers.1   …                                      the next one
//   head                                              not repeated
//
// Where lists are nested, as the stages of a ResNet and their blocks, the elements of the innermost
// list are taken that have at least kMinOps forward operations on average.
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
  // Its submodules, the outermost of each, that have forward operations of their own, in the order
  // of these. Operations of the block itself are in none.
  std::vector<ModuleOps> parts;
  bool is_repeated = false;
  // Blocks of the same kind have equal operations, in the same order, with equal costs and sizes.
  int32_t kind = 0;
};

// Returns the blocks in the order of their first operations, by Operation::module, in which dots
// are between the names. A module whose operations alternate with those of other blocks, as if it
// was called twice, is left out. kUnsupported: no operation says which module it comes from.
Result<std::vector<Block>> FindBlocks(const JointGraph& graph);

}  // namespace ckplan
