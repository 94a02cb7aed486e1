// Kusumoto et al. 2019, section 5.2: the largest batch that fits with each strategy, and the times
// of Fig. 3 under the cost model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "cli/ckbench/kusumoto_networks.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

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
