// Hong et al. 2024: the memory of every training phase (Fig. 5 and 7), and AlexNet with its
// poolings merged into convolutions (Fig. 8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/problem/graph/layer_fold.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// The two networks of Hong et al. 2024 as in the paper: lists of numbered layers, with the
// checkpoints that Table 2 prints.

using LayerPositions = std::vector<size_t>;

// "OOM" in the paper's tables: the device's memory ran out.
inline constexpr int64_t kRanOut = 0;
inline constexpr int64_t kRtx3090Memory = 24 * 1024;  // The memory of a GeForce RTX 3090, in MiB.

// A network with the columns of Table 2. The sets exclude the input, which is always in memory.
struct HongNetwork {
  std::string model;
  std::string name;
  bool keeps_small_layers;   // AdaptiveAvgPool, Flatten and Dropout are layers.
  LayerPositions dynamic;    // Algorithm 6
  LayerPositions selection;  // Algorithm 3
  LayerPositions acg;        // Feng & Huang's solver
  LayerPositions sqrt;       // O(sqrt(n))
};

// Returns VGG-19 and AlexNet.
std::span<const HongNetwork> HongNetworks();

// A network as in the paper: the nodes, the layers, and the list d_0, ..., d_N.
struct HongLayers {
  TensorGraph graph;
  LayerFold fold;
  LayerList list;
  Bytes keep_all;  // The simulated peak, including the input.
};

// Loads the network with costs by `cost` (lib/problem/cost/cost_model.h).
Result<HongLayers> LoadHongLayers(const std::string& models, const HongNetwork& network,
                                  int64_t batch, std::string_view cost = "paper");

// Adds the input to the checkpoints, as in the solvers' sets.
LayerPositions WithInput(LayerPositions positions);

// Returns a training step that keeps only the checkpoints. As in PyTorch, the last segment is
// recomputed, too. `checkpoints` begins with the input.
Schedule CheckpointedStep(const HongLayers& layers, const LayerPositions& checkpoints);

// Compares the set that an algorithm finds with the paper's set. A different set of equal value by
// the objective is a "tie". Both begin with the input, which is not shown.
using CheckpointObjective = Bytes (*)(const LayerList& list, const LayerPositions& checkpoints);
Figure HongSetFigure(const std::string& name, const std::string& how, const LayerList& list,
                     const LayerPositions& ours, const LayerPositions& paper,
                     CheckpointObjective objective);

// Returns the memory that a training step holds besides activations: parameters, gradients,
// momentum.
Bytes HongConstants(const TensorGraph& graph);

Result<FigureTable> HongPredictionTable(const std::string& models);  // Fig. 5
Result<FigureTable> HongComparisonTable(const std::string& models);  // Fig. 7
Result<FigureTable> HongPlainTable(const std::string& models);       // Fig. 8

// Returns the list with each layer at one of the ascending `positions` merged into the layer after
// it.
LayerList WithinNextLayer(const LayerList& list, const LayerPositions& positions);

}  // namespace ckplan
