// Random graphs for tests and fuzzers. The same seed gives the same graph on every platform, so a
// failing test need only print its seed.
#pragma once

#include <cstdint>

#include "lib/base/rng.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// How often each feature of a TensorGraph occurs, in percent. With all of them at 0 the graph still
// has nodes with several inputs.
struct RandomGraphOptions {
  int nodes = 12;  // At least 1.
  int graph_inputs = 2;
  int max_node_inputs = 3;
  int64_t max_bytes = 20;
  int64_t max_cost = 10;
  int second_output = 20;
  int statistic = 25;
  int duplicate_input = 10;  // A tensor that occurs twice among a node's inputs.
  int in_place = 35;
  int gradient_passthrough = 30;
  int workspace = 30;  // For forward and for backward, independently.
  int random_node = 10;
  int no_gradient = 15;     // An output that needs no gradient although an input does.
  int input_gradient = 20;  // A graph input that needs a gradient.
  int extra_output = 10;    // A tensor that nodes read is also an output of the graph.
  int dead_end = 5;         // A tensor that no node reads is no output of the graph.
  int equal_bytes = 50;     // An output as large as an input: needed for in-place and pass-through.
  int shared_parameter = 0;  // A parameter that another node may train, too.
};

// Returns any graph that the training-step model admits: several outputs per node, statistics,
// inputs with and without gradients, in-place pairs, pass-through gradients, random nodes,
// workspaces, constant memory, scattered file ids, one or more outputs.
TensorGraph RandomTensorGraph(Rng& rng, const RandomGraphOptions& options = {});

// Returns a graph as in the papers: one output per node, nodes named n0, n1, ... in topological
// order, and each pair connected by an edge with a probability of `edge_percent` / 100. Bytes and
// costs are uniform in [1, max].
TensorGraph RandomDag(Rng& rng, int nodes, int edge_percent, int64_t max_bytes, int64_t max_cost);

}  // namespace ckplan
