// The functions that a model defines, by name.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/onnx_pb.h"

namespace ckplan {

class ModelFunctions {
 public:
  explicit ModelFunctions(const onnx::ModelProto& model);

  // The function that the node calls; null if it is an operator.
  const onnx::FunctionProto* Find(const onnx::NodeProto& node) const;
  bool empty() const { return functions_.empty(); }

 private:
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
};

using CallAttributes = std::unordered_map<std::string, const onnx::AttributeProto*>;

// Whether one of its attributes is a graph: a branch or the body of a loop.
bool HoldsGraph(const onnx::NodeProto& node);
// Whether the node, which stands in a function, may refer to attributes of the function's call.
bool NeedsBinding(const onnx::NodeProto& node);
// Fills in the attributes of the enclosing function's call; those that the call leaves out go.
void BindAttributes(onnx::NodeProto& node, const CallAttributes& attributes);

// The empty name and "ai.onnx" are one domain.
const std::string& PlainDomain(const std::string& domain);
bool IsStandard(const onnx::NodeProto& node);

}  // namespace ckplan
