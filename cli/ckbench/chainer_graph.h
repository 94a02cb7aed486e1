// Reads the graphs that Kusumoto et al. published with their program (GitHub:
// pfnet-research/recompute, computational_graphs/cg_*.txt). They carry no licence, so they are read
// from a folder that the user names.
//
//   2 2                    the number of variables, then that of functions
//   0 64 0                 a variable: its number, bytes and name; an input of the network has a
//                          number for a name, a parameter a path, every other variable "_"
//   1 32 _
//   forward                a function: then the number of its inputs and of its outputs
//   1 1
//   0 _                    an input; of a backward function also what it is: gradient, input,
//   output 1                      an output ReLU                   the kind of function
//   {"rank": 0}            its attributes, which are not needed
//   backward               the backward functions follow in the order of the forward ones
//   2 1
//   1 gradient
//   1 output
//   0
//   ReLU
//   {}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct ChainerVariable {
  Bytes bytes;
  bool is_made = false;  // A function makes it; otherwise it is an input or a parameter.
  bool is_parameter = false;
};

// A forward function, with its backward. Variables are positions in ChainerNetwork::variables.
struct ChainerFunction {
  std::string kind;  // "Convolution2DFunction"
  std::vector<size_t> inputs;
  size_t output = 0;
  std::vector<size_t> reads;      // What backward reads besides the gradient of the output.
  std::vector<size_t> gradients;  // The variables whose gradients backward makes, in its order.
};

struct ChainerNetwork {
  std::vector<ChainerVariable> variables;
  std::vector<ChainerFunction> functions;
};

// kInvalidInput: the text ends early, a number is not one or refers to nothing, or a function has
// several outputs; the message names the line of `where`.
Result<ChainerNetwork> ReadChainerNetwork(std::string_view text, const std::string& where);

// Returns the graph of the forward functions, with what the backward ones read; a node's file_id is
// the position of its function. As the authors' program has it, a function whose kind begins with
// "Conv" costs 10, any other 1. Parameters are constants with gradients.
Result<TensorGraph> GraphOf(const ChainerNetwork& network, const std::string& name);

// Returns the network with all variables but parameters `batch` / `of` as large.
ChainerNetwork WithBatch(ChainerNetwork network, int64_t batch, int64_t of);

}  // namespace ckplan
