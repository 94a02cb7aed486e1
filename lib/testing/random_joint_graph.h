// Random joint graphs, and random plans of them, for tests and fuzzers. The same seed gives the
// same graph on every platform.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// How often each feature occurs, in percent.
struct RandomJointOptions {
  int ops = 10;  // At least 1.
  int constants = 2;
  int max_reads = 3;
  int64_t max_bytes = 20;
  int64_t max_cost = 10;
  int second_write = 25;
  int no_write = 3;         // An operation that writes nothing.
  int duplicate_read = 10;  // A value that occurs twice among the reads.
  int alias = 20;           // A write that shares the memory of a read.
  int in_place = 35;
  int equal_bytes = 60;  // A write as large as a read: needed for in-place writes.
  int workspace = 30;
  int never_repeat = 15;
  int parameter_gradient = 15;
  int given_result = 5;   // A result that no operation makes.
  int early_result = 10;  // A value that operations read is also a result.
  int dead_end = 15;      // A value that no operation reads is no result.
};

// Returns any graph that JointGraph::Create admits; it has at least one result unless all values
// are dead ends.
JointGraph RandomJointGraph(Rng& rng, const RandomJointOptions& options = {});

// Returns a random sequence of runs that is a valid plan of the graph: a random order, in which
// some operations run several times and some unneeded operations do not run.
std::vector<OpId> RandomRuns(Rng& rng, const JointGraph& graph);

}  // namespace ckplan
