// Writes plans in the formats of third-party viewers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/explain/traced_plan.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Writes Python's pickle format, protocol 2, limited to dictionaries, lists, strings and integers,
// which the pickle reader of PyTorch's memory viewer supports.
//
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

// Writes a plan as a PyTorch memory snapshot for pytorch.org/memory_viz and torch.cuda._memory_viz,
// so that the predicted timeline opens in the same viewer as measured ones.
//
// The file is a pickle in the form of torch.cuda.memory._snapshot(). One segment is the plan's
// arena: each buffer is a block at its offset, allocated and freed as in the schedule. Another
// segment holds the constants. A block's category is the kind of its last contents. A block's stack
// lists, from the top: its contents, the tensors they overwrote, the step that allocates the
// buffer, and that step's modules, innermost first.
std::string WriteMemoryViz(const TracedPlan& traced);

// Writes the plan's decisions as node data for Google's Model Explorer. Opened with the ONNX file,
// it shows each node's action (keep, recompute, transient) as text and colour, and counts the
// actions in each layer.
//
// Identifies nodes by name, as the viewer's ONNX adapter does, or by the name of the first output
// if a node has no name.
std::string WriteModelExplorer(const TensorGraph& graph, const Plan& plan);

// Writes the memory at a plan's peak as folded stacks for flamegraph.pl, inferno, speedscope and
// similar tools:
//
//   kept;layer1;layer1.0;layer1.0.conv1;Conv;conv2d_1 12845056
//
// The frames are the kind, the modules' paths, the operator and the tensor. The number is in bytes;
// the numbers add up to the peak.
std::string WritePeakStacks(const TracedPlan& traced);

// Writes a plan as a trace for ui.perfetto.dev and Perfetto's trace processor, in their protobuf
// format.
//
//   schedule   a slice per step. Its length is the step's cost (at least 1), with a unit of cost as
//              a nanosecond; its category is forward, recompute, loss or backward; its arguments
//              are the step, the operator and the innermost module
//   memory     counters in bytes of the highest memory use in each step: the total, whose maximum
//              is the plan's peak, and each kind
//   constants  a counter of parameters, their gradients, optimizer state and inputs, which the
//              other counters do not include
std::string WritePerfetto(const TracedPlan& traced);

}  // namespace ckplan
