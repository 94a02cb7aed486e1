// The parameters and buffers of a model: how they are used, which numbers are not parameters, and
// which nodes read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/files/model/model.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {

struct ModelFacts;
struct ModelOperation;
struct ModelValue;

// How parameters and integers are used. This determines sensible contents for those whose contents
// the file lacks.
enum class ParameterUse { kWeight, kScale, kShift, kEmbedding, kOther };

struct UsedAs {
  ParameterUse use = ParameterUse::kOther;
  int64_t fan_in = 1;  // For a weight: the number of products that are summed into one output.
};

// Returns how `operation` uses its input at `position`, a parameter of shape `dims`.
UsedAs UseOf(const ModelOperation& operation, size_t position, const std::vector<int64_t>& dims);

// Returns, for each value of the model, a bound that all its elements, used as indices, are below;
// 0 if unknown.
std::vector<int64_t> IndexBounds(const Model::Impl& model);

// Distinguishes numbers of a program from trained scalars, in files where both are initializers
// with one element.

// True if an initializer with one element is a plain number: an exporter or an optimizer named it
// like a constant, not like a parameter. Contents don't matter, because they change in training.
//
//   val_61, onnx::Mul_12, 345                        PyTorch's exporters
//   /attn/Constant_3_output_0, ortshared_1_0_1_0     Constant nodes that ONNX Runtime or onnxsim
//   moved const_fold_opt__36, model/mul/y:0, Mu_Mulcst     tf2onnx, TensorFlow, skl2onnx
bool IsPlainNumber(const ModelValue& value);

// Lists everything that ModelFacts::parameters counts. A node also counts as a reader of a
// parameter if it reads a value computed from it before the step, such as its transpose.
// `node_of_operation` is as in ModelGraph. The time is linear in the number of nodes and of
// constants that they depend on.
std::vector<Parameter> ListParameters(const Model::Impl& model, const ModelFacts& facts,
                                      const std::vector<NodeId>& node_of_operation);

}  // namespace ckplan
