// Follows the batch through a model whose file has one size of it burnt in, so that the model can
// be read with another size.
//
//   x float[1,136,28,28] ─ Reshape [1,4,34,28,28] ─▶ float[1,4,34,28,28]      as in the file
//   x float[8,136,28,28] ─ Reshape [8,4,34,28,28] ─▶ float[8,4,34,28,28]      with a batch of 8
//
// The model is read twice: as it is, and with the new size of its inputs. A dimension that differs
// between the two readings holds the batch, so the batch is known at every operation, and a
// constant is only changed where the batch meets it. A constant that no batch meets, such as the
// shape of a weight, stays as it is. Three kinds of constants are changed:
//
//   - shapes that an operation gives its input: Reshape, Expand, Resize, MaxUnpool, and Slices that
//     take the whole batch;
//   - operands of a Concat and initial states of an LSTM, GRU or RNN, which have a 1 where the
//   others
//     have the batch: they are expanded;
//   - shapes that are made of nothing, by ConstantOfShape, Expand, Tile or a random operator, if an
//     operation fails because they have the old batch, which then is above 1. They are found from
//     the failing operation, so the model is read once more.
//
// Everything else, and every case with two answers, is refused by the name of the node.
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

// Where the batch goes when an array is reshaped, read from the two shapes at one batch.
//
//   [8,128,768] → [1024,768] → [1024,12,64]     the batch becomes a part of the first axis
//   [50,1,768]  → [50,12,64]                    a batch of 1: of axis 1, since axis 0 is as it was
//
// The elements of one sample are as far from those of the next before as after. With a batch above
// 1 at most one axis fits. A batch of 1 is an axis of its own wherever an axis of 1 has that
// distance. Elsewhere it lies between two axes, and the shapes decide to which of them it belongs:
// the last axis, of features, never has it; else it is not of the axes that are as before.

// Returns the product of the dimensions after `axis`.
int64_t ElementsWithin(const Dims& dims, size_t axis);

struct BatchPlace {
  size_t axis = 0;  // The axis of the array that holds the batch.
  // The number of elements of this axis between one sample and the next: 1 if the batch is the
  // whole axis or its fastest part.
  int64_t step = 1;

  bool operator==(const BatchPlace&) const = default;
};

// Returns the place in `to` on that axis, if the batch may be there: see PlaceAfterReshape.
std::optional<BatchPlace> PlaceOnAxis(const Dims& from, BatchPlace place, const Dims& to,
                                      size_t axis, int64_t batch);

// Returns the place of a batch of `batch` in `to`, given its place in `from`; both arrays have the
// same elements, and at least one. Returns nothing if several places, or none, are possible.
std::optional<BatchPlace> PlaceAfterReshape(const Dims& from, BatchPlace place, const Dims& to,
                                            int64_t batch);

struct BatchSizes {
  int64_t in_file = 0;
  int64_t wanted = 0;
};

// What an operation reads instead of what the file has.
struct FollowedNode {
  struct List {
    size_t operand = 0;
    std::vector<int64_t> numbers;
  };
  std::vector<List> lists;              // Operands that are lists of numbers.
  std::vector<List> expanded;           // Operands that are expanded to these dimensions.
  std::optional<onnx::NodeProto> node;  // The node with other attributes.
  std::string fault;                    // Why the node does not take the batch; empty if it does.
};

// Make the nodes by which operands of `source` are replaced: a list of numbers, and its operand
// expanded to the dimensions that such a list, made for the same `what`, holds.
onnx::NodeProto ConstantNode(const onnx::NodeProto& source, std::string_view what,
                             const std::vector<int64_t>& numbers);
onnx::NodeProto ExpandNode(const onnx::NodeProto& source, int operand, std::string_view what);

class BatchFollower {
 public:
  // `in_file` is the model with the batch of its file. It is kept as a reference.
  BatchFollower(const Model::Impl& in_file, BatchSizes sizes);

  int64_t wanted() const { return sizes_.wanted; }

  // Returns the changes of a node with these inputs, whose outputs are not known yet. `prefix` is
  // that of the names which the node's scope makes.
  FollowedNode Follow(const Model::Impl& model, const onnx::NodeProto& node,
                      const std::vector<ValueIndex>& inputs, const std::string& prefix);
  // Returns whether an operation reads a value that depends on the size of the batch.
  bool ReadsBatch(const Model::Impl& model, const ModelOperation& operation) const;
  // Takes note of where an operation's outputs hold the batch. Returns a fault, or "".
  std::string SetOutputs(const Model::Impl& model, const ModelOperation& operation);
  // Changes a type that only the file declares. Returns a fault, or "".
  std::string ChangeDeclared(const Model::Impl& model, const ModelOperation& operation,
                             onnx::TypeProto* type) const;

  // Decides that the constants which this failing operation is computed from have the old batch.
  void TakeConstantsOf(const Model::Impl& model, const ModelOperation& operation);
  // Returns whether there were constants that had not been decided on since it was last asked: then
  // the model must be read again.
  bool TookConstants() { return std::exchange(took_constants_, false); }

 private:
  // Returns the value in the model with the batch of the file; null if it has none of that name.
  const ModelValue* InFile(const std::string& name) const;
  // Returns the axes in which a value differs from the one with the batch of the file.
  std::vector<size_t> ChangedAxes(const ModelValue& value) const;
  // Returns where the batch is in a value, whose axis `axis` has changed; nothing if its size is
  // not a multiple of the batch.
  std::optional<BatchPlace> PlaceIn(const ModelValue& value, size_t axis) const;
  // Returns the list of an operand that is the same with both batches.
  const ConstantValue* BurntIn(const Model::Impl& model, const std::vector<ValueIndex>& inputs,
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
  void FollowTaken(const Model::Impl& model, const onnx::NodeProto& node,
                   const std::vector<ValueIndex>& inputs, FollowedNode* followed) const;

  const BatchSizes sizes_;
  std::unordered_map<std::string_view, const ModelValue*> in_file_;
  // For values whose batch is not the slowest part of its axis: BatchPlace::step.
  std::unordered_map<std::string, int64_t> steps_;
  std::unordered_set<std::string> taken_;  // Outputs of operations whose constant shape is changed.
  bool took_constants_ = false;
};

}  // namespace ckplan
