// Allocates and releases the gradients of activations during the backward pass. The simulator and
// the timeline share this code, since they must agree to the byte.
//
// The loss creates the gradient of each output of the graph. A backward step then contributes to
// the gradient of each activation input that needs one:
//   - the first contribution becomes the gradient's buffer;
//   - a later contribution needs a temporary buffer and is added to the gradient;
//   - a pass-through contribution (Add) shares the buffer of the output's gradient by reference
//     count, and a shared buffer is copied before anything is added to it.
// The result depends only on the order in which nodes run backward. In each order that
// lib/problem/schedule/schedule.h allows, each gradient is the same sum.
//
// These rules apply to backward by node. By input (WithBackwardByInput), each gradient has a single
// buffer, allocated by the step of its tensor's producer. It is released after the steps of that
// producer and of the producers of its inputs or, with explicit frees, at its free.
#pragma once

#include <algorithm>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// Returns true if the schedule's frees release gradients.
inline bool FreesGradients(const TensorGraph& graph, FreePolicy frees) {
  return graph.backward() == BackwardForm::kByInput && frees == FreePolicy::kExplicit;
}

// Sink has two members:
//   void Allocate(int32_t buffer, TensorId gradient_of);   with the size of the tensor
//   void Release(int32_t buffer);
// Buffers are numbered from 0 in allocation order. A sink that also tracks their contents, like the
// executor, has three more members:
//   void Write(size_t input, int32_t buffer);      the contribution to node.inputs[input]
//   void Add(int32_t into, int32_t from);
//   void Copy(int32_t into, int32_t from);
template <typename Sink>
class GradientReplay {
 public:
  GradientReplay(const TensorGraph& graph, Sink* sink, FreePolicy frees = FreePolicy::kLiveness)
      : graph_(graph),
        sink_(sink),
        buffer_of_(graph.tensors().size(), kNoBuffer),
        passed_by_(graph.tensors().size()),
        is_by_input_(graph.backward() == BackwardForm::kByInput),
        has_explicit_frees_(FreesGradients(graph, frees)) {
    if (!is_by_input_) return;
    waits_for_.resize(graph.nodes().size());
    has_run_.resize(graph.nodes().size());
    for (const Tensor& tensor : graph.tensors()) {
      if (tensor.producer.is_none() || !tensor.requires_grad) continue;
      for (const NodeId reader : tensor.consumers) ++waits_for_[reader];
    }
  }

  void Loss() {
    for (const TensorId output : graph_.outputs()) {
      if (graph_.tensor(output).requires_grad && buffer_of_[output] == kNoBuffer) {
        buffer_of_[output] = New(output);
      }
    }
  }

  void Backward(NodeId id) {
    if (is_by_input_) return BackwardByInput(id);
    const Node& node = graph_.node(id);
    const auto first = std::find_if(node.outputs.begin(), node.outputs.end(),
                                    [&](TensorId t) { return buffer_of_[t] != kNoBuffer; });
    if (first == node.outputs.end()) return;  // The node has no gradient.
    for (const TensorId input : node.gradient_passthrough) passed_by_[input] = id;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph_.tensor(node.inputs[i]).requires_grad) Contribute(id, *first, i);
    }
    for (const TensorId output : node.outputs) {
      if (buffer_of_[output] == kNoBuffer) continue;
      Drop(buffer_of_[output]);
      buffer_of_[output] = kNoBuffer;
    }
  }

  // Releases an allocated gradient, in schedules whose frees release gradients.
  void Free(TensorId tensor) {
    Drop(buffer_of_[tensor]);
    buffer_of_[tensor] = kNoBuffer;
  }

  // Release and reallocate the unshared buffer of a tensor's gradient while the gradient is on the
  // host (transfers.h).
  void TakeAway(TensorId tensor) {
    CKPLAN_CHECK(buffer_of_[tensor] != kNoBuffer &&
                     references_[static_cast<size_t>(buffer_of_[tensor])] == 1,
                 "a gradient that moves to the host is in memory and not shared");
    Drop(buffer_of_[tensor]);
    buffer_of_[tensor] = kNoBuffer;
  }
  void BringBack(TensorId tensor) { buffer_of_[tensor] = New(tensor); }

  // Returns the buffer of the gradient of `tensor`, or kNoBuffer.
  int32_t BufferOf(TensorId tensor) const { return buffer_of_[tensor]; }
  static constexpr int32_t kNoBuffer = -1;

 private:
  int32_t New(TensorId tensor) {
    const auto buffer = static_cast<int32_t>(references_.size());
    references_.push_back(1);
    sink_->Allocate(buffer, tensor);
    return buffer;
  }

  void Drop(int32_t buffer) {
    if (--references_[static_cast<size_t>(buffer)] == 0) sink_->Release(buffer);
  }

  bool PassesThrough(NodeId node, TensorId output, TensorId input) const {
    return passed_by_[input] == node && graph_.tensor(input).bytes == graph_.tensor(output).bytes;
  }

  bool HasGradient(NodeId id) const {
    const std::vector<TensorId>& outputs = graph_.node(id).outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](TensorId output) { return buffer_of_[output] != kNoBuffer; });
  }

  void BackwardByInput(NodeId id) {
    const Node& node = graph_.node(id);
    const auto needs = [&](TensorId tensor) {
      return graph_.tensor(tensor).requires_grad && buffer_of_[tensor] == kNoBuffer;
    };
    for (const TensorId output : node.outputs) {
      const std::vector<NodeId>& readers = graph_.tensor(output).consumers;
      const bool arrives = std::any_of(readers.begin(), readers.end(),
                                       [&](NodeId reader) { return HasGradient(reader); });
      if (arrives && needs(output)) buffer_of_[output] = New(output);
    }
    for (const TensorId input : node.inputs) {
      if (!graph_.is_input(input) || !needs(input) || !HasGradient(id)) continue;
      buffer_of_[input] = New(input);
    }
    if (has_explicit_frees_) return;
    has_run_[id] = true;
    for (const TensorId output : node.outputs) {
      if (!graph_.tensor(output).requires_grad) continue;
      for (const NodeId reader : graph_.tensor(output).consumers) {
        --waits_for_[reader];
        DropIfDone(reader);
      }
    }
    DropIfDone(id);
  }

  // Releases the node's gradients if no later step reads them.
  void DropIfDone(NodeId id) {
    if (!has_run_[id] || waits_for_[id] > 0) return;
    for (const TensorId output : graph_.node(id).outputs) {
      if (buffer_of_[output] != kNoBuffer) Free(output);
    }
  }

  void Add(int32_t into, int32_t from) {
    if constexpr (requires { sink_->Add(into, from); }) sink_->Add(into, from);
  }

  // Copies a shared gradient to its own buffer before something is added to it.
  void CopyIfShared(TensorId tensor) {
    const int32_t shared = buffer_of_[tensor];
    if (references_[static_cast<size_t>(shared)] == 1) return;
    buffer_of_[tensor] = New(tensor);
    if constexpr (requires { sink_->Copy(shared, shared); }) {
      sink_->Copy(buffer_of_[tensor], shared);
    }
    Drop(shared);
  }

  void Contribute(NodeId node, TensorId output, size_t position) {
    const TensorId input = graph_.node(node).inputs[position];
    int32_t& buffer = buffer_of_[input];
    if (PassesThrough(node, output, input)) {
      if (buffer == kNoBuffer) {
        buffer = buffer_of_[output];
        ++references_[static_cast<size_t>(buffer)];
      } else {
        CopyIfShared(input);
        Add(buffer, buffer_of_[output]);
      }
      return;
    }
    const int32_t contribution = New(input);
    if constexpr (requires { sink_->Write(position, contribution); }) {
      sink_->Write(position, contribution);
    }
    if (buffer == kNoBuffer) {
      buffer = contribution;
      return;
    }
    CopyIfShared(input);
    Add(buffer, contribution);
    Drop(contribution);
  }

  const TensorGraph& graph_;
  Sink* sink_;
  IdVector<TensorId, int32_t> buffer_of_;
  // The last node that passed a gradient through to the tensor.
  IdVector<TensorId, NodeId> passed_by_;
  std::vector<int32_t> references_;
  const bool is_by_input_;
  const bool has_explicit_frees_;  // Gradients stay until their frees.
  // By input: whether a node has run backward, and how many of its inputs have no gradient yet.
  IdVector<NodeId, bool> has_run_;
  IdVector<NodeId, int32_t> waits_for_;
};

}  // namespace ckplan
