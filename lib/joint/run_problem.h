// A joint graph laid out flat for search: what algorithms read that plan joint
// graphs.
//
// Aliases are gone: a value that is an alias has no bytes, and who reads it reads the value whose
// memory it is in as well. A sequence of runs that is valid here is a plan of the joint graph. Its
// peak there is no higher than it is here, unless memory is made anew while an alias still holds
// the old version; so plans are judged by lib/joint/simulate_runs.h in the end. And no plan of the
// joint graph is better than all sequences that are valid here, since to run the maker of memory
// that an alias holds gains nothing. Values given from outside are gone too: they are always there
// and count nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/flat_lists.h"
#include "lib/joint/joint_graph.h"

namespace ckplan {

// A plan: operations in the order in which they run.
using Runs = std::vector<OpId>;

// The place of what has this number in the vectors below.
constexpr size_t At(int32_t number) { return static_cast<size_t>(number); }

// Operations and values are numbered as in the joint graph: OpId(i) is i here.
struct RunProblem {
  explicit RunProblem(const JointGraph& graph);

  int32_t op_count = 0;
  int32_t value_count = 0;

  // Of operations.
  FlatLists reads;   // Values made by operations, each once, ascending.
  FlatLists writes;  // All values that it makes.
  std::vector<int64_t> cost;
  std::vector<int64_t> workspace;      // Bytes.
  std::vector<int64_t> written_bytes;  // Of all writes together.
  std::vector<bool> may_repeat;
  std::vector<bool> is_needed;  // It must run: it makes a result or a parameter gradient.

  // Of values.
  std::vector<int64_t> bytes;   // What it occupies while it is in memory.
  std::vector<int32_t> maker;   // Operation; -1 for what is given from outside.
  FlatLists readers;            // Operations, ascending.
  std::vector<bool> is_result;  // It stays to the end, from its last run on.
  // Bytes by which a run of the operation may fall short of reads + writes + workspace, since its
  // writes may take over the memory of reads that die there. Bounds must allow for it.
  std::vector<int64_t> in_place_bytes;
  // The pairs themselves, as (write, read), flat: those of operation o are in_place[o], two numbers
  // each. At most one pair for each write and for each read, of equal sizes above zero.
  FlatLists in_place;
  FlatLists taken_over;  // By operation: the reads of its pairs, ascending.

  int64_t total_cost = 0;  // Of all operations, once each.
};

}  // namespace ckplan
