#include "lib/problem/parallel/sharding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "lib/base/rng.h"

namespace ckplan {
namespace {

using Kind = Parameter::Kind;

// Makes a parameter of floats that these nodes read.
Parameter FloatsOf(Kind kind, int64_t rows, int64_t columns, std::vector<int> readers) {
  Parameter parameter{"w", kind, Bytes(4 * rows * columns), rows * columns, rows, {}};
  for (const int reader : readers) parameter.readers.emplace_back(reader);
  return parameter;
}

ShardedConstants Shard(const std::vector<Parameter>& parameters, ShardingSystem system,
                       int64_t devices) {
  return ShardConstants(parameters, {system, devices}).value();
}

// A matrix of 10 x 3, a bias of 7, running statistics of 5: 37 trained elements, 148 bytes.
const std::vector<Parameter> kLayer = {FloatsOf(Kind::kTrained, 10, 3, {0}),
                                       FloatsOf(Kind::kTrained, 7, 1, {1}),
                                       FloatsOf(Kind::kBuffer, 5, 1, {1})};

TEST_CASE(
    "sharding: zero1 divides the optimizer's state, as one list padded to twice the devices") {
  // 37 elements are padded to 40 = 5 * 2 * 4, of which each device has 10.
  CHECK(Shard(kLayer, ShardingSystem::kZero1, 4) ==
        ShardedConstants{Bytes(148 + 20), Bytes(148), Bytes(40), Bytes(0), {{10, 4, 1}}});
}

TEST_CASE("sharding: zero2 divides gradients as well, which are whole while a node makes them") {
  CHECK(Shard(kLayer, ShardingSystem::kZero2, 4) ==
        ShardedConstants{Bytes(148 + 20), Bytes(40), Bytes(40), Bytes(120), {{10, 4, 1}}});
}

TEST_CASE(
    "sharding: zero3 divides each parameter by its elements, and keeps small parameters whole") {
  // Each device has ceil(30 / 4) = 8 and ceil(7 / 4) = 2 elements; gathered are 32 elements and 8
  // persistent ones. The gradient of the matrix is whole as well.
  CHECK(Shard(kLayer, ShardingSystem::kZero3, 4) ==
        ShardedConstants{Bytes(40 + 20), Bytes(40), Bytes(40), Bytes(160 + 120), {{10, 4, 1}}});
  // 100,001 elements exceed the limit for persistence: ceil(100001 / 4) = 25001, so 100,004 are
  // gathered.
  const std::vector<Parameter> large = {FloatsOf(Kind::kTrained, 100'001, 1, {0})};
  CHECK(Shard(large, ShardingSystem::kZero3, 4) == ShardedConstants{Bytes(100'004),
                                                                    Bytes(100'004),
                                                                    Bytes(100'004),
                                                                    Bytes(400'016 + 400'004),
                                                                    {{25'001, 4, 1}}});
}

TEST_CASE("sharding: fsdp divides each parameter by the rows of its first dimension") {
  // Each device has ceil(10 / 4) = 3 rows of 12 bytes and ceil(7 / 4) = 2 of 4. Gathered are 12
  // rows; the gradient is whole as well.
  CHECK(Shard(kLayer, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{
            Bytes(36 + 8 + 20), Bytes(44), Bytes(44), Bytes(144 + 120), {{2, 4, 1}, {9, 4, 1}}});
  // One row cannot be divided.
  const std::vector<Parameter> row = {FloatsOf(Kind::kTrained, 1, 100, {0})};
  CHECK(Shard(row, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{Bytes(400), Bytes(400), Bytes(400), Bytes(1600 + 400), {{100, 4, 1}}});
}

TEST_CASE("sharding: the node that needs the most whole memory counts") {
  // Node 2 reads both matrices; node 0 reads one of them as well.
  const std::vector<Parameter> shared = {FloatsOf(Kind::kTrained, 8, 1, {0, 2}),
                                         FloatsOf(Kind::kTrained, 16, 1, {2}),
                                         FloatsOf(Kind::kTrained, 20, 1, {1})};
  CHECK(Shard(shared, ShardingSystem::kFsdp, 4).unsharded == Bytes(2 * 4 * (8 + 16)));
  CHECK(Shard(shared, ShardingSystem::kZero2, 4).unsharded == Bytes(4 * (8 + 16)));
}

TEST_CASE("sharding: frozen parameters are divided, and have no gradients or optimizer state") {
  const std::vector<Parameter> frozen = {FloatsOf(Kind::kFrozen, 8, 2, {0})};
  CHECK(Shard(frozen, ShardingSystem::kFsdp, 4) ==
        ShardedConstants{Bytes(16), Bytes(0), Bytes(0), Bytes(64), {}});
  CHECK(Shard(frozen, ShardingSystem::kZero2, 4) ==
        ShardedConstants{Bytes(64), Bytes(0), Bytes(0), Bytes(0), {}});
}

TEST_CASE("sharding: types of other sizes have flat lists of their own") {
  std::vector<Parameter> mixed = kLayer;
  mixed.push_back({"half", Kind::kTrained, Bytes(2 * 9), 9, 9, {}});
  // 40 floats and 16 halves: each device has 10 and 4.
  const ShardedConstants zero2 = Shard(mixed, ShardingSystem::kZero2, 4);
  CHECK(zero2.optimized == Bytes(40 + 8));
  CHECK(zero2.optimized_tensors == std::vector<OptimizedTensors>{{4, 2, 1}, {10, 4, 1}});
}

TEST_CASE("sharding: padding that overflows is an error") {
  const int64_t huge = std::numeric_limits<int64_t>::max() / 8;
  const std::vector<Parameter> row = {FloatsOf(Kind::kTrained, 1, huge, {0})};
  CHECK(ShardConstants(row, {ShardingSystem::kFsdp, 8}).error().code == ErrorCode::kInvalidInput);
}

TEST_CASE("sharding: text") {
  CHECK(TextOf({ShardingSystem::kFsdp, 8}) == "fsdp:8");
  CHECK(TextOf({ShardingSystem::kZero3, 64}) == "zero3:64");
}

// The devices together hold at least the whole, and the excess is at most one unit of each
// parameter per device.
TEST_CASE("sharding: all devices together hold everything, and little more") {
  Rng rng(20);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    std::vector<Parameter> parameters;
    Bytes trained, frozen, buffers, slack;
    const int64_t devices = rng.Between(2, 20);
    for (int64_t i = rng.Between(1, 8); i > 0; --i) {
      const auto kind = static_cast<Kind>(rng.Between(0, 2));
      const int64_t columns = rng.Between(1, 9);
      const int64_t rows = rng.Between(1, 40);
      parameters.push_back(FloatsOf(kind, rows, columns, {0}));
      const Parameter& made = parameters.back();
      (kind == Kind::kTrained ? trained : kind == Kind::kFrozen ? frozen : buffers) += made.bytes;
      slack += Bytes(made.bytes.count() / made.rows);
    }
    const ShardedConstants zero1 = Shard(parameters, ShardingSystem::kZero1, devices);
    const ShardedConstants zero2 = Shard(parameters, ShardingSystem::kZero2, devices);
    CHECK(zero1.parameters == trained + frozen + buffers);
    CHECK(zero2.parameters == zero1.parameters);
    CHECK(zero1.parameter_gradients == trained);
    CHECK(zero2.optimized == zero1.optimized);
    CHECK(zero2.parameter_gradients == zero2.optimized);
    CHECK(devices * zero2.optimized >= trained);
    CHECK(devices * zero2.optimized < trained + Bytes(4 * 2 * devices));
    for (const ShardingSystem system : {ShardingSystem::kZero3, ShardingSystem::kFsdp}) {
      const ShardedConstants all = Shard(parameters, system, devices);
      const Bytes divided = all.parameters - buffers;
      CHECK(devices * divided >= trained + frozen);
      CHECK(devices * divided <= trained + frozen + devices * slack);
      CHECK(all.parameter_gradients == all.optimized);
      CHECK(devices * all.optimized >= trained);
      CHECK(all.optimized <= divided);
      // One node reads all parameters.
      CHECK(all.unsharded == devices * divided + trained);
    }
  }
}

}  // namespace
}  // namespace ckplan
