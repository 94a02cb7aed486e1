// Models of one node, for the fuzz target `inference`: any operator of any operator set that ONNX
// describes, with operands and attributes that may contradict each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace ckplan {

// The decisions that make the model.
struct NodeChoices {
  std::function<size_t(size_t count)> below;  // A number in [0, count), for a count up to 256.
  std::function<std::string()> line;
};

// Returns the bytes of an ONNX file. The first line is the name of the operator; any other text
// stands for some operator.
std::string AnyNodeModel(const NodeChoices& choices);

}  // namespace ckplan
