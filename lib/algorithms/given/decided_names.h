// Looks up nodes and tensors by the names that people and plan files use; of a joint graph,
// operations and values.
//
// A node answers to its name, and to the names of the tensors that it makes: many models leave
// nodes nameless. A name of several nodes, or of several tensors, is refused where it is used.
// Names that are no well-formed UTF-8 are known as plan files write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/graph/tensor_graph.h"
#include "lib/joint/joint_graph.h"
#include "lib/plan/decisions.h"

namespace ckplan {

class DecidedNames {
 public:
  explicit DecidedNames(const TensorGraph& graph);
  explicit DecidedNames(const JointGraph& graph);

  // The node of that name, or that makes the tensor of that name. None, and a fault, if there is
  // none or more than one.
  NodeId FindNode(const NameOrId& what, std::string_view where);
  // The node that makes the tensor of that name, or else the node of that name. None without a
  // fault for an input of the graph, which is always there.
  NodeId FindMaker(const NameOrId& what, std::string_view where);
  // The tensor of that name. None, and a fault, if there is none or more than one.
  TensorId FindTensor(const NameOrId& what, std::string_view where);
  // Whether a tensor has that name, or that number.
  bool HasTensor(const NameOrId& what) const;

  // "\"conv1\"", as faults name it.
  std::string Quoted(NodeId id) const;
  void Fault(std::string_view where, std::string_view what);
  // kInvalidInput with all faults so far, if there are any.
  Result<Done> Status() const;

 private:
  static constexpr size_t kMaxFaults = 10;

  // What the graph calls them: "node" and "tensor".
  DecidedNames(std::string_view node_word, std::string_view tensor_word)
      : node_word_(node_word), tensor_word_(tensor_word) {}

  void AddNode(NodeId id, const std::string& name, int64_t file_id,
               const std::vector<TensorId>& outputs);
  void AddTensor(TensorId id, const std::string& name, int64_t file_id, NodeId producer);
  void FaultOfName(const NameOrId& what, bool may_be_node, std::string_view where);

  const std::string_view node_word_;
  const std::string_view tensor_word_;
  std::unordered_map<std::string, std::vector<NodeId>> nodes_;
  std::unordered_map<std::string, std::vector<TensorId>> tensors_;
  std::unordered_map<int64_t, NodeId> node_ids_;
  std::unordered_map<int64_t, TensorId> tensor_ids_;
  IdVector<NodeId, std::string> shown_names_;  // Its own, or that of the first tensor it makes.
  IdVector<TensorId, std::string> tensor_names_;
  IdVector<TensorId, NodeId> producers_;
  std::vector<std::string> faults_;
  size_t fault_count_ = 0;
};

}  // namespace ckplan
