// Pipeline parallelism: a training step cut into stages, one on each device, through which
// micro-batches follow each other. docs/parallelism.md has the formulas with their sources.
//
//   stage 0 of 3, 1F1B, 6 micro-batches: forward F, backward B, of the micro-batch with that number
//
//     F0 F1 F2          B0 F3 B1 F4 B2 F5 B3    B4    B5        at most 3 of them wait for backward
//        F0 F1       B0 F2 B1 F3 B2 F4 B3 F5 B4    B5           stage 1: at most 2
//           F0    B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5              stage 2: at most 1
//
// A stage is a range of nodes in the graph's order. It has an ordinary graph: tensors that it reads
// from earlier stages are its inputs, and tensors that later stages read are its outputs, whose
// gradients come from there. All micro-batches follow one plan. Memory that a micro-batch keeps
// from its forward pass to its backward pass counts once for each micro-batch in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/parallel/division.h"

namespace ckplan {

// Returns the most micro-batches whose backward is outstanding in the stage at once, including the
// running one.
int64_t MicroBatchesInFlight(const PipelineStage& stage, int64_t micro_batches,
                             PipelineSchedule schedule);

struct NodeRange {
  NodeId begin;
  NodeId end;

  bool Has(NodeId id) const { return id >= begin && id < end; }
  bool operator==(const NodeRange&) const = default;
};

// Returns the first node of each stage. `cuts` names the first node of each stage except stage 0: a
// node, or a module, which stands for its first node. Without cuts, the cost of the costliest stage
// (forward plus backward) is minimised; earlier stages then take as many nodes as they can. kUsage:
// there are fewer nodes than stages, or `cuts` does not have a known name for each stage except
// stage 0, in the graph's order.
Result<std::vector<NodeId>> StartsOfStages(const TensorGraph& graph, const ModuleCalls& modules,
                                           int64_t stages, std::span<const std::string> cuts);

// Returns the nodes of stage `index`, in a graph of `node_count` nodes.
NodeRange NodesOfStage(std::span<const NodeId> starts, int64_t index, size_t node_count);

// The graph of a range of nodes, and the mapping of tensors from the whole graph to it. It has no
// parameters: ModelGraph::parameters has those that its nodes read.
struct StageGraph {
  TensorGraphParts parts;
  IdVector<TensorId, TensorId> tensor_of;  // The index is a tensor of the whole graph; none if the
                                           // stage lacks it.
};
StageGraph CutStage(const TensorGraph& graph, const NodeRange& nodes);

}  // namespace ckplan
