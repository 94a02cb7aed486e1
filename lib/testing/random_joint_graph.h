// Random joint graphs and random runs of them, for tests and fuzzers. The same seed gives the same
// graph on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// Sizes, and how often each feature occurs, in percent.
struct RandomJointOptions {
  int ops = 10;  // At least 1.
  int constants = 2;
  int max_reads = 3;
  int64_t max_bytes = 20;
  int64_t max_cost = 10;
  int second_write = 25;
  int no_write = 3;         // An operation writes nothing.
  int duplicate_read = 10;  // An operation reads the same value twice.
  int alias = 20;           // A write shares the memory of a read.
  int in_place = 35;
  int equal_bytes = 60;  // A write is as large as a read, as in-place writes require.
  int workspace = 30;
  int never_repeat = 15;
  int parameter_gradient = 15;
  int given_result = 5;   // A constant or parameter is a result.
  int early_result = 10;  // A value that operations read is also a result.
  int dead_end = 15;      // A value that no operation reads isn't a result.
};

// Returns a random graph with all features that JointGraph::Create accepts. It has at least one
// result unless all values are dead ends.
JointGraph RandomJointGraph(Rng& rng, const RandomJointOptions& options = {});

// Returns random runs that are a valid plan of the graph. The order is random, some operations run
// several times, and some unneeded operations do not run.
std::vector<OpId> RandomRuns(Rng& rng, const JointGraph& graph);

}  // namespace ckplan
