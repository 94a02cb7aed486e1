// What each kind of step reads, makes and occupies beside: all that memory depends on, laid out
// flat for replays (replay.h).
//
// A kind of step is a number from 0. Of a forward graph with n nodes, kind k < n runs node k
// forward, kind n is the loss, and kind n + 1 + k runs node k backward; its values are the tensors,
// while gradients follow rules of their own (gradients.h). Of a joint graph kinds are operations
// and values are values (lib/joint/run_table.h).
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/flat_lists.h"
#include "lib/base/units.h"
#include "lib/graph/tensor_graph.h"
#include "lib/schedule/schedule.h"

namespace ckplan {

struct StepTable {
  // Of kinds of steps.
  FlatLists reads;   // Values that a step makes, in the order of the graph.
  FlatLists writes;  // In the order of the graph.
  // Pairs of a write and a read whose memory it may take over, flat: two numbers each, in the order
  // in which they are tried. Both are in memory, and equally large.
  FlatLists in_place;
  std::vector<Bytes> workspace;
  std::vector<Cost> cost;  // Of a forward graph, of the kinds that run forward alone.

  // Of values.
  std::vector<Bytes> bytes;
  std::vector<int32_t> alias_of;   // The value whose memory it is in; -1 if it is in its own.
  std::vector<bool> is_in_memory;  // Otherwise it is counted elsewhere.
  std::vector<bool> is_result;     // Its last version lives to the end.

  // Whether a step takes over memory for one write at the most, by the first pair that can be had.
  // Otherwise for each of its writes, whose pairs stand together and in the order of the writes.
  bool has_one_taker = false;
};

StepTable TableOf(const TensorGraph& graph);

// The kind of a step that is neither a free nor a run.
int32_t KindOf(const TensorGraph& graph, const Step& step);

// What stands among kinds of steps for the freeing of this value; and back.
constexpr int32_t FreeOf(int32_t value) { return -1 - value; }

// The steps of a schedule of the forward graph as replays read them.
std::vector<int32_t> KindsOf(const TensorGraph& graph, const Schedule& schedule);

}  // namespace ckplan
