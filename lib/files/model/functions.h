// The functions that a model defines, by name.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/onnx_pb.h"

namespace ckplan {

class ModelFunctions {
 public:
  explicit ModelFunctions(const onnx::ModelProto& model);

  // Returns the function that the node calls; null if the node is an operator.
  const onnx::FunctionProto* Find(const onnx::NodeProto& node) const;
  bool empty() const { return functions_.empty(); }

 private:
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
};

using CallAttributes = std::unordered_map<std::string, const onnx::AttributeProto*>;

// Returns whether one of the node's attributes is a graph: a branch or the body of a loop.
bool HoldsGraph(const onnx::NodeProto& node);
// Returns whether the node, which is in a function, may refer to attributes of the function's call.
bool NeedsBinding(const onnx::NodeProto& node);
// Fills in the attributes from the enclosing function's call, and removes those that the call
// leaves out.
void BindAttributes(onnx::NodeProto& node, const CallAttributes& attributes);

// Returns the domain with "ai.onnx" replaced by the empty name, which means the same.
const std::string& PlainDomain(const std::string& domain);
bool IsStandard(const onnx::NodeProto& node);

}  // namespace ckplan
