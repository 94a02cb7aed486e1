// Pipeline parallelism: a training step cut into stages, one on each device, through which
// micro-batches follow each other. docs/parallelism.md has the formulas with their sources.
//
//   stage 0 of 3, 1F1B, 6 micro-batches: forward F, backward B, of the micro-batch with that number
//
//     F0 F1 F2          B0 F3 B1 F4 B2 F5 B3    B4    B5        at most 3 of them wait for backward
//        F0 F1       B0 F2 B1 F3 B2 F4 B3 F5 B4    B5           stage 1: at most 2
//           F0    B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5              stage 2: at most 1
//
// A stage is a range of nodes, in the graph's own order. Its graph is one like any other: what
// earlier stages make and it reads are its inputs, and what later stages read are its outputs,
// whose gradients come from there. All micro-batches follow one plan. What one of them keeps from
// its forward pass for its backward pass is there once for each that is in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/graph/module_calls.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

enum class PipelineSchedule { k1F1B, kGPipe };

// Of so many stages the one with that number, from 0.
struct PipelineStage {
  int64_t stages = 1;
  int64_t index = 0;

  bool operator==(const PipelineStage&) const = default;
};

inline constexpr int64_t kMaxStages = 1'000'000;
inline constexpr int64_t kMaxMicroBatches = 1'000'000;

std::string TextOf(const PipelineStage& stage);  // "4/1"

// How many micro-batches wait in the stage for their backward at most, the one that runs included.
int64_t MicroBatchesInFlight(const PipelineStage& stage, int64_t micro_batches,
                             PipelineSchedule schedule);

struct NodeRange {
  NodeId begin;
  NodeId end;

  bool Has(NodeId id) const { return id >= begin && id < end; }
  bool operator==(const NodeRange&) const = default;
};

// The first nodes of all stages. Cuts name the first node of each stage but the first: a node, or a
// module, whose first node is meant. Without cuts, the costliest stage costs as little as it can,
// forward and backward together; earlier stages then take what they can. kUsage: fewer nodes than
// stages, or other cuts than one for each stage but the first, in the order of the graph, each of
// which is found.
Result<std::vector<NodeId>> StartsOfStages(const TensorGraph& graph, const ModuleCalls& modules,
                                           int64_t stages, std::span<const std::string> cuts);

// The nodes of the stage with that index, in a graph of so many nodes.
NodeRange NodesOfStage(std::span<const NodeId> starts, int64_t index, size_t node_count);

// The graph of a range of nodes, and where the tensors of the whole graph are in it. It has no
// parameters: see ModelGraph::parameters for those that its nodes read.
struct StageGraph {
  TensorGraphParts parts;
  IdVector<TensorId, TensorId> tensor_of;  // By those of the whole graph; none if it is not there.
};
StageGraph CutStage(const TensorGraph& graph, const NodeRange& nodes);

}  // namespace ckplan
