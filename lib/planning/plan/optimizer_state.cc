#include "lib/planning/plan/optimizer_state.h"

namespace ckplan {
namespace {

constexpr int64_t kFloat32 = 4;
constexpr int64_t kSixteenBits = 2;

// These products can't overflow: all gradients together have at most kMaxTotalBytes, and each
// element has at least one byte.
int64_t SixteenBitElements(const Optimized& optimized) {
  int64_t elements = 0;
  for (const OptimizedTensors& row : optimized.tensors) {
    if (row.element_bytes == kSixteenBits) elements += row.elements * row.count;
  }
  return elements;
}

int64_t EightBitState(int64_t elements) {
  if (elements < kMinEightBitElements) return 2 * kFloat32 * elements;
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

bool HasCopy(const PlanRequest& request, const OptimizedTensors& row) {
  return request.has_master_weights && row.element_bytes == kSixteenBits;
}

// One value per element, in the optimizer's computation type.
Bytes ValuesOf(const PlanRequest& request, const OptimizedTensors& row) {
  return Bytes(row.elements * (HasCopy(request, row) ? kFloat32 : row.element_bytes));
}

bool IsAdam(const PlanRequest& request) {
  return request.optimizer == Optimizer::kAdam || request.optimizer == Optimizer::kAdamW;
}

// Adds one buffer per tensor of a row. Rows with very many tensors count as one large tensor.
class BufferRun {
 public:
  explicit BufferRun(const OptimizedTensors& row) : count_(row.count) {}

  void Add(Bytes each, std::vector<Bytes>* buffers) const {
    constexpr int64_t kMost = 100'000;
    if (count_ > kMost) return buffers->push_back(count_ * each);
    buffers->insert(buffers->end(), static_cast<size_t>(count_), each);
  }

 private:
  int64_t count_;
};

}  // namespace

Bytes OptimizerState(const PlanRequest& request, const Optimized& optimized) {
  const int64_t copied = request.has_master_weights ? SixteenBitElements(optimized) : 0;
  const Bytes copies(kFloat32 * copied);
  // One value per element.
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

std::vector<Bytes> OptimizerStateBuffers(const PlanRequest& request, const Optimized& optimized) {
  std::vector<Bytes> buffers;
  if (optimized.tensors.empty()) {
    const Bytes state = OptimizerState(request, optimized);
    if (state > Bytes(0)) buffers.push_back(state);
    return buffers;
  }
  for (const OptimizedTensors& row : optimized.tensors) {
    const BufferRun run(row);
    if (HasCopy(request, row)) run.Add(ValuesOf(request, row), &buffers);
    if (request.optimizer == Optimizer::kMomentum) run.Add(ValuesOf(request, row), &buffers);
    for (int i = 0; i < 2; ++i) {
      if (request.optimizer == Optimizer::kAdam8Bit) {
        run.Add(Bytes(EightBitState(row.elements) / 2), &buffers);
      } else if (IsAdam(request)) {
        run.Add(ValuesOf(request, row), &buffers);
      }
    }
  }
  return buffers;
}

std::vector<Bytes> OptimizerStepBuffers(const PlanRequest& request, const Optimized& optimized) {
  std::vector<Bytes> buffers;
  if (request.optimizer == Optimizer::kAdam8Bit) return buffers;
  for (const OptimizedTensors& row : optimized.tensors) {
    if (HasCopy(request, row)) BufferRun(row).Add(ValuesOf(request, row), &buffers);
  }
  if (!IsAdam(request)) return buffers;
  if (optimized.tensors.empty() && optimized.bytes > Bytes(0)) buffers.push_back(optimized.bytes);
  for (const OptimizedTensors& row : optimized.tensors) {
    BufferRun(row).Add(ValuesOf(request, row), &buffers);
  }
  return buffers;
}

std::vector<Bytes> GradientBuffers(const Optimized& optimized) {
  std::vector<Bytes> buffers;
  if (optimized.tensors.empty() && optimized.bytes > Bytes(0)) buffers.push_back(optimized.bytes);
  for (const OptimizedTensors& row : optimized.tensors) {
    BufferRun(row).Add(Bytes(row.elements * row.element_bytes), &buffers);
  }
  return buffers;
}

bool HasSixteenBits(const Optimized& optimized) { return SixteenBitElements(optimized) > 0; }

}  // namespace ckplan
