// The only decoder of TensorProto. Visits the elements one by one, wherever the tensor stores them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "lib/problem/ops/bfloat16.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

// Decodes float16 (IEEE binary16). Only weights are read in this type; nothing is computed in it.
constexpr float FromFloat16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {  // Zero or a subnormal number: the mantissa counts units of 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t bits =
      exponent == 31 ? 0x7F800000U | (mantissa << 13) : ((exponent + 112) << 23) | (mantissa << 13);
  return std::bit_cast<float>(sign | bits);
}

// Reads `bytes` as consecutive values of type T. Returns false unless they are exactly `count`
// values.
template <typename T, typename Take>
bool VisitValues(std::string_view bytes, int64_t count, const Take& take) {
  if (bytes.size() / sizeof(T) != static_cast<size_t>(count) || bytes.size() % sizeof(T) != 0) {
    return false;
  }
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    take(value);
  }
  return true;
}

// Calls `take` with each of `count` little-endian elements, as stored in raw_data and external
// files: with a float for float16 and bfloat16, otherwise with the element's C++ type. Returns
// false if the size does not match `count` elements, or if the type is neither boolean nor a number
// of whole bytes.
template <typename Take>
bool VisitRawElements(int32_t type, std::string_view bytes, int64_t count, const Take& take) {
  using onnx::TensorProto;
  switch (type) {
    case TensorProto::FLOAT:
      return VisitValues<float>(bytes, count, take);
    case TensorProto::DOUBLE:
      return VisitValues<double>(bytes, count, take);
    case TensorProto::FLOAT16:
      return VisitValues<uint16_t>(bytes, count, [&](uint16_t x) { take(FromFloat16(x)); });
    case TensorProto::BFLOAT16:
      return VisitValues<uint16_t>(bytes, count, [&](uint16_t x) { take(FromBFloat16(x)); });
    case TensorProto::BOOL:
    case TensorProto::UINT8:
      return VisitValues<uint8_t>(bytes, count, take);
    case TensorProto::INT8:
      return VisitValues<int8_t>(bytes, count, take);
    case TensorProto::INT16:
      return VisitValues<int16_t>(bytes, count, take);
    case TensorProto::UINT16:
      return VisitValues<uint16_t>(bytes, count, take);
    case TensorProto::INT32:
      return VisitValues<int32_t>(bytes, count, take);
    case TensorProto::UINT32:
      return VisitValues<uint32_t>(bytes, count, take);
    case TensorProto::INT64:
      return VisitValues<int64_t>(bytes, count, take);
    case TensorProto::UINT64:
      return VisitValues<uint64_t>(bytes, count, take);
    default:
      return false;
  }
}

template <typename List, typename Take>
bool VisitList(const List& list, int64_t count, const Take& take) {
  if (list.size() != count) return false;
  for (const auto element : list) take(element);
  return true;
}

// Calls `take` with each of `count` elements of the tensor's typed lists, some of which store
// elements of several types.
template <typename Take>
bool VisitListedElements(const onnx::TensorProto& tensor, int64_t count, const Take& take) {
  using onnx::TensorProto;
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return VisitList(tensor.float_data(), count, take);
    case TensorProto::DOUBLE:
      return VisitList(tensor.double_data(), count, take);
    case TensorProto::FLOAT16:
      return VisitList(tensor.int32_data(), count,
                       [&](int32_t x) { take(FromFloat16(static_cast<uint16_t>(x))); });
    case TensorProto::BFLOAT16:
      return VisitList(tensor.int32_data(), count,
                       [&](int32_t x) { take(FromBFloat16(static_cast<uint16_t>(x))); });
    case TensorProto::INT64:
      return VisitList(tensor.int64_data(), count, take);
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return VisitList(tensor.uint64_data(), count, take);
    case TensorProto::BOOL:
    case TensorProto::UINT8:
    case TensorProto::INT8:
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::INT32:
      return VisitList(tensor.int32_data(), count, take);
    default:
      return false;
  }
}

// Visits the elements in the tensor itself. Also returns false if they are in another file or
// omitted.
template <typename Take>
bool VisitElements(const onnx::TensorProto& tensor, int64_t count, const Take& take) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return false;
  if (tensor.has_raw_data()) {
    return VisitRawElements(tensor.data_type(), tensor.raw_data(), count, take);
  }
  return VisitListedElements(tensor, count, take);
}

}  // namespace ckplan
