// Divides a training step among devices: its constants by data parallelism, its operations by the
// stages of a pipeline.
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

// Stage `index` (from 0) of a pipeline with `stages` stages.
struct PipelineStage {
  int64_t stages = 1;
  int64_t index = 0;

  bool operator==(const PipelineStage&) const = default;
};

inline constexpr int64_t kMaxStages = 1'000'000;
inline constexpr int64_t kMaxMicroBatches = 1'000'000;

std::string TextOf(const PipelineStage& stage);  // For example "4/1".

// ---- Data parallelism: the part of a model's constants that each device holds ----
//
// docs/parallelism.md has the formulas with their sources and limits.
//
//                            zero1           zero2           zero3           fsdp
//   parameters               whole           whole           divided         divided
//   their gradients          whole           divided         divided         divided
//   optimizer state          divided         divided         divided         divided
//   divided                  as one          as one          each by         each by its
//                            flat list       flat list       elements        first dimension
//
// Buffers and inputs stay whole. Divisions round up as in these systems, so the figures are for the
// device that holds the most.
//
// An operation gathers the divided memory that it uses: its gradients (zero2), and its parameters,
// too (zero3, fsdp). `unsharded` is the maximum over all operations. Wrapping several operations in
// a unit, and prefetching, need more.

// DeepSpeed gathers smaller parameters once and keeps them. This is the default of
// stage3_param_persistence_threshold.
inline constexpr int64_t kPersistentElements = 100'000;

// The memory of one device.
struct ShardedConstants {
  Bytes parameters;           // Includes buffers.
  Bytes parameter_gradients;  // Only of trained parameters.
  Bytes optimized;            // The gradients for which the device holds optimizer state.
  Bytes unsharded;            // Gathered memory, in addition to the above.
  // The tensors of `optimized` as the optimizer sees them: a list per type (zero1, zero2, zero3),
  // or a part of each parameter (fsdp).
  std::vector<OptimizedTensors> optimized_tensors;

  bool operator==(const ShardedConstants&) const = default;
};

// kInvalidInput: a size overflows.
Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding);

// ---- Pipeline parallelism: stages on different devices, which micro-batches pass through ----
//
// docs/parallelism.md has the formulas with their sources.
//
//   1F1B with 3 stages and 6 micro-batches: forward F and backward B of each micro-batch
//
//     F0 F1 F2          B0 F3 B1 F4 B2 F5 B3    B4    B5        at most 3 of them wait for backward
//        F0 F1       B0 F2 B1 F3 B2 F4 B3 F5 B4    B5           stage 1: at most 2
//           F0    B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5              stage 2: at most 1
//
// A stage is a range of nodes in the graph's order, with its own graph: tensors from earlier stages
// are its inputs, and tensors for later stages are its outputs, whose gradients it receives. All
// micro-batches follow the same plan. Memory that a micro-batch keeps from forward to backward
// counts once per micro-batch in flight.
//
// Returns the maximum number of micro-batches in the stage that still need their backward,
// including the running one.
int64_t MicroBatchesInFlight(const PipelineStage& stage, int64_t micro_batches,
                             PipelineSchedule schedule);

struct NodeRange {
  NodeId begin;
  NodeId end;

  bool Has(NodeId id) const { return id >= begin && id < end; }
  bool operator==(const NodeRange&) const = default;
};

// Returns the first node of each stage. `cuts` names the first node, or a module, of each stage
// except stage 0. Without cuts, minimises the forward plus backward cost of the most expensive
// stage, with as many nodes as possible in earlier stages. kUsage: the graph has fewer nodes than
// stages, a cut is unknown, or the cuts are too few, too many or not in the graph's order.
Result<std::vector<NodeId>> StartsOfStages(const TensorGraph& graph, const ModuleCalls& modules,
                                           int64_t stages, std::span<const std::string> cuts);

// `node_count` is the number of nodes in the whole graph.
NodeRange NodesOfStage(std::span<const NodeId> starts, int64_t index, size_t node_count);

// The graph of a range of nodes, without parameters; ModelGraph::parameters has those.
struct StageGraph {
  TensorGraphParts parts;
  IdVector<TensorId, TensorId>
      tensor_of;  // Maps the whole graph's tensors to the stage's, or none.
};
StageGraph CutStage(const TensorGraph& graph, const NodeRange& nodes);

}  // namespace ckplan
