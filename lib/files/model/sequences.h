// Expands sequences whose parts are known when the model is read: built, changed, split, joined,
// and indexed at known positions. No sequence remains in the model. A SplitToSequence with constant
// SequenceAt positions, as non-optimizing exporters write, becomes a Split:
//
//   s = SplitToSequence(x, [2,3])         a, b = Split(x, [2,3])
//   y = SequenceAt(s, 1)             is   y = Identity(b)
//
// If the split axis is removed (keepdims is 0), Squeeze replaces Identity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

struct SequenceSplit {
  int64_t axis = 0;            // Not negative.
  std::vector<int64_t> sizes;  // The sizes of the parts along the axis; at least one.
  bool keeps_axis = true;
};

// Returns the split of a SplitToSequence; nullopt if its sizes are not constant, contradict its
// input, or exceed `most_parts`.
std::optional<SequenceSplit> ReadSequenceSplit(const Model::Impl& model,
                                               const onnx::NodeProto& node,
                                               const std::vector<ValueIndex>& inputs,
                                               int64_t most_parts);

// Returns the part at a position, counted from the end if negative; nullopt if out of range.
std::optional<size_t> PartAt(size_t parts, int64_t position);

// Since operator set 13, Split and Squeeze read sizes and axes as an input; before, as an
// attribute.
inline constexpr int kFirstOpsetOfListInputs = 13;

// Create the nodes that replace those of a sequence. `source` is the node in the file.
onnx::NodeProto ListNode(const onnx::NodeProto& source, const char* what,
                         const std::vector<int64_t>& list);
onnx::NodeProto SplitNode(const onnx::NodeProto& source, const SequenceSplit& split, int opset);
onnx::NodeProto IdentityNode(const onnx::NodeProto& source);
// Joins `count` operands along an axis.
onnx::NodeProto ConcatNode(const onnx::NodeProto& source, const std::string& output, size_t count,
                           int64_t axis);
// Adds an axis of size 1 to the value `input`, with the result `output`.
onnx::NodeProto UnsqueezeNode(const onnx::NodeProto& source, const std::string& output,
                              int64_t axis, int opset);
onnx::NodeProto SqueezeNode(const onnx::NodeProto& source, int64_t axis, int opset);

}  // namespace ckplan
