// The parameters and buffers of a model: what they are used for, which of its numbers are none, and
// the nodes that read them.
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

// Finds out what parameters and integers are used for. This determines sensible contents for those
// whose contents the file lacks.
enum class ParameterUse { kWeight, kScale, kShift, kEmbedding, kOther };

struct UsedAs {
  ParameterUse use = ParameterUse::kOther;
  int64_t fan_in = 1;  // For a weight: the number of products that are summed into one output.
};

// Returns how `operation` uses the parameter of shape `dims` that is its input at `position`.
UsedAs UseOf(const ModelOperation& operation, size_t position, const std::vector<int64_t>& dims);

// Returns, for each value of the model, a bound such that all its elements are indices below it; 0
// if no bound is known.
std::vector<int64_t> IndexBounds(const Model::Impl& model);

// Tells numbers that a program is written with from scalars that are trained, where a file has both
// as initializers of one element.

// Returns whether an initializer of one element is a plain number: an exporter or an optimizer has
// named it as it names constants, not as a model names its parameters. Contents do not count, since
// they change in training.
//
//   val_61, onnx::Mul_12, 345                        PyTorch's exporters
//   /attn/Constant_3_output_0, ortshared_1_0_1_0     Constant nodes that ONNX Runtime or onnxsim
//   moved const_fold_opt__36, model/mul/y:0, Mu_Mulcst     tf2onnx, TensorFlow, skl2onnx
bool IsPlainNumber(const ModelValue& value);

// Lists everything that ModelFacts::parameters counts. A node also counts as a reader of a
// parameter if it reads a value computed from it before the step, such as its transpose.
// `node_of_operation` is as in ModelGraph. The time is linear in nodes and in the constants that
// they depend on.
std::vector<Parameter> ListParameters(const Model::Impl& model, const ModelFacts& facts,
                                      const std::vector<NodeId>& node_of_operation);

}  // namespace ckplan
