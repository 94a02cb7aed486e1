#include "lib/plan/optimizer_state.h"

namespace ckplan {
namespace {

constexpr int64_t kFloat32 = 4;
constexpr int64_t kSixteenBits = 2;

// No product of these overflows: the gradients have at most kMaxTotalBytes together, and each
// element at least one byte.
int64_t SixteenBitElements(const Optimized& optimized) {
  int64_t elements = 0;
  for (const OptimizedTensors& row : optimized.tensors) {
    if (row.element_bytes == kSixteenBits) elements += row.elements * row.count;
  }
  return elements;
}

int64_t EightBitState(int64_t elements) {
  if (elements < kLeastEightBitElements) return 2 * kFloat32 * elements;
  const int64_t blocks = elements / kEightBitBlock + (elements % kEightBitBlock != 0);
  return 2 * (elements + kFloat32 * blocks);
}

int64_t EightBitState(const Optimized& optimized) {
  if (optimized.tensors.empty()) return EightBitState(optimized.bytes.count() / kFloat32);
  int64_t state = 0;
  for (const OptimizedTensors& row : optimized.tensors) {
    state += row.count * EightBitState(row.elements);
  }
  return state;
}

}  // namespace

Bytes OptimizerState(const PlanRequest& request, const Optimized& optimized) {
  const int64_t copied = request.has_master_weights ? SixteenBitElements(optimized) : 0;
  const Bytes copies(kFloat32 * copied);
  // One value for each element.
  const Bytes values = optimized.bytes + Bytes((kFloat32 - kSixteenBits) * copied);
  switch (request.optimizer) {
    case Optimizer::kSgd:
      return copies;
    case Optimizer::kMomentum:
      return copies + values;
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return copies + 2 * values;
    case Optimizer::kAdam8Bit:
      return copies + Bytes(EightBitState(optimized));
  }
  return copies;
}

bool HasSixteenBits(const Optimized& optimized) { return SixteenBitElements(optimized) > 0; }

}  // namespace ckplan
