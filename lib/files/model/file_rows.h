// The nodes of a model's file from a plan's point of view: the graph nodes that each file node
// represents, and the inputs and outputs that are their tensors. For writing and checking markers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/files/model/model.h"

namespace ckplan {

// A value that an operation reads or produces, by its position in the operation's lists.
struct ValuePlace {
  enum class Kind : uint8_t { kInput, kOutput, kStatistic };
  Kind kind = Kind::kInput;
  int32_t position = 0;  // 0 for a statistic: a node has at most one.
};

// A graph node as the file operation that it was made from.
struct FileOperation {
  NodeId node;                             // None if it is not in the plan.
  std::string type;                        // Spelled as in the file.
  std::vector<ValuePlace> backward_reads;  // In the order of Node::backward_reads.
  std::vector<ValuePlace> outputs;         // In the order of Node::outputs.
};

struct FileRow {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // The first node that it represents; only for kNode.
  // True for a function call, or an If with a known condition, whose contents were expanded.
  bool is_expanded = false;
  std::vector<FileOperation> operations;  // In the order in which they run.
  // For each input, the node of the file's main graph that produces it, or -1.
  std::vector<int32_t> producers;
};

// Returns one row per node of the file's main graph. The plan of a pipeline stage has `count`
// nodes, starting at node `first` of the graph; other plans have all nodes.
std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered);
std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered, NodeId first,
                                size_t count);

}  // namespace ckplan
