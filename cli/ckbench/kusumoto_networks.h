// The seven networks of Kusumoto et al. 2019, as close to the authors' graphs as possible, and
// their strategies. Tables 1 and 2 and Fig. 3 are computed from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/ckbench/chainer_graph.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// One number for each of kKusumotoColumns.
using KusumotoRow = std::array<int64_t, 5>;
inline constexpr int64_t kRanOutOfMemory = 0;

struct KusumotoNetwork {
  const char* model;
  const char* name;
  const char* graph;              // The authors' file: "cg_vgg19.txt".
  int64_t graph_batch = 0;        // The batch of that file.
  int64_t batch = 0;              // Table 1's column.
  int64_t vertices = 0;           // Table 1's #V.
  bool has_fixed_batch = false;   // The model is for one sample.
  bool has_idle_pooling = false;  // The model has a pooling that keeps the size.
  int64_t vanilla = 0;            // 0.1 GB
  KusumotoRow with_liveness;      // Table 1, 0.1 GB
  KusumotoRow with_percent;       // The reductions printed in Table 1, in percent.
  KusumotoRow without_liveness;   // Table 2, 0.1 GB, or kRanOutOfMemory.
  KusumotoRow without_percent;    // The reductions printed in Table 2, in percent.
  const char* vertices_why;       // The vertices that only one of the graphs has.
  const char* why;                // Why the peaks differ.
};

std::span<const KusumotoNetwork> KusumotoNetworks();

struct KusumotoColumn {
  const char* name;
  const char* algorithm;
  Objective objective;
};

inline constexpr std::array<KusumotoColumn, 5> kKusumotoColumns = {
    KusumotoColumn{"ApproxDP + MC", "approx-dp", Objective::kMemory},
    KusumotoColumn{"ApproxDP + TC", "approx-dp", Objective::kTime},
    KusumotoColumn{"ExactDP + MC", "exact-dp", Objective::kMemory},
    KusumotoColumn{"ExactDP + TC", "exact-dp", Objective::kTime},
    KusumotoColumn{"Chen's", "chen-sqrt", Objective::kTime},
};

// The column of Chen's algorithm. The others are dynamic programs.
inline constexpr size_t kChenColumn = 4;

// What Chainer's own functions hold from forward to backward, where the authors' files differ from
// its source. Local response normalisation keeps its scale and makes a buffer of the same size in
// backward, and dropout keeps its mask: neither is a vertex. Node ids stay.
TensorGraph WithChainerBuffers(const TensorGraph& graph);
// Sums and concatenations keep no inputs, though the files have their backward read them.
TensorGraph WithChainerReads(const TensorGraph& graph);

// The number of segments with which the authors ran Chen's algorithm: floor(sqrt(c)) for c lower
// sets with a boundary of one vertex, the empty one and V included. They cut at the first of these
// past each multiple of M(V) / k, as chen-sqrt does. The graph has one sink.
int64_t ChenSegmentsOf(const TensorGraph& graph);

// Reads the authors' graph of the network from the folder, at the batch of the file.
Result<ChainerNetwork> ReadAuthorsNetwork(const std::string& folder,
                                          const KusumotoNetwork& network);

// Loads the network at a batch size, with costs by `cost` (lib/problem/cost/cost_model.h). A model
// for one sample is scaled: its sizes become right, but its costs stay those of one sample.
Result<TensorGraph> KusumotoGraph(const std::string& models, const KusumotoNetwork& network,
                                  int64_t batch, std::string_view cost = "paper");

// The paper says that B is the smallest feasible one, found by binary search. Its figures come out
// where the search is in steps of 100 MB at the batch of the authors' files, and both dynamic
// programs get the approximate one's B.
inline constexpr int64_t kBudgetStepMb = 100;

// Returns that budget for the network at the batch of Table 1, whose backward steps are by input.
Result<Bytes> KusumotoBudget(const TensorGraph& graph, const KusumotoNetwork& network,
                             int64_t step_mb = kBudgetStepMb);

// Returns the strategy that the column's algorithm chooses on the graph within `budget`, by default
// the smallest feasible one. Chen's has no budget. kInfeasible: no strategy fits.
Result<Strategy> KusumotoStrategy(const TensorGraph& graph, const KusumotoColumn& column,
                                  std::optional<Bytes> budget = std::nullopt);

// Returns the schedule of ordinary training in Chainer. Tensors that no backward reads are freed
// after their last reader, and all others stay until the end of the step, because the loss holds
// the whole graph.
Schedule VanillaSchedule(const TensorGraph& graph);

// Returns the canonical strategy as section 3 describes it, with segments recomputed at once, and
// with liveness analysis on top (section 3, "popular heuristics").
// The graph's backward steps must be by input, as in the authors' program.
Schedule CanonicalWithLiveness(const TensorGraph& graph, const Strategy& strategy);

// Kusumoto et al. 2019, section 5.2: the largest batch that fits with each strategy, and the times
// of Fig. 3 under the cost model.

// "GPU DRAM of size 11.4 GB": the memory of a Tesla K40c, in 0.1 GB.
inline constexpr int64_t kKusumotoDeviceMemory = 114;

// The memory that a network's strategies need at the batch of Table 1, including parameters, their
// gradients and the input.
struct KusumotoPeaks {
  const KusumotoNetwork* network = nullptr;
  ConstantMemory constants;
  Bytes vanilla;
  std::array<Bytes, kKusumotoColumns.size()> columns;  // With liveness analysis.
};

// Returns the largest batch whose peak is at most `memory`, given the peak at `batch`. Parameters
// and their gradients do not depend on the batch; all other memory is proportional to it.
int64_t LargestBatch(Bytes peak, const ConstantMemory& constants, int64_t batch, Bytes memory);

FigureTable KusumotoBatchTable(std::span<const KusumotoPeaks> peaks);
Result<FigureTable> KusumotoTimeTable(const std::string& models,
                                      std::span<const KusumotoPeaks> peaks);

}  // namespace ckplan
