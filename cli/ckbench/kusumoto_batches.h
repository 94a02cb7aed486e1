// Kusumoto et al. 2019, section 5.2: the largest batches that each strategy has room for, and the
// times of Fig. 3 by the cost model.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "cli/ckbench/kusumoto_networks.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"

namespace ckplan {

// "GPU DRAM of size 11.4 GB": a Tesla K40c's, in 0.1 GB.
inline constexpr int64_t kKusumotoDeviceMemory = 114;

// What a network's strategies need at the batch of Table 1, parameters, their gradients and the
// input included.
struct KusumotoPeaks {
  const KusumotoNetwork* network = nullptr;
  ConstantMemory constants;
  Bytes vanilla;
  std::array<Bytes, kKusumotoColumns.size()> columns;  // With liveness analysis.
};

// The largest batch whose peak is at most `memory`. The peak at `batch` is given; parameters and
// their gradients do not depend on the batch, all else is in proportion to it.
int64_t LargestBatch(Bytes peak, const ConstantMemory& constants, int64_t batch, Bytes memory);

FigureTable KusumotoBatchTable(std::span<const KusumotoPeaks> peaks);
Result<FigureTable> KusumotoTimeTable(const std::string& models,
                                      std::span<const KusumotoPeaks> peaks);

}  // namespace ckplan
