// Runs what makes an alias again after the memory that it is in was made again.
//
//   b = conv(x)    a = view(b)    …b is evicted…    b = conv(x)    y = relu(a)
//
// RunProblem has the read of `a` be a read of `b` too, so that a search makes `b` again for it. But
// `a` is still the view of the first `b`, and holds its memory up to relu. With a second view
// before relu the first `b` leaves memory where the search thinks that it does.
#pragma once

#include "lib/joint/joint_graph.h"
#include "lib/joint/run_problem.h"

namespace ckplan {

// `runs` is a plan. A result that is an alias is made again at the end. The same with further runs
// of operations that make nothing but aliases and read nothing else that is made; what other
// operations make stays where it is. The peak by lib/joint/simulate_runs.h is then that of
// flat_simulation.h at most.
Runs RerunAliases(const JointGraph& graph, const Runs& runs);

}  // namespace ckplan
