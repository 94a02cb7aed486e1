// The seven networks of Kusumoto et al. 2019, as near to the authors' graphs as ours come, and
// their strategies: what Tables 1 and 2 and Fig. 3 are computed from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/plan/plan.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/strategy.h"

namespace ckplan {

// One number for each of kKusumotoColumns.
using KusumotoRow = std::array<int64_t, 5>;
inline constexpr int64_t kRanOutOfMemory = 0;

struct KusumotoNetwork {
  const char* model;
  const char* name;
  int64_t batch = 0;              // Table 1's column.
  int64_t vertices = 0;           // Table 1's #V.
  bool has_fixed_batch = false;   // The model is for one sample.
  bool has_idle_pooling = false;  // It pools to the size that is there.
  int64_t vanilla = 0;            // 0.1 GB
  KusumotoRow with_liveness;      // Table 1, 0.1 GB
  KusumotoRow with_percent;       // The reductions that Table 1 prints.
  KusumotoRow without_liveness;   // Table 2, 0.1 GB, or kRanOutOfMemory.
  KusumotoRow without_percent;    // The reductions that Table 2 prints.
  const char* vertices_why;       // Which vertices one of the graphs has and the other has not.
  const char* why;                // How the graph explains differences of peaks.
  // Also shows what the dynamic programs find under a budget so many percent above the least one;
  // 0: does not.
  int percent_above_min = 0;
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
    KusumotoColumn{"Chen's", "chen-greedy", Objective::kTime},
};

// The network at a batch size, with costs by `cost` (lib/cost/cost_model.h). A model for one sample
// is scaled: its sizes are right, its costs are those of one sample.
Result<TensorGraph> KusumotoGraph(const std::string& models, const KusumotoNetwork& network,
                                  int64_t batch, std::string_view cost = "paper");

// What the column's algorithm decides on the graph. `budget_for` turns the budget that the
// algorithm would take, for the dynamic programs the least feasible B of Eq. 2, into the one it is
// given. kInfeasible: there is no strategy within it.
Result<Strategy> KusumotoStrategy(
    const TensorGraph& graph, const KusumotoColumn& column,
    const std::function<Bytes(Bytes)>& budget_for = [](Bytes least) { return least; });

// Ordinary training in Chainer: tensors that no backward reads are freed after their last reader,
// and all others stay to the end of the step, since the loss holds the whole graph.
Schedule VanillaSchedule(const TensorGraph& graph);

// The canonical strategy as section 3 describes it, with segments recomputed at once, and liveness
// analysis on top of it (section 3, "popular heuristics").
Schedule CanonicalWithLiveness(const TensorGraph& graph, const Strategy& strategy);

}  // namespace ckplan
