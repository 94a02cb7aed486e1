// A graph as the chain of stages that rotor.h decides on.
//
// The blocks between splitting vertices (lib/graph/chain.h) are the stages. What each of them needs
// is measured by the simulator on one step of training whose forward pass runs twice: in the first
// pass every stage keeps nothing, in the second one it saves all that backward reads.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/graph/vertex_graph.h"

namespace ckplan {

// Bytes, or slots of memory. "Beside its input": the result of the stage before is not counted.
struct Stage {
  int64_t time = 0;         // u_F: one run forward.
  int64_t output = 0;       // a: what the next stage reads.
  int64_t saved = 0;        // a-bar: what F_all leaves in memory, the output included.
  int64_t gradient = 0;     // delta: of the output. 0 for the last stage: the loss makes it.
  int64_t forward = 0;      // The most in memory while it runs, beside its input.
  int64_t forward_all = 0;  // The same while it runs and saves all.
  int64_t backward = 0;  // The same while it runs backward, saved tensors and gradients included.
};

// More blocks than this are merged, neighbours with each other, into as many stages.
inline constexpr int32_t kMaxChainStages = 64;

struct StageChain {
  std::vector<Stage> stages;  // In bytes.
  // In forward order; one after the other they are a topological order.
  std::vector<std::vector<NodeId>> nodes;
  // Nodes whose results need no gradient and are read by later stages, such as an attention mask:
  // they run once, and their results stay.
  IdVector<NodeId, bool> runs_once;
};

// O(nodes + edges).
StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices);

}  // namespace ckplan
