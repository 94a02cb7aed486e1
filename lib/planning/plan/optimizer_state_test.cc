#include "lib/planning/plan/optimizer_state.h"

#include <doctest/doctest.h>

#include <vector>

namespace ckplan {
namespace {

PlanRequest By(Optimizer optimizer, bool has_master_weights = false) {
  PlanRequest request;
  request.optimizer = optimizer;
  request.has_master_weights = has_master_weights;
  return request;
}

Optimized OfTensors(const std::vector<OptimizedTensors>& tensors) {
  Optimized optimized{Bytes(0), tensors};
  for (const OptimizedTensors& row : tensors) {
    optimized.bytes += Bytes(row.elements * row.element_bytes * row.count);
  }
  return optimized;
}

TEST_CASE("optimizer state: a value of the gradient's type for each element, or two") {
  // Three matrices of 5000 float32 and a bias of 10 bfloat16: 60,020 bytes.
  const Optimized optimized = OfTensors({{10, 2, 1}, {5000, 4, 3}});
  CHECK(OptimizerState(By(Optimizer::kSgd), optimized) == Bytes(0));
  CHECK(OptimizerState(By(Optimizer::kMomentum), optimized) == Bytes(60'020));
  CHECK(OptimizerState(By(Optimizer::kAdam), optimized) == Bytes(120'040));
  CHECK(OptimizerState(By(Optimizer::kAdamW), optimized) == Bytes(120'040));
  // If only the sum is known, it is the same.
  CHECK(OptimizerState(By(Optimizer::kAdam), {optimized.bytes, {}}) == Bytes(120'040));
}

TEST_CASE("optimizer state: adam8bit has two bytes an element and two scales for 256 of them") {
  const auto state = [](const std::vector<OptimizedTensors>& tensors) {
    return OptimizerState(By(Optimizer::kAdam8Bit), OfTensors(tensors)).count();
  };
  // 16 blocks, whatever the type of the parameters.
  CHECK(state({{4096, 4, 1}}) == 2 * 4096 + 2 * 4 * 16);
  CHECK(state({{4096, 2, 1}}) == 2 * 4096 + 2 * 4 * 16);
  // The last block of 17 has one element.
  CHECK(state({{4097, 4, 1}}) == 2 * 4097 + 2 * 4 * 17);
  // Smaller tensors stay in float32.
  CHECK(state({{4095, 4, 1}}) == 2 * 4 * 4095);
  CHECK(state({{1, 2, 1}}) == 8);
  // Each tensor is rounded by itself.
  CHECK(state({{100, 4, 2}, {5000, 4, 3}}) == 2 * 800 + 3 * (10'000 + 8 * 20));
}

TEST_CASE("optimizer state: without the tensors, adam8bit has that of one float32 tensor") {
  // 65,536 bytes are 16,384 elements in 64 blocks.
  CHECK(OptimizerState(By(Optimizer::kAdam8Bit), {Bytes(65'536), {}}) == Bytes(32'768 + 512));
  CHECK(OptimizerState(By(Optimizer::kAdam8Bit), {Bytes(400), {}}) == Bytes(800));
  CHECK(OptimizerState(By(Optimizer::kAdam8Bit), {Bytes(0), {}}) == Bytes(0));
}

TEST_CASE("optimizer state: master weights are float32 copies of what is stored in 16 bits") {
  // 1000 elements in 16 bits and 500 in 32 bits.
  const Optimized mixed = OfTensors({{1000, 2, 1}, {500, 4, 1}});
  CHECK(OptimizerState(By(Optimizer::kSgd, true), mixed) == Bytes(4 * 1000));
  CHECK(OptimizerState(By(Optimizer::kMomentum, true), mixed) == Bytes(4 * 1000 + 4 * 1500));
  // Parameters of 16 bits have 12 bytes an element, the others the two values alone.
  CHECK(OptimizerState(By(Optimizer::kAdam, true), mixed) == Bytes(12 * 1000 + 8 * 500));
  CHECK(OptimizerState(By(Optimizer::kAdamW, true), mixed) == Bytes(12 * 1000 + 8 * 500));
  CHECK(OptimizerState(By(Optimizer::kAdam8Bit, true), mixed) ==
        Bytes(4 * 1000 + 8 * 1000 + 8 * 500));
  CHECK(HasSixteenBits(mixed));
  // A model in float32 has none.
  const Optimized floats = OfTensors({{1000, 4, 2}});
  CHECK(OptimizerState(By(Optimizer::kAdam, true), floats) == Bytes(8 * 2000));
  CHECK_FALSE(HasSixteenBits(floats));
}

TEST_CASE("optimizer state: tensors of one size and type are one row") {
  CHECK(Merged({{7, 4, 1}, {7, 2, 1}, {0, 4, 1}, {7, 4, 2}, {3, 4, 1}, {9, 4, 0}}) ==
        std::vector<OptimizedTensors>{{7, 2, 1}, {3, 4, 1}, {7, 4, 3}});
}

}  // namespace
}  // namespace ckplan
