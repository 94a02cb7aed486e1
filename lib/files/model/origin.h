// The PyTorch operation that a node was exported from. `torch.onnx.export(dynamo=True)` writes it
// into the metadata of every node:
//
//   pkg.torch.onnx.fx_node  %silu : [num_users=1] =
//   call_function[target=torch.ops.aten.silu.default](…)
//
// or, if that was removed, as the last entries of the lists that module_calls.h reads. All nodes
// that were exported for one operation have the same name there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

struct Origin {
  std::string name;    // Name in the exported program: "silu_1".
  std::string target;  // What it called, such as "aten.silu.default".

  bool is_known() const { return !name.empty(); }
  // Returns whether it called an overload of this operator, such as "aten.silu".
  bool Is(std::string_view packet) const;
};

// The origin of the operation; unknown if neither its own node nor the file's node that it was
// expanded from names one.
Origin OriginOf(const Model::Impl& model, const ModelOperation& operation);

// Returns whether the stack trace with which the node was exported has this text.
bool TraceHas(const Model::Impl& model, const ModelOperation& operation, std::string_view text);

// Returns the origin that all these operations have; an unknown one if none of them has any;
// nothing if they were several operations.
std::optional<Origin> CommonOrigin(const Model::Impl& model, const std::vector<size_t>& operations);

}  // namespace ckplan
