// What the checker (check.h) finds out about the transfers of a schedule: whether each of them is
// allowed, what the host holds, and when everything happens. It implements the meaning of
// lib/problem/schedule/transfers.h a second time and shares no code with it.
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

// A value on the host: its memory is in use from step `from` to step `to`, both inclusive.
struct OnHost {
  ValueId value;
  size_t from = 0;
  size_t to = 0;
};

struct Moves {
  // By step: the values that an `in` makes, the loaded one first and then its aliases.
  std::vector<std::vector<ValueId>> back;
  std::vector<OnHost> on_host;  // In the order of the `out` steps.
  Bytes moved;
  Cost waiting;
  Cost makespan;
};

// The runs of the schedule must be of the graph. `link` is null if the plan may not move anything.
// kCheckFailed: the first fault.
Result<Moves> FollowMoves(const JointGraph& graph, const Schedule& schedule, const Link* link);

// What the copies on the host need if each begins at its offset. kCheckFailed: two copies overlap,
// or there is not one offset for each.
struct HostMemory {
  Bytes highest;
  Bytes end;
};
Result<HostMemory> LayOutOnHost(const JointGraph& graph, const std::vector<OnHost>& copies,
                                const std::vector<Bytes>& offsets, int64_t alignment);

}  // namespace ckplan
