// Gives every batch input a concrete shape, from the sizes of symbolic dimensions and from
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

// An input outside the batch, also with concrete dimensions.
struct KnownInput {
  std::string name;
  onnx::TypeProto type;
  std::optional<ConstantValue> contents;  // nullopt for a parameter.
};

struct BoundDims {
  std::map<std::string, int64_t> dims;  // Including sizes that follow from an overridden
                                        // shape.
  std::vector<BoundInput> inputs;       // Those of the batch.
  std::vector<KnownInput> known;        // Parameters, and inputs with set values.
  // Text, sequences and similar inputs, whose readers can't be planned. Their shapes may be open.
  std::vector<const onnx::ValueInfoProto*> not_numbers;
  int64_t batch = 0;  // Replaces the file's batch size; 0: keeps it.
};

// Fails like LoadModel. `file` names the model in messages.
Result<BoundDims> BindDims(const onnx::GraphProto& graph, const InputUses& uses,
                           const LoadOptions& options, const std::string& file);

// Fills in dimensions whose names are bound or are expressions (dim_expression.h) of bound names.
// Returns false if a dimension remains unknown.
bool FillDims(onnx::TypeProto& type, const std::map<std::string, int64_t>& dims);

// Returns the name as messages show it: shortened if long, with "?" for unprintable characters.
std::string ShortName(const std::string& name);
// Returns a text such as "a, b, c and 7 more".
std::string ShortList(const std::vector<std::string>& items, size_t most = 10);

}  // namespace ckplan
