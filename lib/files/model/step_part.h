// The part of a file that a training step runs: the nodes of its main graph that lead to the
// planned outputs. Whatever else a file holds (an NMS, an ArgMax, a text decoder) is left out
// before a dimension is bound or a shape is inferred, so it can't refuse the model.
//
//   x ── Conv ── Relu ── l ── ArgMax ── y          --outputs l: the step ends at l
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct StepPart {
  std::vector<std::string> outputs;  // Names of values.
  std::vector<bool> has_node;        // By position in the main graph.
  // Names that these nodes read, also in their branches and bodies, and the outputs.
  std::unordered_set<std::string> names;
  // Names that only left-out nodes read.
  std::unordered_set<std::string> left_out;
  bool is_chosen = false;  // The outputs were named, or some were left out.

  // Returns whether the step needs this input or initializer. Those that nothing reads stay, unless
  // outputs were chosen.
  bool Needs(const std::string& name) const {
    return names.contains(name) || (!is_chosen && !left_out.contains(name));
  }
};

// Returns the part that leads to these values.
StepPart PartOf(const onnx::GraphProto& graph, std::vector<std::string> outputs, bool is_chosen);

// Returns the part that leads to the values and nodes that fit `outputs`, or, without any pattern,
// to the outputs of the file that are declared as floats (all of them if none is). kUsage: a
// pattern fits nothing.
Result<StepPart> ChoosePart(const onnx::GraphProto& graph, const NamePatterns& outputs,
                            const std::string& file);

// Returns what the part leaves out, as one sentence; empty if that is nothing, or if it is only
// nodes that lead to no output of the file.
std::string LeftOutNote(const onnx::GraphProto& graph, const StepPart& part);

// Appends the names that the node reads, also in its branches and bodies.
void AppendReads(const onnx::NodeProto& node, std::vector<std::string>* names);

}  // namespace ckplan
