// How the rows of operators write down their kernels.
#pragma once

#include "lib/executor/cuda/traffic/element_orders.h"
#include "lib/executor/cuda/traffic/kernel_traffic.h"

namespace ckplan::cuda {

// The bytes of an operand; 0 if it is absent.
inline int64_t BytesOf(const Operand& operand) { return operand.is_present ? operand.bytes() : 0; }

// A kernel that reads and writes each byte once.
inline KernelTraffic Pass(std::string_view kernel, int64_t read, int64_t written) {
  return {kernel, read, written, read + written, 0, Engine::kVectorUnits};
}
// A kernel whose instructions access more bytes than memory has to move.
inline KernelTraffic Cached(std::string_view kernel, int64_t read, int64_t written,
                            int64_t accessed) {
  return {kernel, read, written, accessed, 0, Engine::kVectorUnits};
}
inline KernelTraffic Product(std::string_view kernel, int64_t read, int64_t written,
                             int64_t flops) {
  return {kernel, read, written, 0, flops, Engine::kMatrixUnits};
}

// The rows of one operator. The position is that of the input whose gradient is computed.
struct TrafficRow {
  std::string_view type;
  Kernels (*forward)(const OpSpec& spec);
  Kernels (*backward)(const OpSpec& spec, size_t position);
};

// Rows of products and convolutions, of normalisations and softmax, and of elementwise work.
const TrafficRow* FindDenseRow(std::string_view type);
const TrafficRow* FindNormRow(std::string_view type);
const TrafficRow* FindElementwiseRow(std::string_view type);

}  // namespace ckplan::cuda
