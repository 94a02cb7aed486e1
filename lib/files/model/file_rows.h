// The nodes of a model's file as a plan sees them: the graph nodes that each file node stands for,
// and the inputs and outputs that are their tensors. It serves code that writes or checks markers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/files/model/model.h"

namespace ckplan {

// A value that an operation reads or makes, by its position in the operation's own lists.
struct ValuePlace {
  enum class Kind : uint8_t { kInput, kOutput, kStatistic };
  Kind kind = Kind::kInput;
  int32_t position = 0;  // 0 for a statistic, since a node has at most one.
};

// A node of the graph, as the operation of the file from which it was made.
struct FileOperation {
  NodeId node;                             // None if it is not in the plan.
  std::string type;                        // Spelled as in the file.
  std::vector<ValuePlace> backward_reads;  // In the order of Node::backward_reads.
  std::vector<ValuePlace> outputs;         // In the order of Node::outputs.
};

struct FileRow {
  NodeRole role = NodeRole::kConstant;
  NodeId node;  // The first node that it stands for; set only for kNode.
  // A call of a function, or an If with a known condition, whose contents have been expanded.
  bool is_expanded = false;
  std::vector<FileOperation> operations;  // In the order in which they run.
  // For each input, the node of the file's main graph that makes it, or -1.
  std::vector<int32_t> producers;
};

// Returns one row for each node of the file's main graph. A plan for one stage of a pipeline has
// `count` nodes, beginning with node `first` of the graph; any other plan has all of them.
std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered);
std::vector<FileRow> FileRowsOf(const Model& model, const ModelGraph& lowered, NodeId first,
                                size_t count);

}  // namespace ckplan
