// A joint graph laid out flat for the algorithms that search plans of joint graphs.
//
// Aliases are removed: an alias has no bytes, and its readers also read the value whose memory it
// shares. A sequence of runs that is valid here is a plan of the joint graph. Its peak there is no
// higher than here, unless memory is made anew while an alias still holds the old version, so
// lib/problem/schedule/simulate.h measures the plan in the end. No plan of the joint graph is
// better than all sequences that are valid here, since running the producer of memory that an alias
// holds gains nothing. Values given from outside are removed too: they are always there and count
// nowhere.
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

// The writes of an operation that may take over the memory of its reads, for searches and programs.

// Returns pairs of a write and the value that has the memory of a read, with equal sizes above
// zero. The memory must have no second read in it, because two versions that die at once free it
// for neither write (lib/problem/schedule/replay.h). The pairs of one write are adjacent, in the
// order in which they are tried.
std::vector<InPlaceWrite> PossibleInPlaceWrites(const JointGraph& graph, OpId id);

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
  std::vector<int64_t> bytes;     // What it occupies while it is in memory.
  std::vector<int32_t> producer;  // Operation; -1 if the value is given from outside.
  FlatLists readers;              // Operations, ascending.
  std::vector<bool> is_result;    // It stays to the end, from its last run on.
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

// Builds a sequence of runs from decisions about memory: a value that is read but not in memory is
// made again just before the read, together with its ancestors that are not in memory either.
class LazyRuns {
 public:
  explicit LazyRuns(const RunProblem& problem);  // Keeps a reference to `problem`.

  // Runs the operation, preceded by the producers of those reads that are not in memory.
  void Run(OpId op);
  // Makes the value unless it is in memory. Values given from outside always are.
  void Provide(int32_t value);
  void ProvideResults();
  // Drops every value except these.
  void KeepOnly(const std::vector<bool>& kept);
  void Drop(int32_t value) { is_there_[static_cast<size_t>(value)] = false; }
  bool IsThere(int32_t value) const { return is_there_[static_cast<size_t>(value)]; }

  const Runs& runs() const { return runs_; }
  Runs Take() && { return std::move(runs_); }

 private:
  struct Frame {
    int32_t op;
    size_t reads_done = 0;
  };
  void RunAll();

  const RunProblem& problem_;
  std::vector<bool> is_there_;
  std::vector<Frame> stack_;  // Depth-first without recursion: a chain may have 100,000 operations.
  Runs runs_;
};

// Remakes an alias after the memory that holds it was made again.
//
//   b = conv(x)    a = view(b)    …b is evicted…    b = conv(x)    y = relu(a)
//
// In RunProblem, a read of `a` is a read of `b` as well, so a search makes `b` again for it. But
// `a` is still a view of the first `b`, whose memory it holds until relu. With a second view before
// relu, the first `b` leaves memory when the search assumes that it does.

// Returns the plan `runs` with additional runs of views: operations that make only aliases and read
// no other made value than the aliased one. Aliases of other operations stay where they are. A
// result that is an alias is made again at the end. The peak by lib/problem/schedule/simulate.h is
// then at most that of flat_simulation.h.
Runs RerunAliases(const JointGraph& graph, const Runs& runs);
// Does the same for a schedule with transfers. A value that is copied back brings those aliases
// with it that were in the dropped memory; they are not made again.
Schedule RerunAliases(const JointGraph& graph, const Schedule& schedule);

}  // namespace ckplan
