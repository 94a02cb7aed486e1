// The types that a tensor of a model can have, including types that no backend can hold.
#pragma once

#include <cstdint>

namespace ckplan {

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

}  // namespace ckplan
