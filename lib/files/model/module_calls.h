// Reads which module each node of a model comes from. PyTorch's exporters write it into the
// metadata of every node, as Python lists:
//
//   pkg.torch.onnx.name_scopes      ['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']
//   pkg.torch.onnx.class_hierarchy  ['…ResNet', '…Sequential', '…BasicBlock', '…Conv2d',
//                                    'aten.conv2d.default']
//
// The last entry of each is the operation itself. Calls are not numbered: consecutive nodes of a
// module count as one call, so two calls of a module in a row count as one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/model/model_impl.h"
#include "lib/problem/graph/origins.h"

namespace ckplan {

// Returns the strings in a Python list, or nullopt if the text is not such a list.
std::optional<std::vector<std::string>> ParsePythonStrings(std::string_view text);

// Returns the classes of the modules that contain the node, and of its operation; empty if unknown.
std::vector<std::string> ClassesOf(const onnx::NodeProto& node);

// `nodes` has the node of each operation of the model, or none. `node_count` is the number of
// nodes. The result is empty if no node names a module.
ModuleCalls ReadModuleCalls(const Model::Impl& model, const std::vector<NodeId>& nodes,
                            size_t node_count);

}  // namespace ckplan
