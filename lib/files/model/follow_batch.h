// Follows the batch through a model with a fixed batch size, so that the model can be read with
// another size.
//
//   x float[1,136,28,28] ─ Reshape [1,4,34,28,28] ─▶ float[1,4,34,28,28]      as in the file
//   x float[8,136,28,28] ─ Reshape [8,4,34,28,28] ─▶ float[8,4,34,28,28]      with a batch of 8
//
// The model is read twice: unchanged, and with the new size of its inputs. Dimensions that differ
// between the two readings hold the batch, so the batch is known at every operation, and a constant
// is changed only if it must match the batch. Other constants, such as the shape of a weight, stay.
// Three kinds of constants are changed:
//
//   - shapes that an operation gives its input: Reshape, Expand, Resize, MaxUnpool, and Slices that
//     select the whole batch;
//   - operands of a Concat and initial states of an LSTM, GRU or RNN with a 1 where others have the
//     batch: they are expanded;
//   - shapes from which ConstantOfShape, Expand, Tile or a random operator creates a value, if an
//     operation fails because they have the old batch, which is then above 1. They are found from
//     the failing operation, and the model is read once more.
//
// Everything else, and every ambiguous case, is refused with the name of the node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/files/model/constant.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Where the batch goes when an array is reshaped, derived from the two shapes at one batch.
//
//   [8,128,768] → [1024,768] → [1024,12,64]     the batch becomes a part of the first axis
//   [50,1,768]  → [50,12,64]                    a batch of 1: of axis 1, since axis 0 is as it was
//
// Consecutive samples are equally far apart before and after. With a batch above 1, at most one
// axis matches. A batch of 1 is its own axis wherever an axis of 1 has that distance. Otherwise it
// lies between two axes, and the shapes decide which one it belongs to: never the last axis, which
// holds features, and preferably not an axis that is unchanged.

// Returns the product of the dimensions after `axis`.
int64_t ElementsWithin(const Dims& dims, size_t axis);

struct BatchPlace {
  size_t axis = 0;  // The axis of the array that holds the batch.
  // The number of elements of this axis between one sample and the next: 1 if the batch is the
  // whole axis or its fastest part.
  int64_t step = 1;

  bool operator==(const BatchPlace&) const = default;
};

// Returns the place on that axis of `to`, if the batch can be there: see PlaceAfterReshape.
std::optional<BatchPlace> PlaceOnAxis(const Dims& from, BatchPlace place, const Dims& to,
                                      size_t axis, int64_t batch);

// Returns the place of a batch of size `batch` in `to`, given its place in `from`. Both arrays have
// the same elements, and at least one. Returns nullopt unless exactly one place is possible.
std::optional<BatchPlace> PlaceAfterReshape(const Dims& from, BatchPlace place, const Dims& to,
                                            int64_t batch);

struct BatchSizes {
  int64_t in_file = 0;
  int64_t wanted = 0;
};

// What an operation reads instead of the file's operands.
struct FollowedNode {
  struct List {
    size_t operand = 0;
    std::vector<int64_t> numbers;
  };
  std::vector<List> lists;              // Operands that are lists of numbers.
  std::vector<List> expanded;           // Operands to expand to these dimensions.
  std::optional<onnx::NodeProto> node;  // The node with changed attributes.
  std::string fault;                    // Why the node can't use the batch; empty if it can.
};

// Create the nodes that replace operands of `source`: a list of numbers, and the operand expanded
// to the dimensions in such a list for the same `what`.
onnx::NodeProto ConstantNode(const onnx::NodeProto& source, std::string_view what,
                             const std::vector<int64_t>& numbers);
onnx::NodeProto ExpandNode(const onnx::NodeProto& source, int operand, std::string_view what);

class BatchFollower {
 public:
  // `in_file` is the model with the file's batch. It is kept as a reference.
  BatchFollower(const Model::Impl& in_file, BatchSizes sizes);

  int64_t wanted() const { return sizes_.wanted; }

  // Returns the changes to a node with these inputs, whose outputs are not known yet. `prefix` is
  // the prefix of names in the node's scope.
  FollowedNode Follow(const Model::Impl& model, const onnx::NodeProto& node,
                      const std::vector<ValueIndex>& inputs, const std::string& prefix);
  // True if an operation reads a value that depends on the batch size.
  bool ReadsBatch(const Model::Impl& model, const ModelOperation& operation) const;
  // Records where an operation's outputs hold the batch. Returns a fault, or "".
  std::string SetOutputs(const Model::Impl& model, const ModelOperation& operation);
  // Adapts a type that only the file declares. Returns a fault, or "".
  std::string ChangeDeclared(const Model::Impl& model, const ModelOperation& operation,
                             onnx::TypeProto* type) const;

  // Decides that the constants which this failing operation depends on have the old batch.
  void RecordOldConstants(const Model::Impl& model, const ModelOperation& operation);
  // True if RecordOldConstants found new constants since the last call. Then the model must be read
  // again.
  bool FoundNewConstants() { return std::exchange(found_new_constants_, false); }

 private:
  // Returns the value in the model with the file's batch; null if no value has this name.
  const ModelValue* ValueInFile(const std::string& name) const;
  // Returns the axes in which a value differs from the one with the file's batch.
  std::vector<size_t> ChangedAxes(const ModelValue& value) const;
  // Returns the batch's place in a value whose axis `axis` has changed; nullopt if its size is not
  // a multiple of the batch.
  std::optional<BatchPlace> PlaceIn(const ModelValue& value, size_t axis) const;
  // Returns the operand's list if it is the same with both batches.
  const ConstantValue* FixedOperand(const Model::Impl& model, const std::vector<ValueIndex>& inputs,
                                    size_t operand) const;

  bool HasOldBatch(const Model::Impl& model, const ModelOperation& operation,
                   const ModelValue& output) const;

  void FollowReshape(const Model::Impl& model, const onnx::NodeProto& node,
                     const std::vector<ValueIndex>& inputs, const std::string& output,
                     FollowedNode* followed);
  void FollowAligned(const Model::Impl& model, const std::vector<ValueIndex>& inputs,
                     size_t operand, FollowedNode* followed) const;
  void FollowSlice(const Model::Impl& model, const onnx::NodeProto& node,
                   const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;
  void CheckGather(const Model::Impl& model, const onnx::NodeProto& node,
                   const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;
  void FollowConcat(const Model::Impl& model, const onnx::NodeProto& node,
                    const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;
  void FollowStates(const Model::Impl& model, const onnx::NodeProto& node,
                    const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;
  void ReplaceRecordedShape(const Model::Impl& model, const onnx::NodeProto& node,
                            const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;

  const BatchSizes sizes_;
  std::unordered_map<std::string_view, const ModelValue*> in_file_;
  // BatchPlace::step, for values whose batch is not the fastest part of its axis.
  std::unordered_map<std::string, int64_t> steps_;
  std::unordered_set<std::string> taken_;  // Outputs of operations with a changed shape.
  bool found_new_constants_ = false;
};

}  // namespace ckplan
