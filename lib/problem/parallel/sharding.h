// The part of a model's constants that each device holds if data parallelism divides them.
// docs/parallelism.md has the formulas with their sources and their limits.
//
//                            zero1           zero2           zero3           fsdp
//   parameters               whole           whole           divided         divided
//   their gradients          whole           divided         divided         divided
//   state of the optimizer   divided         divided         divided         divided
//   divided by               all as one      all as one      each by         each by its
//                            flat list       flat list       elements        first dimension
//
// Buffers and inputs stay whole. Divisions round up as in these systems, so the figures are those
// of the device that holds most.
//
// Divided memory is whole while an operation uses it: the gradients that the operation makes
// (zero2), and its parameters as well (zero3, fsdp). `unsharded` is the most bytes that any
// operation has whole. Units of several operations and prefetching need more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/parameters.h"
#include "lib/problem/parallel/division.h"

namespace ckplan {

// DeepSpeed gathers smaller parameters once and then keeps them: the default of
// stage3_param_persistence_threshold.
inline constexpr int64_t kPersistentElements = 100'000;

// The memory of one device.
struct ShardedConstants {
  Bytes parameters;           // These include buffers.
  Bytes parameter_gradients;  // Gradients of trained parameters only.
  Bytes optimized;            // Bytes of the gradients whose optimizer state the device holds.
  Bytes unsharded;            // Held in addition to the above; see the top of this file.
  // The tensors of `optimized`, as the optimizer sees them: one list for each type (zero1, zero2,
  // zero3), or a part of each parameter (fsdp).
  std::vector<OptimizedTensors> optimized_tensors;

  bool operator==(const ShardedConstants&) const = default;
};

// kInvalidInput: a size overflows.
Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding);

}  // namespace ckplan
