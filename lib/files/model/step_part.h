// The part of a file that a training step runs: the nodes of its main graph that lead to the
// planned outputs. Everything else in the file (an NMS, an ArgMax, a text decoder) is excluded
// before dimensions are bound and shapes inferred, so it can't cause errors.
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
  // Names that these nodes read, including in their branches and bodies, and the outputs.
  std::unordered_set<std::string> names;
  // Names that only excluded nodes read.
  std::unordered_set<std::string> left_out;
  bool is_chosen = false;  // Outputs were named, or some were excluded.

  // True if the step needs this input or initializer. Unread ones are kept unless outputs were
  // chosen.
  bool Needs(const std::string& name) const {
    return names.contains(name) || (!is_chosen && !left_out.contains(name));
  }
};

// Returns the part that leads to these values.
StepPart PartOf(const onnx::GraphProto& graph, std::vector<std::string> outputs, bool is_chosen);

// Returns the part that leads to the values and nodes matching `outputs` or, without patterns, to
// the file's outputs that are declared as floats (all outputs if none is). Fails with kUsage if a
// pattern matches nothing.
Result<StepPart> ChoosePart(const onnx::GraphProto& graph, const NamePatterns& outputs,
                            const std::string& file);

// Describes the excluded outputs in one sentence; empty if there are none, even if nodes that lead
// to no output of the file are excluded.
std::string LeftOutNote(const onnx::GraphProto& graph, const StepPart& part);

// Appends the names that the node reads, including in its branches and bodies.
void AppendReads(const onnx::NodeProto& node, std::vector<std::string>* names);

}  // namespace ckplan
