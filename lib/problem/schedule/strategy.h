// The decision of a solver, before it is lowered to a Schedule.
#pragma once

#include <cstdint>
#include <variant>

#include "lib/base/units.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// An increasing sequence of lower sets L_1 < ... < L_k = V (Kusumoto et al. 2019, section 3):
// node v belongs to L_i \ L_{i-1} with i - 1 = segment_of[v]. The forward pass keeps the boundary
// of every L_i; a segment is recomputed once when its backward begins. The last segment is kept.
struct LowerSetSequence {
  IdVector<NodeId, int32_t> segment_of;
  int32_t segment_count = 0;
};

// Any set of nodes whose results stay in memory from their forward run on. Every other result is
// recomputed once, when backward first reads it.
struct KeptSet {
  IdVector<NodeId, bool> is_kept;
};

// Blocks in forward order, cut again and again into kept_per_level + 1 ranges of sizes as equal as
// possible (Chen et al. 2016, section 4.4). What crosses the cuts of a range is kept during the
// range's backward, and every range but the last runs forward again before its own backward begins.
// No block reads from a later block. See lower_recursive.h.
struct RecursiveSplit {
  IdVector<NodeId, int32_t> block_of;
  int32_t block_count = 0;     // At least 1; no block is empty.
  int32_t kept_per_level = 1;  // k of Eq. 2, at least 1.
};

using Strategy = std::variant<LowerSetSequence, KeptSet, RecursiveSplit, Schedule>;

}  // namespace ckplan
