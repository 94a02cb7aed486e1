// The PyTorch operation that a node was exported from. `torch.onnx.export(dynamo=True)` writes it
// into the metadata of every node:
//
//   pkg.torch.onnx.fx_node  %silu : [num_users=1] =
//   call_function[target=torch.ops.aten.silu.default](…)
//
// or, of an operation that was decomposed before and noted by ckplan.torch.export,
//
//   ckplan.origin           huber_loss aten.huber_loss.default
//
// or, if that was removed, as the last entries of the lists that module_calls.h reads. All nodes
// exported for one operation have the same name there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/model_impl.h"

namespace ckplan {

struct Origin {
  std::string name;    // Name in the exported program: "silu_1".
  std::string target;  // The called operator, such as "aten.silu.default".

  bool is_known() const { return !name.empty(); }
  // True if it called an overload of this operator, such as "aten.silu".
  bool Is(std::string_view packet) const;
};

// Returns the operation's origin; unknown if neither its node nor the file node that it was
// expanded from has one.
Origin OriginOf(const Model::Impl& model, const ModelOperation& operation);

// True if the stack trace of the node's export contains this text.
bool TraceHas(const Model::Impl& model, const ModelOperation& operation, std::string_view text);

// True if the same line of Python code called all these operations, by the traces of their export,
// or if neither traces nor origins are known. The exporter decomposes some operations into others,
// which have origins of their own but the same trace.
bool AreFromOneLine(const Model::Impl& model, const std::vector<size_t>& operations);

// Returns the common origin of these operations; an unknown one if none has an origin; nullopt if
// they come from several operations.
std::optional<Origin> CommonOrigin(const Model::Impl& model, const std::vector<size_t>& operations);

}  // namespace ckplan
