// Describes what a node computes without ONNX's types. The planner and the backends know an
// operator only by this description.
//
// Names of operators and attributes, and the order of operands, are those of ONNX in the opset that
// the spec names. Defaults of attributes are filled in where the operator's schema has them.
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

// The types that a tensor of a model can have, including types that no backend can hold.

// The numbers are those of TensorProto.DataType in ONNX files.
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

// Returns kUndefined for a number that stands for none of these types.
TensorType TensorTypeOf(int32_t number);

// Returns the bits of one element, or 0 for types without a fixed size: strings and kUndefined.
// Elements smaller than a byte are packed.
int64_t BitsOf(TensorType type);

// Returns whether the type is a real or complex floating-point number of any width.
bool IsFloat(TensorType type);

// The types that backends can hold. Every floating-point tensor of a model is computed in float32.
// It is stored as float32 or, if it depends on the batch and --bf16 is given, as bfloat16; see
// docs/executor.md.
enum class ElementType : uint8_t { kFloat32, kBFloat16, kInt32, kInt64, kBool };

std::string_view NameOf(ElementType type);
int64_t SizeOf(ElementType type);  // Bytes of one element: 4, 2, 4, 8, 1.
constexpr bool IsFloat(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kBFloat16;
}

TensorType TensorTypeOf(ElementType type);

// Row-major contents of a small tensor, such as shapes, axes or pads. Only one of the two vectors
// is filled.
struct KnownValue {
  std::vector<int64_t> ints;  // Integers, and booleans as 0 and 1.
  std::vector<double> reals;  // Floating-point numbers.
};

// How the planner counts a tensor: its type in the model, which may be one that no backend can
// hold, and the bytes that storing it takes. For activations, --activation-type decides the bytes.
struct PlannedTensor {
  TensorType type = TensorType::kUndefined;
  int64_t bytes = 0;
};

// An input or output of an operator.
struct Operand {
  // False if the operand is optional and left out; the other members then mean nothing.
  bool is_present = false;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;  // Empty: a scalar.
  // For an input: its gradient is requested from backward. For an output: backward receives its
  // gradient.
  bool has_gradient = false;
  // Whether backward may read its contents. If not, backward gets a null pointer for it. Inputs
  // that are constant during the step can always be read.
  bool is_read_by_backward = false;
  std::optional<KnownValue> known;  // Its contents, where they are known before the step.
  // Used in place of `type` in specs that the planner makes; absent in specs that are run.
  std::optional<PlannedTensor> planned;
  // Whether the elements lie in memory with the channels, the second of four axes, after all
  // others; see layout.h. `dims` are those of the model all the same.
  bool is_channels_last = false;

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
  // Bytes that forward saves for backward in addition to the outputs, such as a
  // BatchNormalization's mean and inverse standard deviation or a pooling's indices; 0 if nothing
  // is saved.
  int64_t statistic_bytes = 0;
  // The type of saved numbers that belong to no operand, such as gates and probabilities. Kernels
  // compute them in float32; PyTorch on the CPU computes them in the model's type.
  TensorType saved_type = TensorType::kFloat32;

  // Returns an absent operand for a position beyond the last operand.
  const Operand& input(size_t position) const;
  const Operand& output(size_t position) const;
  int64_t Int(std::string_view attribute, int64_t otherwise) const;
  double Float(std::string_view attribute, double otherwise) const;
  std::string String(std::string_view attribute, std::string_view otherwise) const;
  // Returns an empty vector if the attribute is absent.
  std::vector<int64_t> Ints(std::string_view attribute) const;
  bool Has(std::string_view attribute) const;
};

// kInvalidInput: the operands or attributes of the operator contradict each other, so that no
// program could run it. The message names the node; `what` is the contradiction, with the sizes
// involved.
Error InvalidOp(const OpSpec& spec, std::string_view what);
// kUnsupported: the operator is valid, but `backend` does not support `what`.
Error UnsupportedOp(const OpSpec& spec, std::string_view backend, std::string_view what);
// kUnsupported: the operator is valid, but no backend supports `what`.
Error UnsupportedOp(const OpSpec& spec, std::string_view what);

}  // namespace ckplan
