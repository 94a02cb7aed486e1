#include "lib/model/constant.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "lib/base/checked.h"
#include "lib/ops/tensor_type.h"

namespace ckplan {

namespace {

using onnx::TensorProto;

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  double magnitude = 0;
  if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else if (exponent == 31) {
    magnitude = fraction == 0 ? HUGE_VAL : NAN;
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double BfloatToDouble(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <typename T>
std::vector<T> RawElements(const std::string& raw, size_t count) {
  std::vector<T> elements(count);
  if (count > 0) std::memcpy(elements.data(), raw.data(), count * sizeof(T));
  return elements;
}

template <typename T>
void ReadRawInts(const std::string& raw, size_t count, ConstantValue& value) {
  for (const T element : RawElements<T>(raw, count)) {
    value.ints.push_back(static_cast<int64_t>(element));
  }
}

void ReadRaw(const std::string& raw, size_t count, ConstantValue& value) {
  switch (value.elem_type) {
    case TensorProto::FLOAT:
      for (const float x : RawElements<float>(raw, count)) value.reals.push_back(x);
      break;
    case TensorProto::DOUBLE:
      value.reals = RawElements<double>(raw, count);
      break;
    case TensorProto::FLOAT16:
      for (const uint16_t x : RawElements<uint16_t>(raw, count)) {
        value.reals.push_back(HalfToDouble(x));
      }
      break;
    case TensorProto::BFLOAT16:
      for (const uint16_t x : RawElements<uint16_t>(raw, count)) {
        value.reals.push_back(BfloatToDouble(x));
      }
      break;
    case TensorProto::BOOL:
    case TensorProto::UINT8:
      return ReadRawInts<uint8_t>(raw, count, value);
    case TensorProto::INT8:
      return ReadRawInts<int8_t>(raw, count, value);
    case TensorProto::INT16:
      return ReadRawInts<int16_t>(raw, count, value);
    case TensorProto::UINT16:
      return ReadRawInts<uint16_t>(raw, count, value);
    case TensorProto::INT32:
      return ReadRawInts<int32_t>(raw, count, value);
    case TensorProto::UINT32:
      return ReadRawInts<uint32_t>(raw, count, value);
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return ReadRawInts<int64_t>(raw, count, value);
    default:
      break;
  }
}

void ReadTypedFields(const TensorProto& tensor, ConstantValue& value) {
  switch (value.elem_type) {
    case TensorProto::FLOAT:
      value.reals.assign(tensor.float_data().begin(), tensor.float_data().end());
      break;
    case TensorProto::DOUBLE:
      value.reals.assign(tensor.double_data().begin(), tensor.double_data().end());
      break;
    case TensorProto::FLOAT16:
      for (const int32_t x : tensor.int32_data()) {
        value.reals.push_back(HalfToDouble(static_cast<uint16_t>(x)));
      }
      break;
    case TensorProto::BFLOAT16:
      for (const int32_t x : tensor.int32_data()) {
        value.reals.push_back(BfloatToDouble(static_cast<uint16_t>(x)));
      }
      break;
    case TensorProto::INT64:
      value.ints.assign(tensor.int64_data().begin(), tensor.int64_data().end());
      break;
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      for (const uint64_t x : tensor.uint64_data()) value.ints.push_back(static_cast<int64_t>(x));
      break;
    default:
      value.ints.assign(tensor.int32_data().begin(), tensor.int32_data().end());
      break;
  }
}

bool IsFoldedType(int32_t elem_type) {
  switch (elem_type) {
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
    case TensorProto::BOOL:
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::INT32:
    case TensorProto::UINT32:
    case TensorProto::INT64:
    case TensorProto::UINT64:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<int64_t> ElementCount(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    const auto product = CheckedMul(count, dim);
    if (dim < 0 || !product.has_value()) return std::nullopt;
    count = *product;
  }
  return count;
}

std::optional<int64_t> TensorBytes(int32_t elem_type, const Dims& dims) {
  const int64_t bits = BitsOf(TensorTypeOf(elem_type));
  const auto count = ElementCount(dims);
  if (bits == 0 || !count.has_value()) return std::nullopt;
  if (bits >= 8) return CheckedMul(*count, bits / 8);
  const int64_t per_byte = 8 / bits;
  return *count / per_byte + (*count % per_byte != 0 ? 1 : 0);
}

bool IsFloatType(int32_t elem_type) { return IsFloat(TensorTypeOf(elem_type)); }

std::string TypeText(int32_t elem_type, const Dims& dims) {
  std::string text = TensorProto::DataType_IsValid(elem_type)
                         ? TensorProto::DataType_Name(static_cast<TensorProto::DataType>(elem_type))
                         : "unknown";
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  text += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + ']';
}

std::optional<ConstantValue> ReadTensor(const TensorProto& tensor) {
  ConstantValue value;
  value.elem_type = tensor.data_type();
  value.dims.assign(tensor.dims().begin(), tensor.dims().end());
  const auto count = ElementCount(value.dims);
  if (!count.has_value() || *count > kMaxFoldedElements || !IsFoldedType(value.elem_type) ||
      tensor.data_location() == TensorProto::EXTERNAL) {
    return std::nullopt;
  }
  const auto size = static_cast<size_t>(*count);
  if (tensor.has_raw_data()) {
    const auto bytes = TensorBytes(value.elem_type, value.dims);
    if (tensor.raw_data().size() != static_cast<size_t>(*bytes)) return std::nullopt;
    ReadRaw(tensor.raw_data(), size, value);
  } else {
    ReadTypedFields(tensor, value);
  }
  if (value.size() != size) return std::nullopt;
  return value;
}

TensorProto MakeTensor(const ConstantValue& value) {
  TensorProto tensor;
  tensor.set_data_type(value.elem_type);
  for (const int64_t dim : value.dims) tensor.add_dims(dim);
  switch (value.elem_type) {
    case TensorProto::FLOAT:
      for (const double x : value.reals) tensor.add_float_data(static_cast<float>(x));
      break;
    case TensorProto::DOUBLE:
      for (const double x : value.reals) tensor.add_double_data(x);
      break;
    case TensorProto::INT64:
      for (const int64_t x : value.ints) tensor.add_int64_data(x);
      break;
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      for (const int64_t x : value.ints) tensor.add_uint64_data(static_cast<uint64_t>(x));
      break;
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      break;  // No shape rule of ONNX reads these; the tensor stays without contents.
    default:
      for (const int64_t x : value.ints) tensor.add_int32_data(static_cast<int32_t>(x));
      break;
  }
  return tensor;
}

void NormalizeToType(ConstantValue& value) {
  switch (value.elem_type) {
    case TensorProto::FLOAT:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      for (double& x : value.reals) x = static_cast<double>(static_cast<float>(x));
      break;
    case TensorProto::BOOL:
      for (int64_t& x : value.ints) x = x != 0 ? 1 : 0;
      break;
    case TensorProto::INT32:
      for (int64_t& x : value.ints) x = static_cast<int32_t>(x);
      break;
    case TensorProto::UINT8:
      for (int64_t& x : value.ints) x = static_cast<uint8_t>(x);
      break;
    case TensorProto::INT8:
      for (int64_t& x : value.ints) x = static_cast<int8_t>(x);
      break;
    case TensorProto::INT16:
      for (int64_t& x : value.ints) x = static_cast<int16_t>(x);
      break;
    case TensorProto::UINT16:
      for (int64_t& x : value.ints) x = static_cast<uint16_t>(x);
      break;
    case TensorProto::UINT32:
      for (int64_t& x : value.ints) x = static_cast<uint32_t>(x);
      break;
    default:
      break;
  }
}

}  // namespace ckplan
