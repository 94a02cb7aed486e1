// What became of the nodes and values of a model's file in its graph: users still ask for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

// The role of a file node in the graph.
enum class NodeRole {
  kNode,  // A node of the graph, given by `node`.
  kView,  // A view: its output has the memory of its input.
  // Folded, or computed from parameters and constants only: it runs once, before the steps.
  kConstant,
};

struct ModelNodeRole {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // Set only for kNode.
};

// A value that the file names and the graph does not hold.
struct AbsentValue {
  enum class Kind : uint8_t {
    kView,      // The result of a Reshape, say: it shares the memory of `tensor`.
    kConstant,  // Exists before the step begins: a parameter, or computed from parameters alone.
    kUnread,    // No operation reads it, so it is not made.
  };
  std::string name;
  Kind kind = Kind::kConstant;
  TensorId tensor;  // None unless the value is a view.

  bool operator==(const AbsentValue&) const = default;
};

// A node of the graph that the file spells out as several operators.
struct RestoredOperation {
  std::string name;  // The node's name in the graph.
  std::string op;    // Its operator, such as "Swish".
  // The PyTorch operation that the exporter names, such as "aten.silu.default". Empty if the file
  // names none, and the operators were recognised by their form.
  std::string origin;
  std::vector<std::string> replaced;  // The operators of the file, such as "Sigmoid", "Mul".
};

}  // namespace ckplan
