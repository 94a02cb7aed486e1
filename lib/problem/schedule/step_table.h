// A table of the reads, the writes and the workspace of each kind of step. It has all that the
// memory of a schedule depends on, laid out flat for replays (replay.h).
//
// A kind of step is a number from 0. In a forward graph with n nodes, kind k < n runs node k
// forward, kind n is the loss, and kind n + 1 + k runs node k backward. Its values are the tensors;
// gradients follow rules of their own (gradients.h). In a joint graph, kinds are operations and
// values are values; only those that an operation makes, of a kind that IsCountedInPeak, are in
// memory, and the others are counted with the constants.
//
// A joint graph's table may have pseudo-kinds for transfers after its operations (AddTransfers):
// `out` and `drop` of a value read it, and `in` writes it. A forward graph's table may have them
// for its tensors (transfers.h), after other ones for gradients, which read and write
// nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "lib/base/lists.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

struct StepTable {
  // Indexed by kind of step.
  FlatLists reads;   // Values that a step reads, in the order of the graph.
  FlatLists writes;  // In the order of the graph.
  // Pairs of a write and a read whose memory the write may take over, flat: two numbers each, in
  // the order in which they are tried. The values of a pair are both in memory and equally large.
  FlatLists in_place;
  std::vector<Bytes> workspace;
  std::vector<Cost> cost;  // For a forward graph, nonzero only for kinds that run forward.
  std::vector<bool> may_repeat;
  std::vector<bool> is_needed;  // Every plan must have such a step.

  // Indexed by value.
  std::vector<Bytes> bytes;
  std::vector<int32_t> alias_of;   // The value whose memory it shares; -1 if it has its own.
  std::vector<bool> is_in_memory;  // False if it is counted elsewhere.
  std::vector<bool> is_result;     // Its last version lives to the end.

  // If true, a step takes over memory for at most one write, by the first pair that is possible.
  // Otherwise it may do so for each of its writes, whose pairs are adjacent and in the order of the
  // writes.
  bool has_one_taker = false;

  // The first kind that is a transfer. The next three are for tables that have transfers only.
  int32_t first_transfer = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> storage_of;  // Indexed by value: the end of its chain of aliases.
  FlatLists aliases;                // Indexed by value: the values whose storage it is, ascending.
  std::vector<bool> may_move;       // Indexed by value: see MovableValues.

  bool has_transfers() const { return !storage_of.empty(); }
  // For kinds from `first_transfer` on.
  StepKind TransferOf(int32_t kind) const {
    return static_cast<StepKind>(static_cast<int32_t>(StepKind::kOut) +
                                 (kind - first_transfer) % kTransferKinds);
  }
  int32_t MovedBy(int32_t kind) const { return (kind - first_transfer) / kTransferKinds; }

  static constexpr int32_t kTransferKinds = 3;
};

// Without transfers, whether or not the step has a link to a host.
StepTable TableOf(const TrainingStep& step);
// The values that plans may move to the host: those that have memory of their own which counts in
// the peak and that holds no result, neither in an alias nor as an arriving gradient.
IdVector<ValueId, bool> MovableValues(const JointGraph& graph);
// Adds the pseudo-kinds of the transfers of all values, unless the table has them.
void AddTransfers(const JointGraph& graph, StepTable* table);
void AddTransfers(const TensorGraph& graph, StepTable* table);
// Returns the table with what the schedule needs.
StepTable TableFor(const TrainingStep& step, const Schedule& schedule);

// Returns the kind of a step of a forward graph. The step must not be a free.
int32_t KindOf(const TensorGraph& graph, const Step& step);

// FreeOf encodes the freeing of a value among kinds of steps; the next function decodes it. The
// gradients of a forward graph are numbered after its values here.
constexpr int32_t FreeOf(int32_t value) { return -1 - value; }

// Translates the steps of a schedule, which must all be of the graph's form, for replays. Transfers
// need a table that has them.
std::vector<int32_t> KindsOf(const TrainingStep& of, const Schedule& schedule);

}  // namespace ckplan
