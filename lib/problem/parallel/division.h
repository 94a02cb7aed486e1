// How a training step is divided among devices: its constants by a system of data parallelism, its
// operations by the stages of a pipeline. First what can be asked for, then what one of the devices
// has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/origins.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

enum class ShardingSystem { kFsdp, kZero1, kZero2, kZero3 };

inline constexpr std::string_view kShardingSystems[] = {"fsdp", "zero1", "zero2", "zero3"};

struct Sharding {
  ShardingSystem system = ShardingSystem::kFsdp;
  int64_t devices = 2;

  bool operator==(const Sharding&) const = default;
};

inline constexpr int64_t kMinShardingDevices = 2;
inline constexpr int64_t kMaxShardingDevices = 1'000'000;

std::string TextOf(const Sharding& sharding);  // For example "fsdp:8".

enum class PipelineSchedule { k1F1B, kGPipe };

inline constexpr std::string_view kPipelineScheduleWords[] = {"1f1b", "gpipe"};
inline std::string_view NameOf(PipelineSchedule schedule) {
  return kPipelineScheduleWords[static_cast<size_t>(schedule)];
}

// Stage number `index`, counted from 0, of a pipeline of `stages` stages.
struct PipelineStage {
  int64_t stages = 1;
  int64_t index = 0;

  bool operator==(const PipelineStage&) const = default;
};

inline constexpr int64_t kMaxStages = 1'000'000;
inline constexpr int64_t kMaxMicroBatches = 1'000'000;

std::string TextOf(const PipelineStage& stage);  // For example "4/1".

// The part of a model's constants that each device holds if data parallelism divides them.
// docs/parallelism.md has the formulas with their sources and their limits.
//
//                            zero1           zero2           zero3           fsdp
//   parameters               whole           whole           divided         divided
//   their gradients          whole           divided         divided         divided
//   state of the optimizer   divided         divided         divided         divided
//   divided by               all as one      all as one      each by         each by its
//                            flat list       flat list       elements        first dimension
//
// Buffers and inputs stay whole. Divisions round up as in these systems, so the figures are those
// of the device that holds most.
//
// Divided memory is whole while an operation uses it: the gradients that the operation makes
// (zero2), and its parameters as well (zero3, fsdp). `unsharded` is the most bytes that any
// operation has whole. Units of several operations and prefetching need more.

// DeepSpeed gathers smaller parameters once and then keeps them: the default of
// stage3_param_persistence_threshold.
inline constexpr int64_t kPersistentElements = 100'000;

// The memory of one device.
struct ShardedConstants {
  Bytes parameters;           // These include buffers.
  Bytes parameter_gradients;  // Gradients of trained parameters only.
  Bytes optimized;            // Bytes of the gradients whose optimizer state the device holds.
  Bytes unsharded;            // Held in addition to the above; see the top of this file.
  // The tensors of `optimized`, as the optimizer sees them: one list for each type (zero1, zero2,
  // zero3), or a part of each parameter (fsdp).
  std::vector<OptimizedTensors> optimized_tensors;

  bool operator==(const ShardedConstants&) const = default;
};

// kInvalidInput: a size overflows.
Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding);

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
