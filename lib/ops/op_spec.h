// What a node computes, free of ONNX: all that the planner and a backend learn of an operator.
//
// Operators, attributes and the meaning of their positions are those of ONNX, at the opset that the
// spec names; defaults of attributes are filled in where the operator's schema has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/tensor_type.h"

namespace ckplan {

// The types that backends hold. Every floating-point tensor of a model is computed in float32, and
// stored as that or, if it depends on the batch and --bf16 is given, as bfloat16; see
// docs/executor.md.
enum class ElementType : uint8_t { kFloat32, kBFloat16, kInt32, kInt64, kBool };

std::string_view NameOf(ElementType type);
int64_t SizeOf(ElementType type);  // Bytes of one element: 4, 2, 4, 8, 1.
constexpr bool IsFloat(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kBFloat16;
}

TensorType TensorTypeOf(ElementType type);

// Row-major contents of a small tensor: shapes, axes, pads. One of the two is filled.
struct KnownValue {
  std::vector<int64_t> ints;  // Integers, and booleans as 0 and 1.
  std::vector<double> reals;  // Floating-point numbers.
};

// What the planner counts a tensor as: its type in the model, which may be one that no backend
// holds, and its bytes as it would be stored, which --activation-type decides for activations.
struct PlannedTensor {
  TensorType type = TensorType::kUndefined;
  int64_t bytes = 0;
};

// An input or output of an operator.
struct Operand {
  bool is_present = false;  // An optional one may be left out; all else is then meaningless.
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;  // Empty: a scalar.
  // An input: backward will be asked for its gradient. An output: its gradient arrives there.
  bool has_gradient = false;
  // Backward may read its contents. What is not read is not there: the pointer is null.
  // Inputs that are constant during the step can always be read.
  bool is_read_by_backward = false;
  std::optional<KnownValue> known;  // Its contents, where they are known before the step.
  // In the specs that the planner asks about, in place of `type`; absent in those that are run.
  std::optional<PlannedTensor> planned;

  int64_t elements() const;
  int64_t bytes() const { return planned ? planned->bytes : elements() * SizeOf(type); }
  TensorType model_type() const { return planned ? planned->type : TensorTypeOf(type); }
};

using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, KnownValue>;

struct OpSpec {
  std::string name;  // The name of the node, for messages.
  std::string type;  // "Conv"; "domain.Type" outside ONNX's own domain.
  int64_t opset = 0;
  std::map<std::string, AttributeValue, std::less<>> attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  // Bytes of what forward saves beside the outputs for backward, such as a BatchNormalization's
  // mean and inverse deviation or a pooling's indices; 0 where nothing is saved.
  int64_t statistic_bytes = 0;
  // The type of numbers that are saved beside the outputs and belong to no operand: gates and
  // probabilities. Kernels compute them in float32; PyTorch on the CPU in the type of the model.
  TensorType saved_type = TensorType::kFloat32;

  // Positions beyond the last are absent operands.
  const Operand& input(size_t position) const;
  const Operand& output(size_t position) const;
  int64_t Int(std::string_view attribute, int64_t otherwise) const;
  double Float(std::string_view attribute, double otherwise) const;
  std::string String(std::string_view attribute, std::string_view otherwise) const;
  // Empty where the attribute is absent.
  std::vector<int64_t> Ints(std::string_view attribute) const;
  bool Has(std::string_view attribute) const;
};

// kInvalidInput: the operands or attributes of the operator contradict each other, so that no
// program could run it. `what` says which and how, with the numbers. Names the node.
Error InvalidOp(const OpSpec& spec, std::string_view what);
// kUnsupported: the operator is valid, but `what` of it is not supported by `backend`.
Error UnsupportedOp(const OpSpec& spec, std::string_view backend, std::string_view what);
// kUnsupported, by every backend.
Error UnsupportedOp(const OpSpec& spec, std::string_view what);

}  // namespace ckplan
