// The gradient graph with mirrored nodes: Alg. 2 and Fig. 3 of Chen et al. 2016.
//
// Alg. 2 makes mirror counts into a graph G' that has one node per run: the forward nodes, a copy
// (a mirror) for each recomputation, and the backward nodes, each reading the newest copies. It
// also outputs the order in which they run. Here any schedule gives such a graph, as a joint graph
// whose own order is that of the schedule. A chain a → b → c → d with m(a) = 2, m(b) = 1:
//
//   forward  a ──▶ b ──▶ c ──▶ d ──▶ loss          backward of c reads b', of b reads a''
//   mirrors  a' ─▶ b'    a''
//
// Guarantee: each operation of G' runs once, in its own order, with the memory of the schedule at
// every step and the same cost. For a schedule that frees explicitly, this is its memory with
// liveness analysis. For an order that is not mirrored, expand.h says where it can be less.
#pragma once

#include <cstdint>

#include "lib/base/result.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct GradientGraph {
  JointGraph graph;
  IdVector<OpId, int32_t> mirror_of;  // k for the k-th recomputation of an operation; 0 otherwise.
};

// The schedule must have passed Simulator::Run. kUnsupported: it moves values to the host, or the
// graph's backward steps are by input. kInvalidInput: the sizes or costs of all copies exceed the
// limits of a joint graph. O(reads of all steps).
Result<GradientGraph> BuildGradientGraph(const TrainingStep& step, const Schedule& schedule);

}  // namespace ckplan
