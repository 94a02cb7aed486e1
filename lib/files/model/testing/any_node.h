// Models with one node for the fuzz target `inference`: any operator of any ONNX operator set, with
// operands and attributes that may contradict each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace ckplan {

// The random choices that define the model.
struct NodeChoices {
  std::function<size_t(size_t count)> below;  // A number in [0, count), for a count up to 256.
  std::function<std::string()> line;
};

// Returns the bytes of an ONNX file. The first line is the operator's name; any other text selects
// some operator.
std::string AnyNodeModel(const NodeChoices& choices);

}  // namespace ckplan
