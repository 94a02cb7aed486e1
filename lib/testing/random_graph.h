// Random graphs for tests and fuzzers. The same seed gives the same graph on every platform, so a
// failing test only needs to print its seed.
#pragma once

#include <cstdint>

#include "lib/base/rng.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

// Sizes, and how often each feature of a TensorGraph occurs, in percent. Even with all features at
// 0, nodes have several inputs.
struct RandomGraphOptions {
  int nodes = 12;  // At least 1.
  int graph_inputs = 2;
  int max_node_inputs = 3;
  int64_t max_bytes = 20;
  int64_t max_cost = 10;
  int second_output = 20;
  int statistic = 25;
  int duplicate_input = 10;  // A node has the same input twice.
  int in_place = 35;
  int gradient_passthrough = 30;
  int workspace = 30;  // For forward and for backward, independently.
  int random_node = 10;
  int no_gradient = 15;      // An output needs no gradient although an input does.
  int input_gradient = 20;   // A graph input needs a gradient.
  int extra_output = 10;     // A tensor that nodes read is also an output of the graph.
  int dead_end = 5;          // A tensor that no node reads isn't an output of the graph.
  int equal_bytes = 50;      // An output is as large as an input, as sharing memory requires.
  int shared_parameter = 0;  // A node trains a parameter that other nodes may also train.
};

// Returns a random graph with all features of the training-step model: several outputs per node,
// statistics, inputs with and without gradients, in-place pairs, pass-through gradients, random
// nodes, workspaces, constant memory, scattered file ids, one or more graph outputs.
TensorGraph RandomTensorGraph(Rng& rng, const RandomGraphOptions& options = {});

// Returns such a graph of up to 12 nodes, restricted to what models contain: at most one output of
// a node is in place. Nodes may share parameters.
TensorGraph RandomModelGraph(Rng& rng);

// Returns a random graph as in the papers: nodes n0, n1, ... in topological order with one output
// each. Each pair of nodes has an edge with a probability of `edge_percent` %. Bytes and costs are
// uniform in [1, max].
TensorGraph RandomDag(Rng& rng, int nodes, int edge_percent, int64_t max_bytes, int64_t max_cost);

}  // namespace ckplan
