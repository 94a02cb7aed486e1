// A joint graph laid out flat for the algorithms that search plans of joint graphs.
//
// Aliases are removed: an alias has no bytes, and its readers also read the value whose memory it
// shares. A sequence of runs that is valid here is a plan of the joint graph. Its peak there is no
// higher than here, unless memory is made anew while an alias still holds the old version, so
// lib/problem/schedule/simulate.h measures the plan in the end. No plan of the joint graph is
// better than all sequences that are valid here, since running the maker of memory that an alias
// holds gains nothing. Values given from outside are removed too: they are always there and count
// nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/flat_lists.h"
#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

// A plan: operations in the order in which they run.
using Runs = std::vector<OpId>;

// The index of this operation or value in the vectors below.
constexpr size_t At(int32_t number) { return static_cast<size_t>(number); }

// Operations and values are numbered as in the joint graph: OpId(i) is i here.
struct RunProblem {
  explicit RunProblem(const JointGraph& graph);

  int32_t op_count = 0;
  int32_t value_count = 0;

  // Indexed by operation.
  FlatLists reads;   // Values that it reads and that operations make, each once, ascending.
  FlatLists writes;  // All values that it makes.
  std::vector<int64_t> cost;
  std::vector<int64_t> workspace;      // Bytes.
  std::vector<int64_t> written_bytes;  // The bytes of all writes together.
  std::vector<bool> may_repeat;
  std::vector<bool> is_needed;  // It must run, because it makes a result or a parameter gradient.

  // Indexed by value.
  std::vector<int64_t> bytes;   // What it occupies while it is in memory.
  std::vector<int32_t> maker;   // Operation; -1 if the value is given from outside.
  FlatLists readers;            // Operations, ascending.
  std::vector<bool> is_result;  // It stays to the end, from its last run on.
  // Bytes by which a run of the operation may need less than reads + writes + workspace, since its
  // writes may take over the memory of reads that die there. Bounds must allow for it.
  std::vector<int64_t> in_place_bytes;
  // The pairs themselves, flat, as (write, read): operation o has in_place[o], two numbers for each
  // pair. Each write and each read is in at most one pair, and the sizes of a pair are equal and
  // above zero.
  FlatLists in_place;
  FlatLists taken_over;  // Indexed by operation: the reads of its pairs, ascending.

  int64_t total_cost = 0;  // The cost of all operations, each run once.
};

}  // namespace ckplan
