// A table of the reads, the writes and the workspace of each kind of step: all data on which a
// schedule's memory depends, in flat arrays for replays (replay.h).
//
// A kind of step is a number from 0. In a forward graph with n nodes, kind k < n runs node k
// forward, kind n is the loss, and kind n + 1 + k runs node k backward. Its values are the tensors;
// gradients have separate rules (gradients.h). In a joint graph, kinds are operations, and values
// are the graph's values. Only values with a producer and IsCountedInPeak are in memory; the others
// count as constants.
//
// A joint graph's table may also have kinds for transfers (AddTransfers): `out` and `drop` read a
// value, and `in` writes it. A forward graph's table may have them for its tensors (transfers.h),
// after kinds for gradients, which read and write nothing.
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
  FlatLists reads;   // In the graph's order.
  FlatLists writes;  // In the graph's order.
  // Pairs of a write and a read whose memory the write may reuse, flat and in order of preference.
  // Both values of a pair are in memory and have the same size.
  FlatLists in_place;
  std::vector<Bytes> workspace;
  std::vector<Cost> cost;  // In a forward graph, nonzero only for forward runs.
  std::vector<bool> may_repeat;
  std::vector<bool> is_needed;  // Every plan must have a step of this kind.

  // Indexed by value.
  std::vector<Bytes> bytes;
  std::vector<int32_t> alias_of;   // The value whose memory it shares, or -1.
  std::vector<bool> is_in_memory;  // False if it counts as a constant.
  std::vector<bool> is_result;     // Its last version lives to the end.
  // True: a step reuses memory for at most one write, with the first possible pair. False: it may
  // do so for each write; the pairs are then in the order of the writes.
  bool has_one_taker = false;

  // The first transfer kind. This and the next three are set only in tables with transfers.
  int32_t first_transfer = std::numeric_limits<int32_t>::max();
  std::vector<int32_t> storage_of;  // Indexed by value: the end of its chain of aliases.
  FlatLists aliases;                // Indexed by value: the values whose storage it is, ascending.
  std::vector<bool> may_move;       // Indexed by value: see MovableValues.

  bool has_transfers() const { return !storage_of.empty(); }
  // For transfer kinds.
  StepKind TransferOf(int32_t kind) const {
    return static_cast<StepKind>(static_cast<int32_t>(StepKind::kOut) +
                                 (kind - first_transfer) % kTransferKinds);
  }
  int32_t MovedBy(int32_t kind) const { return (kind - first_transfer) / kTransferKinds; }

  static constexpr int32_t kTransferKinds = 3;
};

// Returns the table without transfers.
StepTable TableOf(const TrainingStep& step);
// Returns a flag per value: whether plans may move it to the host. Its memory must be its own,
// count in the peak, and not hold a result (including aliases and arriving gradients).
IdVector<ValueId, bool> MovableValues(const JointGraph& graph);
// Adds the transfer kinds of all values, unless the table has them.
void AddTransfers(const JointGraph& graph, StepTable* table);
void AddTransfers(const TensorGraph& graph, StepTable* table);
// Returns the table, with transfers if the schedule has any.
StepTable MakeStepTable(const TrainingStep& step, const Schedule& schedule);

// Returns the kind of a step of a forward graph. The step must not be a free.
int32_t KindOf(const TensorGraph& graph, const Step& step);

// Encodes the free of a value as a negative kind of step, and decodes it. In a forward graph,
// gradients are numbered after the tensors.
constexpr int32_t FreeOf(int32_t value) { return -1 - value; }

// Translates the steps of a schedule to kinds for replays. All steps must be of the graph's form.
// Transfers need a table with transfers.
std::vector<int32_t> KindsOf(const TrainingStep& of, const Schedule& schedule);

}  // namespace ckplan
