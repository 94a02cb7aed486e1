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

// The empty name and "ai.onnx" are one domain.
const std::string& PlainDomain(const std::string& domain);
bool IsStandard(const onnx::NodeProto& node);

}  // namespace ckplan
