// Nodes of a graph that the model's file spells out as several operators.
#pragma once

#include <string>
#include <vector>

namespace ckplan {

struct RestoredOperation {
  std::string name;  // The node's name in the graph.
  std::string op;    // Its operator, such as "Swish".
  // The PyTorch operation that the exporter names, such as "aten.silu.default". Empty if the file
  // names none, and the operators were recognised by their form.
  std::string origin;
  std::vector<std::string> replaced;  // The operators of the file, such as "Sigmoid", "Mul".
};

}  // namespace ckplan
