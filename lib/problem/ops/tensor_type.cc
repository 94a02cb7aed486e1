#include "lib/problem/ops/tensor_type.h"

namespace ckplan {

TensorType TensorTypeOf(int32_t number) {
  const bool is_known = number >= 0 && number <= static_cast<int32_t>(TensorType::kInt2);
  return is_known ? static_cast<TensorType>(number) : TensorType::kUndefined;
}

int64_t BitsOf(TensorType type) {
  switch (type) {
    case TensorType::kUndefined:
    case TensorType::kString:
      return 0;
    case TensorType::kUint2:
    case TensorType::kInt2:
      return 2;
    case TensorType::kUint4:
    case TensorType::kInt4:
    case TensorType::kFloat4E2M1:
      return 4;
    case TensorType::kBool:
    case TensorType::kInt8:
    case TensorType::kUint8:
    case TensorType::kFloat8E4M3FN:
    case TensorType::kFloat8E4M3FNUZ:
    case TensorType::kFloat8E5M2:
    case TensorType::kFloat8E5M2FNUZ:
    case TensorType::kFloat8E8M0:
      return 8;
    case TensorType::kInt16:
    case TensorType::kUint16:
    case TensorType::kFloat16:
    case TensorType::kBFloat16:
      return 16;
    case TensorType::kInt32:
    case TensorType::kUint32:
    case TensorType::kFloat32:
      return 32;
    case TensorType::kInt64:
    case TensorType::kUint64:
    case TensorType::kFloat64:
    case TensorType::kComplex64:
      return 64;
    case TensorType::kComplex128:
      return 128;
  }
  return 0;
}

bool IsFloat(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
    case TensorType::kFloat64:
    case TensorType::kFloat16:
    case TensorType::kBFloat16:
    case TensorType::kComplex64:
    case TensorType::kComplex128:
    case TensorType::kFloat8E4M3FN:
    case TensorType::kFloat8E4M3FNUZ:
    case TensorType::kFloat8E5M2:
    case TensorType::kFloat8E5M2FNUZ:
    case TensorType::kFloat8E8M0:
    case TensorType::kFloat4E2M1:
      return true;
    default:
      return false;
  }
}

}  // namespace ckplan
