// Edits the operations of a loaded model: replaces some and inserts new ones.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

class OperationEdits {
 public:
  explicit OperationEdits(Model::Impl& model) : model_(model) {}

  // Replaces the operation's node. The operation keeps its name, outputs and place in the file.
  void Replace(ModelOperation& operation, onnx::NodeProto node, std::vector<ValueIndex> inputs,
               int64_t opset);
  // Adds an attribute that ONNX does not know.
  void SetAttribute(ModelOperation& operation, const std::string& name, int64_t value);
  // Adds a value with the type and shape of another. Its name gets a suffix if taken.
  ValueIndex NewValue(const std::string& name, ValueIndex like);
  // Inserts a new operation before the operation `reader` once Insert is called. Until then, the
  // indices of operations stay the same.
  void InsertBefore(size_t reader, onnx::NodeProto node, std::string name,
                    std::vector<ValueIndex> inputs, std::vector<ValueIndex> outputs, int64_t opset);
  void Insert();

 private:
  const onnx::NodeProto* Keep(onnx::NodeProto node);

  Model::Impl& model_;
  std::vector<std::pair<size_t, ModelOperation>> inserted_;  // By ascending reader.
};

}  // namespace ckplan
