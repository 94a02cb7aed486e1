// The runs of a joint graph under activation checkpointing of regions, as runtimes of PyTorch do
// it, to measure it with the one simulator (lib/problem/schedule/simulate.h).
//
// A region is a set of operations that a runtime checkpoints by one call: a module, or several in a
// row. The forward pass keeps what the region reads, and none of its own values except results that
// are read outside. Before its backward pass the region runs again, at once and in order. Values
// that are `saved` are kept, and their operations do not run again:
//
//   a → b → c → d      the region {b, c}:           a b c d   loss   d'  b c  c' b' a'
//                      the same, b saved:           a b c d   loss   d'  c    c' b' a'
//
// What runs again, and what lives how long, differs (Rerun):
//   kUpToLastSaved  torch.utils.checkpoint with use_reentrant=False, with or without contexts that
//                   save some operations. The region runs again when its backward pass first reads
//                   a value of the forward pass or a parameter, and stops after the last operation
//                   that makes a value that it reads. What the region reads lives until its
//                   backward pass has read such a value for the last time.
//   kWhole          torch.utils.checkpoint with use_reentrant=True, and the checkpoints of Megatron
//                   and DeepSpeed that were made from it. The whole region runs again when its
//                   backward pass begins; what it reads, its results and their gradients live until
//                   its backward pass has ended.
//   kDiscarded      Megatron's checkpoints without output. As kWhole, but not even the results live
//                   until the backward pass: the region runs again before the first backward
//                   operation of the module that reads them.
//
// Eager mode runs the backward of an operation as a whole, and until its end holds the gradient
// that it began with and what it has saved. In graphs of PyTorch such a backward is seen as
// consecutive operations that read one gradient.
//
// These lifetimes are reads of further operations without bytes or cost: one that ends the backward
// pass of each region, one that ends each backward of several operations, and one for each forward
// operation, which takes its saved values where it would run again. So runs are those of a graph of
// its own, graph(), whose first operations are the given ones.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {

enum class Rerun : uint8_t { kUpToLastSaved, kWhole, kDiscarded };

struct OpRegion {
  // In the order of the graph; at least one operation is forward.
  std::vector<OpId> forward;
  std::vector<OpId> backward;
  Rerun rerun = Rerun::kUpToLastSaved;
  // For kDiscarded: the backward operations of the module that reads the results.
  std::vector<OpId> readers_backward = {};
};

// A region that is checkpointed. `is_saved` is by forward operation; empty stands for none.
struct CheckpointedRegion {
  int32_t region = -1;
  std::vector<bool> is_saved = {};
};

// Whether the operation is between the two passes: it reads what the forward pass returns, and
// makes the gradients that the backward pass begins with.
bool IsBetweenPasses(const Operation& op);

class RegionRuns {
 public:
  RegionRuns(const JointGraph& graph, std::vector<OpRegion> regions);

  const JointGraph& graph() const { return graph_; }
  const OpRegion& region(int32_t index) const { return regions_[static_cast<size_t>(index)]; }

  // Returns how many forward operations of the region, from its first, run again unless they are
  // saved.
  size_t RunAgainCount(int32_t region) const;
  // Whether the backward pass of the region, or an operation that runs again, reads what the
  // forward operation at this position makes.
  bool IsReadAgain(int32_t region, size_t position) const;

  // Returns the runs in which these disjoint regions are checkpointed.
  // Operations that must not run twice have to be saved. O(operations).
  std::vector<OpId> RunsOf(const std::vector<CheckpointedRegion>& checkpointed) const;

 private:
  struct Moments {
    OpId begin;  // It runs again before this operation; none if nothing has to.
    OpId end;    // After this one it holds nothing any more.
    size_t run_again = 0;
    OpId hold;  // The operation that reads what lives until the end.
    std::vector<ValueId> held;
    std::vector<bool> is_read_again;  // By position.
  };
  class Reader;

  void AddOperations();
  // Returns, for each operation that ends a backward of several, what that reads.
  std::vector<std::pair<OpId, std::vector<ValueId>>> BackwardsOfSeveral() const;

  std::vector<OpRegion> regions_;
  std::vector<Moments> moments_;
  JointGraph graph_;
  std::vector<OpId> own_order_;  // Without the added operations.
  IdVector<OpId, OpId> taking_;  // By operation: the one that takes its saved values.
  IdVector<OpId, OpId> ending_;  // By operation: the one that runs after it, or none.
};

}  // namespace ckplan
