// The runs of a joint graph when PyTorch runtimes checkpoint regions, to be measured by the one
// simulator (lib/problem/schedule/simulate.h).
//
// A region is a set of operations that a runtime checkpoints with one call: a module, or several in
// a row. The forward pass keeps what the region reads and, of its own values, only results that are
// read outside. Before its backward pass, the region runs again, at once and in order. Values that
// are `saved` are kept, and their operations do not run again:
//
//   a → b → c → d      the region {b, c}:           a b c d   loss   d'  b c  c' b' a'
//                      the same, b saved:           a b c d   loss   d'  c    c' b' a'
//
// Which operations run again and how long values live differs (Rerun):
//   kUpToLastSaved  torch.utils.checkpoint with use_reentrant=False, with or without contexts that
//                   save some operations. The region runs again when its backward pass first reads
//                   a value of the forward pass or a parameter, and stops after the last operation
//                   that computes a value that it reads. The region's inputs live until its
//                   backward pass has read such a value for the last time.
//   kWhole          torch.utils.checkpoint with use_reentrant=True, and the checkpoints of Megatron
//                   and DeepSpeed that derive from it. The whole region runs again when its
//                   backward pass begins; its inputs, its results and their gradients live until
//                   its backward pass has ended.
//   kDiscarded      Megatron's checkpoints without output. Like kWhole, but the results don't live
//                   until the backward pass either: the region runs again before the first backward
//                   operation of the module that reads them.
//
// Eager mode runs an operation's backward as a whole, and until its end holds the gradient that it
// started with and what it has saved. In PyTorch graphs, such a backward appears as consecutive
// operations that read one gradient.
//
// Extra operations without bytes or cost express these lifetimes by their reads: one ends the
// backward pass of each region, one ends each backward of several operations, and one per forward
// operation reads its saved values where it would run again. So the runs belong to a separate
// graph, graph(), whose first operations are the given ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

enum class Rerun : uint8_t { kUpToLastSaved, kWhole, kDiscarded };

struct OpRegion {
  // In the order of the graph. At least one operation is forward.
  std::vector<OpId> forward;
  std::vector<OpId> backward;
  Rerun rerun = Rerun::kUpToLastSaved;
  // For kDiscarded: the backward operations of the module that reads the results.
  std::vector<OpId> readers_backward = {};
};

// A checkpointed region. `is_saved` is indexed by forward operation; empty means none.
struct CheckpointedRegion {
  int32_t region = -1;
  std::vector<bool> is_saved = {};
};

// True if the operation is between the two passes: it reads the results of the forward pass and
// creates the first gradients of the backward pass.
bool IsBetweenPasses(const Operation& op);

class RegionRuns {
 public:
  RegionRuns(const JointGraph& graph, std::vector<OpRegion> regions);

  const JointGraph& graph() const { return graph_; }
  const OpRegion& region(int32_t index) const { return regions_[static_cast<size_t>(index)]; }

  // Returns how many forward operations of the region, from the first, run again unless saved.
  size_t RunAgainCount(int32_t region) const;
  // True if the region's backward pass, or an operation that runs again, reads the results of the
  // forward operation at this position.
  bool IsReadAgain(int32_t region, size_t position) const;

  // Returns the runs in which these disjoint regions are checkpointed. Operations that must not run
  // twice must be saved. O(operations).
  std::vector<OpId> RunsOf(const std::vector<CheckpointedRegion>& checkpointed) const;

 private:
  struct Moments {
    OpId begin;  // The region runs again before this; none if it need not.
    OpId end;    // After this, the region holds nothing.
    size_t run_again = 0;
    OpId hold;  // The operation that reads what lives until the end.
    std::vector<ValueId> held;
    std::vector<bool> is_read_again;  // By position.
  };
  class Reader;

  void AddOperations();
  // For each operation that ends a backward of several operations, returns what that backward
  // reads.
  std::vector<std::pair<OpId, std::vector<ValueId>>> BackwardsOfSeveral() const;

  std::vector<OpRegion> regions_;
  std::vector<Moments> moments_;
  JointGraph graph_;
  std::vector<OpId> own_order_;  // Without the added operations.
  IdVector<OpId, OpId> taking_;  // By operation: the one that reads its saved values.
  IdVector<OpId, OpId> ending_;  // By operation: the one that ends its backward, or none.
};

}  // namespace ckplan
