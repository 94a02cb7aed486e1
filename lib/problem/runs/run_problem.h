// A joint graph in flat arrays, for algorithms that search for plans.
//
// It has no aliases: an alias has no bytes, and its readers also read the value whose memory it
// shares. A valid sequence of runs here is a plan of the joint graph, and its peak is not higher
// there unless a value is recomputed while an alias still holds the old version; so
// lib/problem/schedule/simulate.h measures the final plan. An optimal sequence here is also optimal
// for the joint graph, since recomputing memory that an alias holds gains nothing. It has no inputs
// either: they are always in memory and do not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/lists.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns pairs of a write and the storage of a read whose memory the write may reuse, with equal
// sizes above zero. Skips a storage in which the operation reads two values, since two versions
// that die at once free it for neither write (lib/problem/schedule/replay.h). The pairs of a write
// are adjacent, in order of preference.
std::vector<InPlaceWrite> PossibleInPlaceWrites(const JointGraph& graph, OpId id);

// A plan: operations in the order in which they run.
using Runs = std::vector<OpId>;

// Converts the number of an operation or value to an index of the vectors below.
constexpr size_t At(int32_t number) { return static_cast<size_t>(number); }

// The micro-batches of a pipeline's stage in flight besides the one that runs
// (lib/problem/parallel/division.h). Throughout the step, each holds the bytes that a plan saves:
// those in memory after the run of `loss`, without its writes.
struct OtherMicroBatches {
  int64_t count = 0;
  int32_t loss = -1;  // An operation that must not repeat; unused if `count` is 0.
};

// Operations and values have the numbers of the joint graph: OpId(i) is i.
struct RunProblem {
  explicit RunProblem(const JointGraph& graph, const OtherMicroBatches& others = {});

  int32_t op_count = 0;
  int32_t value_count = 0;

  // Indexed by operation.
  FlatLists reads;   // The values that it reads, except inputs; ascending and unique.
  FlatLists writes;  // The values that it writes.
  std::vector<int64_t> cost;
  std::vector<int64_t> workspace;      // Bytes.
  std::vector<int64_t> written_bytes;  // The total of all writes.
  std::vector<bool> may_repeat;
  std::vector<bool> is_needed;  // Must run, as it writes a result or a parameter gradient.

  // Indexed by value.
  std::vector<int64_t> bytes;     // The bytes it occupies in memory.
  std::vector<int32_t> producer;  // An operation, or -1 for an input.
  FlatLists readers;              // Operations, ascending.
  std::vector<bool> is_result;    // Stays to the end after its producer's last run.
  // The bytes by which a run of an operation may need less than reads + writes + workspace, since
  // its writes may reuse the memory of reads that die. Bounds must subtract them.
  std::vector<int64_t> in_place_bytes;
  // The in-place pairs of each operation, flat: write, read, write, read, ... A value is in at most
  // one pair of an operation, and both values of a pair have the same size, above zero.
  FlatLists in_place;
  FlatLists taken_over;    // Indexed by operation: the reads of its pairs, ascending.
  int64_t total_cost = 0;  // The cost of running each operation once.
  OtherMicroBatches others;
};

// Returns the bytes that the other micro-batches hold under this plan: part of its peak.
int64_t BytesOfOthers(const RunProblem& problem, std::span<const OpId> runs);

// Builds a sequence of runs from decisions about memory: a missing value is recomputed just before
// it is read, together with its missing ancestors.
class LazyRuns {
 public:
  explicit LazyRuns(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Runs the operation, after the producers of its missing reads.
  void Run(OpId op);
  // Computes the value unless it is in memory. Inputs are always in memory.
  void Provide(int32_t value);
  void ProvideResults();
  // Drops all other values.
  void KeepOnly(const std::vector<bool>& kept);
  void Drop(int32_t value) { is_available_[static_cast<size_t>(value)] = false; }
  bool IsThere(int32_t value) const { return is_available_[static_cast<size_t>(value)]; }

  const Runs& runs() const { return runs_; }
  Runs Take() && { return std::move(runs_); }

 private:
  struct Frame {
    int32_t op;
    size_t reads_done = 0;
  };
  void RunAll();

  const RunProblem& problem_;
  std::vector<bool> is_available_;
  std::vector<Frame> stack_;  // Depth-first without recursion: a chain may have 100,000 operations.
  Runs runs_;
};

// Recomputes aliases after the memory that holds them was recomputed.
//
//   b = conv(x)    a = view(b)    …b is evicted…    b = conv(x)    y = relu(a)
//
// In RunProblem, a read of `a` is also a read of `b`, so a search recomputes `b` for it. But `a` is
// still a view of the first `b` and holds its memory until relu. With another run of view before
// relu, the first `b` leaves memory when the search assumes that it does.
//
// Returns the plan `runs` with additional runs of views: operations that write only aliases and
// read only the aliased value and inputs. Does not change aliases of other operations. Recomputes a
// result that is an alias at the end. The peak by lib/problem/schedule/simulate.h is then at most
// that of flat_simulation.h.
Runs RerunAliases(const JointGraph& graph, const Runs& runs);
// Likewise for a schedule with transfers. A value that is copied back also brings back the aliases
// that were in the dropped memory, so these are not recomputed.
Schedule RerunAliases(const JointGraph& graph, const Schedule& schedule);

}  // namespace ckplan
