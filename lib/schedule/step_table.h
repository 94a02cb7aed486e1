// A table of the reads, the writes and the workspace of each kind of step. It has all that the
// memory of a schedule depends on, laid out flat for replays (replay.h).
//
// A kind of step is a number from 0. In a forward graph with n nodes, kind k < n runs node k
// forward, kind n is the loss, and kind n + 1 + k runs node k backward. Its values are the tensors;
// gradients follow rules of their own (gradients.h). In a joint graph, kinds are operations and
// values are values; only those that an operation makes, of a kind that IsCountedInPeak, are in
// memory, and the others are counted with the constants.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/flat_lists.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"
#include "lib/schedule/training_step.h"

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
};

StepTable TableOf(const TrainingStep& step);

// Returns the kind of a step of a forward graph. The step must not be a free.
int32_t KindOf(const TensorGraph& graph, const Step& step);

// FreeOf encodes the freeing of a value among kinds of steps; the next function decodes it.
constexpr int32_t FreeOf(int32_t value) { return -1 - value; }

// Translates the steps of a schedule, which must all be of the graph's form, for replays.
std::vector<int32_t> KindsOf(const TrainingStep& of, const Schedule& schedule);

}  // namespace ckplan
