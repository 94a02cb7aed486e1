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

#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Returns the graph of the forward functions, with what the backward ones read. As the authors'
// program has it, a function whose kind begins with "Conv" costs 10, any other 1. Parameters are
// constants with gradients. kInvalidInput: the text ends early, or a number is not one or refers to
// nothing; the message names the line of `where`.
Result<TensorGraph> ReadChainerGraph(std::string_view text, const std::string& where);

}  // namespace ckplan
