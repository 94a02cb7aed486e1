// Patterns that messages suggest for values and inputs, whatever their names: they can be typed as
// they are printed, in lists with commas between them.
#pragma once

#include <string>

#include "onnx/onnx_pb.h"

namespace ckplan {

// Returns the name with a "?" for each character that lists and patterns interpret: commas, control
// characters, a first "!" or "@", the "o" of a first "op:".
std::string AsPattern(const std::string& name);

// Returns a pattern for --outputs that fits this value and no other: its name as a pattern, or that
// of its node. Empty if there is none.
std::string PatternFor(const onnx::GraphProto& graph, const std::string& value);

}  // namespace ckplan
