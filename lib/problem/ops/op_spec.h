// Describes what a node computes, without ONNX's types, for the planner and the backends.
//
// Names of operators and attributes and the order of operands are those of ONNX in the spec's
// opset. Attributes are set to the defaults of the operator's schema.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// The types of a model's tensors, including types that no backend supports. The numbers are those
// of ONNX's TensorProto.DataType.
enum class TensorType : uint8_t {
  kUndefined = 0,
  kFloat32 = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kFloat64 = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// Returns kUndefined for an unknown number.
TensorType TensorTypeOf(int32_t number);

// Returns the bits of one element, or 0 for strings and kUndefined. Elements smaller than a byte
// are packed.
int64_t BitsOf(TensorType type);

// Returns true for real and complex floating-point types of any width.
bool IsFloat(TensorType type);

// The types that backends support. Backends compute every floating-point tensor in float32 and
// store it as float32 or, with --bf16 and if it depends on the batch, as bfloat16; see
// docs/executor.md.
enum class ElementType : uint8_t { kFloat32, kBFloat16, kInt32, kInt64, kBool };

std::string_view NameOf(ElementType type);
int64_t SizeOf(ElementType type);  // Bytes of one element: 4, 2, 4, 8, 1.
constexpr bool IsFloat(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kBFloat16;
}

TensorType TensorTypeOf(ElementType type);

// The row-major contents of a small tensor, such as a shape, axes or pads, in one of the two
// vectors.
struct KnownValue {
  std::vector<int64_t> ints;  // Integers, and booleans as 0 and 1.
  std::vector<double> reals;  // Floating-point numbers.
};

// A tensor as the planner counts it: its type in the model, which backends may not support, and its
// bytes. For activations, --activation-type determines the bytes.
struct PlannedTensor {
  TensorType type = TensorType::kUndefined;
  int64_t bytes = 0;
};

// An input or output of an operator.
struct Operand {
  // False for an omitted optional operand; the other members are then meaningless.
  bool is_present = false;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;  // Empty: a scalar.
  // For an input: its gradient is requested from backward. For an output: backward receives its
  // gradient.
  bool has_gradient = false;
  // True if backward may read the contents; otherwise it gets a null pointer. Always true for
  // inputs that are constant during the step.
  bool is_read_by_backward = false;
  std::optional<KnownValue> known;  // The contents, if known before the step.
  // Replaces `type` in the planner's specs; absent in specs for backends.
  std::optional<PlannedTensor> planned;
  // True if the channels (the second of four axes) are the last axis in memory; see layout.h.
  // `dims` keeps the model's order.
  bool is_channels_last = false;

  int64_t elements() const;
  int64_t bytes() const { return planned ? planned->bytes : elements() * SizeOf(type); }
  TensorType model_type() const { return planned ? planned->type : TensorTypeOf(type); }
};

using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                                    std::vector<double>, KnownValue>;

struct OpSpec {
  std::string name;  // The node's name, for messages.
  std::string type;  // "Conv"; "domain.Type" outside ONNX's own domain.
  int64_t opset = 0;
  std::map<std::string, AttributeValue, std::less<>> attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  // The bytes that forward saves for backward in addition to the outputs, such as a
  // BatchNormalization's mean and inverse standard deviation or a pool's indices.
  int64_t statistic_bytes = 0;
  // The type of saved values that are not operands, such as gates and probabilities. Our kernels
  // compute them in float32; PyTorch on the CPU uses the model's type.
  TensorType saved_type = TensorType::kFloat32;

  // Return an absent operand for a position beyond the last one.
  const Operand& input(size_t position) const;
  const Operand& output(size_t position) const;
  int64_t Int(std::string_view attribute, int64_t fallback) const;
  double Float(std::string_view attribute, double fallback) const;
  std::string String(std::string_view attribute, std::string_view fallback) const;
  // Returns an empty vector if the attribute is absent.
  std::vector<int64_t> Ints(std::string_view attribute) const;
  bool Has(std::string_view attribute) const;
};

// kInvalidInput: the operator's operands or attributes contradict each other. The message names the
// node; `what` describes the contradiction, with the sizes.
Error InvalidOp(const OpSpec& spec, std::string_view what);
// kUnsupported: the operator is valid, but `backend` does not support `what`.
Error UnsupportedOp(const OpSpec& spec, std::string_view backend, std::string_view what);
// kUnsupported: the operator is valid, but no backend supports `what`.
Error UnsupportedOp(const OpSpec& spec, std::string_view what);

}  // namespace ckplan
