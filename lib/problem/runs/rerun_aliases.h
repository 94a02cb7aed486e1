// Remakes an alias after the memory that holds it was made again.
//
//   b = conv(x)    a = view(b)    …b is evicted…    b = conv(x)    y = relu(a)
//
// In RunProblem, a read of `a` is a read of `b` as well, so a search makes `b` again for it. But
// `a` is still a view of the first `b`, whose memory it holds until relu. With a second view before
// relu, the first `b` leaves memory when the search assumes that it does.
#pragma once

#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns the plan `runs` with additional runs of views: operations that make only aliases and read
// no other made value than the aliased one. Aliases of other operations stay where they are. A
// result that is an alias is made again at the end. The peak by lib/problem/schedule/simulate.h is
// then at most that of flat_simulation.h.
Runs RerunAliases(const JointGraph& graph, const Runs& runs);
// Does the same for a schedule with transfers. A value that is copied back brings those aliases
// with it that were in the dropped memory; they are not made again.
Schedule RerunAliases(const JointGraph& graph, const Schedule& schedule);

}  // namespace ckplan
