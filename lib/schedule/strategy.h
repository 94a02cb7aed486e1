// What a solver returns: its decision, before it is spelled out as a Schedule.
#pragma once

#include <cstdint>
#include <variant>

#include "lib/base/units.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

// An increasing sequence of lower sets L_1 < ... < L_k = V (Kusumoto et al. 2019, section 3):
// node v belongs to L_i \ L_{i-1} with i - 1 = segment_of[v]. The forward pass keeps the boundary
// of every L_i; a segment is recomputed once when its backward begins. The last segment is kept.
struct LowerSetSequence {
  IdVector<NodeId, int32_t> segment_of;
  int32_t segment_count = 0;
};

// Any set of nodes whose results stay in memory from their forward run on; all else is recomputed
// once, when backward first asks for it.
struct KeptSet {
  IdVector<NodeId, bool> is_kept;
};

using Strategy = std::variant<LowerSetSequence, KeptSet, Schedule>;

}  // namespace ckplan
