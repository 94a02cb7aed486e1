// Gives every input of the batch a concrete shape, from the sizes of symbolic dimensions and from
// overridden shapes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/model.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct InputUses;

struct BoundInput {
  const onnx::ValueInfoProto* input = nullptr;
  onnx::TypeProto type;  // All dimensions are numbers.
};

// An input that is not part of the batch; its dimensions are numbers as well.
struct KnownInput {
  std::string name;
  onnx::TypeProto type;
  std::optional<ConstantValue> contents;  // Nothing for a parameter.
};

struct BoundDims {
  std::map<std::string, int64_t> dims;  // These include the sizes that follow from an overridden
                                        // shape.
  std::vector<BoundInput> inputs;       // Those of the batch.
  std::vector<KnownInput> known;        // Parameters, and inputs that are set.
  // Text, sequences and the like: nothing that reads them can be planned. Shapes may be open.
  std::vector<const onnx::ValueInfoProto*> not_numbers;
  int64_t batch = 0;  // The batch that replaces the one in the file; 0: none does.
};

// Errors are those that LoadModel documents. `file` names the model in messages.
Result<BoundDims> BindDims(const onnx::GraphProto& graph, const InputUses& uses,
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
