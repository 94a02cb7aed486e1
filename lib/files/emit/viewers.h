// Writes plans in the formats of other people's viewers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Writes Python's pickle format, protocol 2, for types that JSON has as well: dictionaries, lists,
// texts and integers. PyTorch's memory viewer, which has its own pickle reader, supports everything
// used here.

//   PickleWriter pickle;
//   pickle.BeginDict();
//   pickle.Key("size").Integer(12);
//   pickle.Key("frames").BeginList();
//   pickle.End().End();
//   std::move(pickle).Finish()       {"size": 12, "frames": []}
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  PickleWriter& BeginDict();
  PickleWriter& BeginList();
  PickleWriter& End();
  PickleWriter& Key(std::string_view key);
  PickleWriter& Text(std::string_view text);  // `text` must be UTF-8.
  PickleWriter& Integer(int64_t value);

  std::string Finish() &&;

 private:
  struct Level {
    bool is_list = false;
    size_t items = 0;
  };
  void BeginItem();
  void LittleEndian(uint64_t value, int bytes);

  std::string bytes_;
  std::vector<Level> levels_;
};

// Writes a plan as a memory snapshot of PyTorch for pytorch.org/memory_viz and
// torch.cuda._memory_viz, so that the predicted timeline opens in the viewer for measured ones.
//
// The file is a pickle of the result of torch.cuda.memory._snapshot. One segment is the plan's
// arena. Each buffer is a block at its offset there, allocated and freed when the schedule does so.
// Another segment holds the constants, which stay. The category of a block is the kind of its last
// contents. The stack of a block has, from the top: its contents, the tensor that they overwrote,
// the step that makes the buffer, and the modules around that step, innermost first.
std::string WriteMemoryViz(const TracedPlan& traced);

// Writes the plan's decision for each node as node data for Google's Model Explorer. Opened with
// the ONNX file, it shows each node's action (keep, recompute, transient) as text and as a colour
// that colour-blind readers can distinguish, and counts the actions in each layer.
//
// Nodes are identified by name, as in the viewer's ONNX adapter; a node without a name by that of
// its first output.
std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan);

// Writes the memory at a plan's peak as folded stacks, one line for each different stack, for
// flamegraph.pl, inferno, speedscope and similar tools:
//
//   kept;layer1;layer1.0;layer1.0.conv1;Conv;conv2d_1 12845056
//
// The frames are the kind, the paths of the modules, the operator and the tensor; the number is in
// bytes. The numbers add up to the peak.
std::string WritePeakStacks(const TracedPlan& traced);

// Writes a plan as a trace for ui.perfetto.dev and Perfetto's trace processor, in their protobuf
// format.
//
//   schedule   a slice for each step, as long as its cost and at least one unit: its category is
//              forward, recompute, loss or backward; its arguments are the step, the operator and
//              the modules; one unit of cost is a nanosecond
//   memory     the memory at the moment of the step when use is highest, as counters in
//              bytes: the total, whose maximum is the plan's peak, and each kind
//   constants  parameters, their gradients, optimizer state and inputs, in no other counter
std::string WritePerfetto(const TracedPlan& traced);

}  // namespace ckplan
