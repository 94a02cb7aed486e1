// An independent simulator and an independent arena checker, for tests and fuzzers. Both are as
// simple as possible and take at least quadratic time. They share no code with
// lib/problem/schedule/simulate or with the checker.
//
// For each step and each tensor, the simulator applies the definition of when the tensor is in
// memory. For gradients, it tracks the buffer that each gradient uses.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

class NaiveSimulation {
 public:
  // The schedule must be a valid training step of the graph.
  NaiveSimulation(const TensorGraph& graph, const Schedule& schedule)
      : graph_(graph), steps_(schedule.steps), frees_(schedule.frees) {}

  // Call it only once.
  Bytes Peak() {
    Bytes peak;
    for (size_t k = 0; k < steps_.size(); ++k) {
      if (!steps_[k].is_free()) peak = std::max(peak, Needed(k));
    }
    return peak;
  }

  Cost Overhead() const {
    std::set<int32_t> seen;
    Cost overhead;
    for (const Step& step : steps_) {
      if (step.kind != StepKind::kForward) continue;
      if (!seen.insert(step.index).second) overhead += graph_.node(step.node()).forward_cost;
    }
    return overhead;
  }

 private:
  bool Reads(const Step& step, TensorId tensor) const {
    const auto lists = [&](const std::vector<TensorId>& list) {
      return std::count(list.begin(), list.end(), tensor) > 0;
    };
    switch (step.kind) {
      case StepKind::kForward:
        return lists(graph_.node(step.node()).inputs);
      case StepKind::kBackward:
        return lists(graph_.node(step.node()).backward_reads);
      case StepKind::kLoss:
        return lists(graph_.outputs());
      case StepKind::kFree:
      case StepKind::kFreeGradient:
      case StepKind::kRun:
      case StepKind::kOut:
      case StepKind::kDrop:
      case StepKind::kIn:
        return false;
    }
    return false;
  }

  bool Makes(const Step& step, TensorId tensor) const {
    if (step.kind != StepKind::kForward) return false;
    const std::vector<TensorId>& outputs = graph_.node(step.node()).outputs;
    return std::count(outputs.begin(), outputs.end(), tensor) > 0;
  }

  // While step k runs, the version of `tensor` is the last one computed at or before k. It is in
  // memory if it is computed at k, or read at k or later before the next version is computed. With
  // explicit frees, it is in memory until it is freed.
  bool IsInMemory(TensorId tensor, size_t k) const {
    if (graph_.is_input(tensor)) return false;
    size_t made = k + 1;
    while (made > 0 && !Makes(steps_[made - 1], tensor)) --made;
    if (made == 0) return false;
    if (made - 1 == k) return true;
    if (frees_ == FreePolicy::kExplicit) {
      return std::find(steps_.begin() + static_cast<int64_t>(made),
                       steps_.begin() + static_cast<int64_t>(k),
                       Step::Free(tensor)) == steps_.begin() + static_cast<int64_t>(k);
    }
    for (size_t later = k; later < steps_.size(); ++later) {
      if (Reads(steps_[later], tensor)) return true;
      if (Makes(steps_[later], tensor)) return false;
    }
    return false;
  }

  bool DiesAt(TensorId tensor, size_t k) const {
    if (frees_ == FreePolicy::kExplicit || !Reads(steps_[k], tensor)) return false;
    for (size_t later = k + 1; later < steps_.size(); ++later) {
      if (Makes(steps_[later], tensor)) return true;
      if (Reads(steps_[later], tensor)) return false;
    }
    return true;
  }

  // At a forward step, the old version of a recomputed tensor is in memory only if the step reads
  // it.
  Bytes Needed(size_t k) {
    const Step& step = steps_[k];
    Bytes bytes;
    for (const TensorId tensor : graph_.tensors().ids()) {
      if (IsInMemory(tensor, k)) bytes += graph_.tensor(tensor).bytes;
    }
    if (step.kind == StepKind::kForward) {
      const Node& node = graph_.node(step.node());
      bytes += node.forward_workspace + GradientBytes();
      for (const auto& [output, input] : node.in_place) {
        if (graph_.is_input(input) || !DiesAt(input, k)) continue;
        if (graph_.tensor(input).bytes != graph_.tensor(output).bytes) continue;
        return bytes - graph_.tensor(input).bytes;
      }
      return bytes;
    }
    if (step.kind == StepKind::kLoss) {
      for (const TensorId output : graph_.outputs()) {
        if (graph_.tensor(output).requires_grad) holder_[output] = buffers_++;
        if (graph_.tensor(output).requires_grad)
          size_[holder_[output]] = graph_.tensor(output).bytes;
      }
      return bytes + GradientBytes();
    }
    return bytes + graph_.node(step.node()).backward_workspace + RunBackward(step.node());
  }

  // Returns the total size of the buffers in use by gradients.
  Bytes GradientBytes() const {
    std::set<int> held;
    for (const auto& [tensor, buffer] : holder_) held.insert(buffer);
    Bytes bytes;
    for (const int buffer : held) bytes += size_.at(buffer);
    return bytes;
  }

  bool IsShared(TensorId tensor) const {
    int holders = 0;
    for (const auto& [other, buffer] : holder_) holders += buffer == holder_.at(tensor);
    return holders > 1;
  }

  // Returns the maximum of gradient bytes while the node runs backward.
  Bytes RunBackward(NodeId id) {
    const Node& node = graph_.node(id);
    Bytes highest = GradientBytes();
    TensorId output;
    for (auto it = node.outputs.rbegin(); it != node.outputs.rend(); ++it) {
      if (holder_.count(*it) != 0) output = *it;
    }
    if (output.is_none()) return highest;
    for (const TensorId input : node.inputs) {
      if (!graph_.tensor(input).requires_grad) continue;
      const Bytes bytes = graph_.tensor(input).bytes;
      const auto& passes = node.gradient_passthrough;
      const bool is_passed = std::count(passes.begin(), passes.end(), input) > 0 &&
                             bytes == graph_.tensor(output).bytes;
      const bool is_first = holder_.count(input) == 0;
      Bytes temporary = is_passed ? Bytes(0) : bytes;
      if (is_first) {
        holder_[input] = is_passed ? holder_.at(output) : buffers_++;
        size_[holder_[input]] = bytes;
        temporary = Bytes(0);
      } else if (IsShared(input)) {
        // The other gradients keep the old buffer; this one gets a new buffer.
        holder_[input] = buffers_++;
        size_[holder_[input]] = bytes;
      }
      highest = std::max(highest, GradientBytes() + temporary);
    }
    for (const TensorId out : node.outputs) holder_.erase(out);
    return highest;
  }

  const TensorGraph& graph_;
  const std::vector<Step>& steps_;
  const FreePolicy frees_;
  std::map<TensorId, int> holder_;
  std::map<int, Bytes> size_;
  int buffers_ = 0;
};

// Reports a wrong number of offsets, a negative offset, an offset so large that the buffer's end
// overflows, and buffers that overlap in both time and memory.
inline std::vector<std::string> NaiveArenaFaults(const std::vector<Buffer>& buffers,
                                                 const std::vector<Bytes>& offsets) {
  if (offsets.size() != buffers.size()) return {"the number of offsets is wrong"};
  std::vector<std::string> faults;
  const auto end = [&](size_t i) -> uint64_t {  // At most 2^64 - 2.
    return static_cast<uint64_t>(offsets[i].count()) +
           static_cast<uint64_t>(buffers[i].bytes.count());
  };
  for (size_t a = 0; a < buffers.size(); ++a) {
    if (offsets[a] < Bytes(0)) return {"an offset is negative"};
    if (end(a) > static_cast<uint64_t>(Bytes::Max().count())) return {"an offset is too large"};
    for (size_t b = 0; b < a; ++b) {
      const bool live_together =
          buffers[a].begin < buffers[b].end && buffers[b].begin < buffers[a].end;
      const bool overlap = offsets[a] < Bytes(static_cast<int64_t>(end(b))) &&
                           offsets[b] < Bytes(static_cast<int64_t>(end(a)));
      if (live_together && overlap && buffers[a].bytes > Bytes(0) && buffers[b].bytes > Bytes(0)) {
        faults.push_back("buffers " + std::to_string(b) + " and " + std::to_string(a) + " overlap");
      }
    }
  }
  return faults;
}

inline std::vector<std::string> NaiveArenaFaults(const TensorGraph& graph, const Schedule& schedule,
                                                 const std::vector<Bytes>& offsets) {
  return NaiveArenaFaults(BuildTimeline(graph, schedule).buffers, offsets);
}

}  // namespace ckplan
