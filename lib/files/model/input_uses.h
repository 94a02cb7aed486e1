// Classifies the inputs of a file: the batch, parameters (--weights), or values known before the
// step (--set). Files from ONNX Runtime's training tools and from export_params=False list their
// weights as inputs; merged decoders have a switch.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/model.h"
#include "lib/files/model/step_part.h"
#include "lib/planning/plan/set_input.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InputUses {
  std::unordered_set<std::string> initializers;  // Also listed as inputs.
  std::unordered_set<std::string> left_out;      // Not needed by the step.
  std::unordered_set<std::string> weights;
  std::unordered_map<std::string, SetInput> set;

  // True if the input changes from step to step.
  bool IsBatch(const std::string& name) const {
    return !initializers.contains(name) && !left_out.contains(name) && !weights.contains(name) &&
           !set.contains(name);
  }
};

// Fails with kUsage if a pattern for weights matches no input, or if a set input does not exist.
Result<InputUses> FindInputUses(const onnx::GraphProto& graph, const LoadOptions& options,
                                const StepPart& part, const std::string& file);

// Returns the contents of an input of the declared type, and sets the open dimensions of `type`
// from them. Fails with kUsage if the type can't have these numbers or list lengths.
Result<ConstantValue> ContentsOf(const SetInput& given, onnx::TypeProto* type,
                                 const std::string& file);

// Patterns that messages suggest for values and inputs. Whatever the names, they can be typed as
// printed, in comma-separated lists.

// Returns the name with "?" for each character with a meaning in lists and patterns: commas,
// control characters, a leading "!" or "@", the "o" of a leading "op:".
std::string AsPattern(const std::string& name);

// Returns a pattern for --outputs that matches only this value: its name or its node's as a
// pattern. Empty if there is none.
std::string PatternFor(const onnx::GraphProto& graph, const std::string& value);

}  // namespace ckplan
