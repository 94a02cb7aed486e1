// The checker's (check.h) replay of a schedule's transfers: whether each is allowed, what the host
// holds, and when everything happens. An independent implementation of the rules in
// lib/problem/schedule/transfers.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/cost/link.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// A value on the host. It occupies memory from step `from` to step `to`, inclusive.
struct OnHost {
  ValueId value;
  size_t from = 0;
  size_t to = 0;
};

struct Moves {
  // For each step: the values that an `in` restores, the loaded one first, then its aliases.
  std::vector<std::vector<ValueId>> back;
  std::vector<OnHost> on_host;  // In the order of the `out` steps.
  Bytes moved;
  Cost waiting;
  Cost makespan;
};

// The schedule's runs must be valid operations of the graph. `link` is null if the plan may not
// move anything. Fails with kCheckFailed on the first fault.
Result<Moves> FollowMoves(const JointGraph& graph, const Schedule& schedule, const Link* link);

// The memory of the copies on the host, each at its offset. Fails with kCheckFailed if two copies
// overlap or the number of offsets differs.
struct HostMemory {
  Bytes highest;
  Bytes end;
};
Result<HostMemory> LayOutOnHost(const JointGraph& graph, const std::vector<OnHost>& copies,
                                const std::vector<Bytes>& offsets, int64_t alignment);

}  // namespace ckplan
