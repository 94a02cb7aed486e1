// Looks up nodes and tensors (in a joint graph, operations and values) by the names that users and
// plan files use.
//
// A node can be called by its own name or by the names of the tensors that it produces, because
// many models leave nodes nameless. Using a name that several nodes or tensors share is an error.
// Names that are not valid UTF-8 are spelled as in plan files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/planning/plan/decisions.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

class DecidedNames {
 public:
  explicit DecidedNames(const TensorGraph& graph);
  explicit DecidedNames(const JointGraph& graph);

  // Finds the node with this name, or the producer of the tensor with this name. Records a fault
  // and returns none unless exactly one matches.
  NodeId FindNode(const NameOrId& what, std::string_view where);
  // Finds the producer of the tensor with this name, or else the node with this name. For an input
  // of the graph, which always exists, returns none without a fault.
  NodeId FindProducer(const NameOrId& what, std::string_view where);
  // Finds the tensor with this name. Records a fault and returns none unless exactly one matches.
  TensorId FindTensor(const NameOrId& what, std::string_view where);
  // Tells whether a tensor has this name or number.
  bool HasTensor(const NameOrId& what) const;

  // Returns the node's quoted name for use in faults: "\"conv1\"".
  std::string Quoted(NodeId id) const;
  void Fault(std::string_view where, std::string_view what);
  // Returns kInvalidInput with all faults so far, if any.
  Result<Done> Status() const;

 private:
  static constexpr size_t kMaxFaults = 10;

  // The words for nodes and tensors in this kind of graph, such as "node" and "tensor".
  DecidedNames(std::string_view node_word, std::string_view tensor_word)
      : node_word_(node_word), tensor_word_(tensor_word) {}

  void AddNode(NodeId id, const std::string& name, int64_t file_id,
               const std::vector<TensorId>& outputs);
  void AddTensor(TensorId id, const std::string& name, int64_t file_id, NodeId producer);
  void AddNameFault(const NameOrId& what, bool may_be_node, std::string_view where);

  const std::string_view node_word_;
  const std::string_view tensor_word_;
  std::unordered_map<std::string, std::vector<NodeId>> nodes_;
  std::unordered_map<std::string, std::vector<TensorId>> tensors_;
  std::unordered_map<int64_t, NodeId> node_ids_;
  std::unordered_map<int64_t, TensorId> tensor_ids_;
  // The node's own name, or else that of its first output.
  IdVector<NodeId, std::string> shown_names_;
  IdVector<TensorId, std::string> tensor_names_;
  IdVector<TensorId, NodeId> producers_;
  std::vector<std::string> faults_;
  size_t fault_count_ = 0;
};

}  // namespace ckplan
