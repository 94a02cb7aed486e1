#include "cli/ckbench/torch_attention.h"

#include <algorithm>

#include "lib/executor/cuda/traffic/kernel_list.h"
#include "lib/problem/ops/attention.h"

namespace ckplan {
namespace {

using cuda::BytesOf;
using cuda::KernelTraffic;
using cuda::Pass;

bool IsOneOf(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// Walks from a tensor to what it was made from, through scales and transposes.
void TakeScalesAbove(const StepGraph& step, const StepLinks& links, TensorId tensor,
                     std::vector<NodeId>& taken) {
  while (!tensor.is_none()) {
    const NodeId made = links.ProducerOf(tensor);
    if (made.is_none() || !IsOneOf(links.TypeOf(made), {"Mul", "Div", "Transpose"})) return;
    taken.push_back(made);
    tensor = step.nodes[made].inputs[0].tensor;
  }
}

// Returns the product that makes the scores of this softmax, through its mask and scale.
NodeId FindScores(const StepGraph& step, const StepLinks& links, NodeId softmax,
                  AttentionNodes& found) {
  TensorId tensor = step.nodes[softmax].inputs[0].tensor;
  for (;;) {
    const NodeId made = tensor.is_none() ? NodeId() : links.ProducerOf(tensor);
    if (made.is_none() || links.TypeOf(made) == "MatMul") return made;
    if (!IsOneOf(links.TypeOf(made), {"Add", "Mul", "Div"})) return NodeId();
    found.has_mask = found.has_mask || links.TypeOf(made) == "Add";
    found.others.push_back(made);
    tensor = step.nodes[made].inputs[0].tensor;
  }
}

// Returns the product that reads the probabilities, through IsNaN, Where and Dropout.
NodeId FindOutput(const StepGraph& step, const StepLinks& links, TensorId probabilities,
                  AttentionNodes& found) {
  for (;;) {
    TensorId next;
    for (const NodeId reader : links.ReadersOf(probabilities)) {
      if (links.TypeOf(reader) == "MatMul") return reader;
      if (!IsOneOf(links.TypeOf(reader), {"IsNaN", "Where", "Dropout"})) continue;
      found.others.push_back(reader);
      if (links.TypeOf(reader) != "IsNaN") next = step.nodes[reader].outputs[0];
    }
    if (next.is_none()) return NodeId();
    probabilities = next;
  }
}

struct AttentionBytes {
  int64_t q = 0, k = 0, v = 0, output = 0, scores = 0, mask = 0;
  int64_t flops = 0;  // What one of the two products takes.
};

AttentionBytes BytesOfAttention(const StepGraph& step, const AttentionNodes& nodes) {
  const OpSpec& scores = step.nodes[nodes.scores].spec;
  const OpSpec& output = step.nodes[nodes.output].spec;
  AttentionBytes bytes;
  bytes.q = BytesOf(scores.input(0));
  bytes.k = BytesOf(scores.input(1));
  bytes.v = BytesOf(output.input(1));
  bytes.output = BytesOf(output.output(0));
  bytes.scores = BytesOf(scores.output(0));
  bytes.flops = cuda::ForwardKernels(scores).back().flops;
  return bytes;
}

// The forward pass stores the output and one number for each row. The backward pass computes the
// probabilities again: five products instead of four.
TorchNode FusedAttention(const AttentionBytes& bytes) {
  const int64_t inputs = bytes.q + bytes.k + bytes.v;
  TorchNode torch;
  torch.forward = {cuda::Product("attention", inputs, bytes.output, 2 * bytes.flops)};
  torch.backward = {
      Pass("attention_backward dot of output and gradient", 2 * bytes.output, 0),
      cuda::Product("attention_backward", inputs + bytes.output, inputs, 5 * bytes.flops)};
  return torch;
}

// Products need contiguous heads, so queries, keys, values and the output are copied.
TorchNode PlainAttention(const AttentionBytes& bytes, bool has_mask) {
  const int64_t s = bytes.scores;
  TorchNode torch;
  torch.forward = {Pass("clone", bytes.q + bytes.k + bytes.v, bytes.q + bytes.k + bytes.v),
                   cuda::Product("bmm", bytes.q + bytes.k, s, bytes.flops), Pass("mul", s, s)};
  if (has_mask) torch.forward.push_back(Pass("add", s, s));
  torch.forward.push_back(Pass("softmax", s, s));
  torch.forward.push_back(cuda::Product("bmm", s + bytes.v, bytes.output, bytes.flops));
  torch.forward.push_back(Pass("clone", bytes.output, bytes.output));
  torch.backward = {Pass("clone", bytes.output, bytes.output),
                    cuda::Product("bmm", bytes.output + bytes.v, s, bytes.flops),
                    cuda::Product("bmm", s + bytes.output, bytes.v, bytes.flops),
                    Pass("softmax_backward", 2 * s, s),
                    Pass("mul", s, s),
                    cuda::Product("bmm", s + bytes.k, bytes.q, bytes.flops),
                    cuda::Product("bmm", s + bytes.q, bytes.k, bytes.flops),
                    Pass("clone", bytes.q + bytes.k + bytes.v, bytes.q + bytes.k + bytes.v)};
  return torch;
}

TorchNode AttentionOf(const AttentionBytes& bytes, TorchAttention attention, bool has_mask) {
  return attention == TorchAttention::kFused ? FusedAttention(bytes)
                                             : PlainAttention(bytes, has_mask);
}

}  // namespace

TorchNode TorchAttentionKernels(const OpSpec& spec, TorchAttention attention) {
  const auto shape = ReadFusedAttentionShape(spec);
  if (!shape.ok()) return {};
  AttentionBytes bytes;
  bytes.q = BytesOf(spec.input(0));
  bytes.k = BytesOf(spec.input(1));
  bytes.v = BytesOf(spec.input(2));
  bytes.output = BytesOf(spec.output(0));
  bytes.scores = shape->rows() * shape->keys * SizeOf(spec.output(0).type);
  bytes.flops = shape->rows() * shape->keys * (shape->size + shape->value_size);
  return AttentionOf(bytes, attention, shape->mask.is_present);
}

StepLinks::StepLinks(const StepGraph& step)
    : step_(step),
      producer_(step.tensors.size(), NodeId()),
      readers_(step.tensors.size(), std::vector<NodeId>()) {
  for (const NodeId id : step.nodes.ids()) {
    for (const TensorId output : step.nodes[id].outputs) {
      if (!output.is_none()) producer_[output] = id;
    }
    for (const Binding& input : step.nodes[id].inputs) {
      if (!input.tensor.is_none()) readers_[input.tensor].push_back(id);
    }
  }
}

NodeId StepLinks::ProducerOf(TensorId tensor) const {
  return tensor.is_none() ? NodeId() : producer_[tensor];
}

std::optional<AttentionNodes> FindAttention(const StepGraph& step, const StepLinks& links,
                                            NodeId softmax) {
  AttentionNodes found;
  found.softmax = softmax;
  found.scores = FindScores(step, links, softmax, found);
  if (found.scores.is_none()) return std::nullopt;
  found.output = FindOutput(step, links, step.nodes[softmax].outputs[0], found);
  if (found.output.is_none()) return std::nullopt;
  for (const Binding& factor : step.nodes[found.scores].inputs) {
    TakeScalesAbove(step, links, factor.tensor, found.others);
  }
  TakeScalesAbove(step, links, step.nodes[found.output].inputs[1].tensor, found.others);
  for (const NodeId reader : links.ReadersOf(step.nodes[found.output].outputs[0])) {
    if (links.TypeOf(reader) == "Transpose") found.others.push_back(reader);
  }
  return found;
}

void ReplaceAttention(const StepGraph& step, const AttentionNodes& nodes, TorchAttention attention,
                      IdVector<NodeId, TorchNode>& torch) {
  const AttentionBytes bytes = BytesOfAttention(step, nodes);
  for (const NodeId node : nodes.others) torch[node] = {};
  torch[nodes.scores] = {};
  torch[nodes.softmax] = {};
  torch[nodes.output] = AttentionOf(bytes, attention, nodes.has_mask);
}

}  // namespace ckplan
