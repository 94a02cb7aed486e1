#include "lib/planning/algorithms/kusumoto/set_neighbours.h"

#include <utility>

namespace ckplan {
namespace {

// With fewer neighbours, counting them one by one is as fast.
constexpr size_t kMinCrowd = 4;

}  // namespace

void NodeGroup::Add(const VertexGraph& graph, NodeId v) {
  if (has(v)) return;
  Flip(words_.data(), v);
  memories_[WordOf(v)] += graph.memory(v);
  total_ += graph.memory(v);
}

Bytes NodeGroup::MemoryOutside(const VertexGraph& graph, const uint64_t* set) const {
  Bytes outside = total_;
  for (size_t w = 0; w < words_.size(); ++w) {
    uint64_t inside = words_[w] & set[w];
    if (inside == words_[w]) {
      outside -= memories_[w];
      continue;
    }
    for (; inside != 0; inside &= inside - 1) outside -= graph.memory(NodeAt(w, inside));
  }
  return outside;
}

bool NodeGroup::IsWithin(const uint64_t* set) const {
  for (size_t w = 0; w < words_.size(); ++w) {
    if ((words_[w] & ~set[w]) != 0) return false;
  }
  return true;
}

bool NodeGroup::Intersects(const uint64_t* set) const {
  for (size_t w = 0; w < words_.size(); ++w) {
    if ((words_[w] & set[w]) != 0) return true;
  }
  return false;
}

SetNeighbours::SetNeighbours(const VertexGraph& graph)
    : graph_(graph),
      hub_(FindHub(graph)),
      join_(FindJoin(graph, hub_)),
      third_for_(graph.size()),
      fourth_for_(graph.size()) {}

std::optional<SetNeighbours::Hub> SetNeighbours::FindHub(const VertexGraph& graph) {
  if (graph.size() == 0) return std::nullopt;
  NodeId most(0);
  for (const NodeId v : graph.ids()) {
    if (graph.successors(v).size() > graph.successors(most).size()) most = v;
  }
  if (graph.successors(most).size() < kMinCrowd) return std::nullopt;
  const size_t word_count = WordCount(graph.size());
  Hub hub{most, NodeGroup(word_count), NodeGroup(word_count)};
  for (const NodeId reader : graph.successors(most)) {
    hub.readers.Add(graph, reader);
    for (const NodeId p : graph.predecessors(reader)) hub.siblings.Add(graph, p);
  }
  return hub;
}

std::optional<SetNeighbours::Join> SetNeighbours::FindJoin(const VertexGraph& graph,
                                                           const std::optional<Hub>& hub) {
  if (graph.size() == 0) return std::nullopt;
  NodeId most(0);
  for (const NodeId v : graph.ids()) {
    if (graph.predecessors(v).size() > graph.predecessors(most).size()) most = v;
  }
  if (graph.predecessors(most).size() < kMinCrowd) return std::nullopt;
  const NodeGroup none(WordCount(graph.size()));
  Join join{most, none, hub ? hub->siblings : none};
  for (const NodeId p : graph.predecessors(most)) {
    join.inputs.Add(graph, p);
    join.inputs_and_siblings.Add(graph, p);
  }
  return join;
}

void SetNeighbours::Begin(const uint64_t* set) {
  set_ = set;
  ++set_number_;
  memory_ = Bytes(0);
  has_hub_ = hub_ && IsIn(hub_->node);
  has_join_ = join_ && !IsIn(join_->node) && join_->inputs.Intersects(set);
  if (has_hub_) memory_ += hub_->readers.MemoryOutside(graph_, set);
  counted_ = has_join_ && has_hub_ ? &join_->inputs_and_siblings
             : has_join_           ? &join_->inputs
             : has_hub_            ? &hub_->siblings
                                   : nullptr;
  if (counted_ != nullptr) memory_ += counted_->MemoryOutside(graph_, set);
}

bool SetNeighbours::Visit(NodeId v) {
  if (hub_ && v == hub_->node) return !hub_->readers.IsWithin(set_);
  bool is_boundary = false;
  for (const NodeId successor : graph_.successors(v)) {
    if (IsIn(successor)) continue;
    is_boundary = true;
    CountSuccessor(successor);
  }
  return is_boundary;
}

void SetNeighbours::CountSuccessor(NodeId successor) {
  if (has_hub_ && hub_->readers.has(successor)) return;
  if (std::exchange(third_for_[successor], set_number_) == set_number_) return;
  memory_ += graph_.memory(successor);
  if (has_join_ && successor == join_->node) return;
  for (const NodeId p : graph_.predecessors(successor)) {
    if (IsIn(p) || (counted_ != nullptr && counted_->has(p))) continue;
    if (std::exchange(fourth_for_[p], set_number_) != set_number_) memory_ += graph_.memory(p);
  }
}

}  // namespace ckplan
