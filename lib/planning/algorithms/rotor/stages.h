// A graph as the chain of stages that rotor.h decides on.
//
// The stages are the blocks between splitting vertices (lib/problem/graph/vertex_graph.h). The
// simulator measures their memory on a training step whose forward pass runs twice: in the first
// pass every stage keeps nothing, in the second one it saves all that backward reads.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// All figures are in bytes, or in slots of memory. Peaks do not count the stage's input, the result
// of the stage before.
struct Stage {
  int64_t time = 0;         // u_F: the time of one forward run.
  int64_t output = 0;       // a: the size of the tensors that the next stage reads.
  int64_t saved = 0;        // a-bar: memory that F_all leaves occupied, including the output.
  int64_t gradient = 0;     // delta: the output's gradient; 0 for the last stage, where the loss
                            // makes it.
  int64_t forward = 0;      // Peak of a run that keeps nothing, without the input.
  int64_t forward_all = 0;  // Peak of a run that saves all, without the input.
  int64_t backward = 0;  // Peak of the backward run without the input, including saved tensors and
                         // gradients.
};

// The most stages; neighbouring blocks are merged to stay within it.
inline constexpr int32_t kMaxChainStages = 64;

struct StageChain {
  std::vector<Stage> stages;  // In bytes.
  // The nodes of each stage in forward order; the lists together are a topological order.
  std::vector<std::vector<NodeId>> nodes;
  // Marks nodes that need no gradient and whose results later stages read, such as an attention
  // mask: they run once, and their results stay.
  IdVector<NodeId, bool> runs_once;
};

// O(nodes + edges).
StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
