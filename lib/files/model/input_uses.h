// What the inputs of a file are for: the batch, parameters (--weights), or contents that are known
// before the step (--set). Files of ONNX Runtime's training tools and of export_params=False list
// their weights as inputs; merged decoders have a switch.
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
  std::unordered_set<std::string> initializers;  // Listed as inputs as well.
  std::unordered_set<std::string> left_out;      // The step needs none of these.
  std::unordered_set<std::string> weights;
  std::unordered_map<std::string, SetInput> set;

  // Returns whether the input changes from step to step.
  bool IsBatch(const std::string& name) const {
    return !initializers.contains(name) && !left_out.contains(name) && !weights.contains(name) &&
           !set.contains(name);
  }
};

// kUsage: a pattern of weights fits no input, or an input that is set doesn't exist.
Result<InputUses> FindInputUses(const onnx::GraphProto& graph, const LoadOptions& options,
                                const StepPart& part, const std::string& file);

// Returns the contents of an input of the declared type, whose open dimensions `type` takes from
// them. kUsage: numbers, or lists of another length, that the type does not have.
Result<ConstantValue> ContentsOf(const SetInput& given, onnx::TypeProto* type,
                                 const std::string& file);

// Patterns that messages suggest for values and inputs, whatever their names: they can be typed as
// they are printed, in lists with commas between them.

// Returns the name with a "?" for each character that lists and patterns interpret: commas, control
// characters, a first "!" or "@", the "o" of a first "op:".
std::string AsPattern(const std::string& name);

// Returns a pattern for --outputs that fits this value and no other: its name as a pattern, or that
// of its node. Empty if there is none.
std::string PatternFor(const onnx::GraphProto& graph, const std::string& value);

}  // namespace ckplan
