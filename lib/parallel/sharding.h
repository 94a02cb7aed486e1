// What one of several devices holds of a model's constants where data parallelism divides them.
// docs/parallelism.md has the formulas with their sources and what they leave out.
//
//                            zero1           zero2           zero3           fsdp
//   parameters               whole           whole           divided         divided
//   their gradients          whole           divided         divided         divided
//   state of the optimizer   divided         divided         divided         divided
//   divided by               all as one      all as one      each by         each by its
//                            flat list       flat list       elements        first dimension
//
// Buffers and inputs stay whole. Divisions round up as those systems do, so the figures are those
// of the device that holds most.
//
// What is divided is whole while an operation works with it. Of that the operation counts that has
// most of it, `unsharded`: of zero2 the gradients that it makes, of zero3 and fsdp its parameters
// as well. Units of more than one operation, and what is fetched ahead, need more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/graph/parameters.h"

namespace ckplan {

enum class ShardingSystem { kFsdp, kZero1, kZero2, kZero3 };

inline constexpr std::string_view kShardingSystems[] = {"fsdp", "zero1", "zero2", "zero3"};

struct Sharding {
  ShardingSystem system = ShardingSystem::kFsdp;
  int64_t devices = 2;

  bool operator==(const Sharding&) const = default;
};

// DeepSpeed gathers smaller parameters once, and keeps them then: its default of
// stage3_param_persistence_threshold.
inline constexpr int64_t kPersistentElements = 100'000;

inline constexpr int64_t kMinShardingDevices = 2;
inline constexpr int64_t kMaxShardingDevices = 1'000'000;

std::string TextOf(const Sharding& sharding);  // "fsdp:8"

// What a device holds.
struct ShardedConstants {
  Bytes parameters;           // Buffers included.
  Bytes parameter_gradients;  // Of those that are trained.
  Bytes optimized;            // What the optimizer keeps one value for, as gradients are stored.
  Bytes unsharded;            // Beside all these; see above.

  bool operator==(const ShardedConstants&) const = default;
};

// kInvalidInput: sizes overflow.
Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding);

}  // namespace ckplan
