// Gives every input of the batch a concrete shape, from the sizes of symbolic dimensions and from
// overridden shapes.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "lib/base/result.h"
#include "lib/model/constant.h"
#include "lib/model/model.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct BoundInput {
  const onnx::ValueInfoProto* input = nullptr;
  onnx::TypeProto type;  // All dimensions are numbers.
};

struct BoundDims {
  std::map<std::string, int64_t> dims;  // These include the sizes that follow from an overridden
                                        // shape.
  std::vector<BoundInput> inputs;       // Inputs of the graph that are not initializers.
  int64_t batch = 0;  // The batch that replaces the one in the file; 0: none does.
};

// Errors are those that LoadModel documents. `file` names the model in messages.
Result<BoundDims> BindDims(const onnx::GraphProto& graph,
                           const std::unordered_set<std::string>& initializers,
                           const LoadOptions& options, const std::string& file);

// Fills in the dimensions whose names are bound, or are expressions (dim_expression.h) of bound
// names; returns false if a dimension remains unknown.
bool FillDims(onnx::TypeProto& type, const std::map<std::string, int64_t>& dims);

// Returns the name as messages show it: shortened if it is long, and with "?" for what can't be
// printed.
std::string ShortName(const std::string& name);
// Returns a text such as "a, b, c and 7 more".
std::string ShortList(const std::vector<std::string>& items, size_t most = 10);

}  // namespace ckplan
