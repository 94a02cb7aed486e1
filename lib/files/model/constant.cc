#include "lib/files/model/constant.h"

#include <cstddef>
#include <type_traits>
#include <utility>

#include "lib/base/text.h"
#include "lib/base/units.h"
#include "lib/files/model/tensor_elements.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

using onnx::TensorProto;

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
  std::string text =
      TensorProto::DataType_IsValid(elem_type)
          ? LowerCase(TensorProto::DataType_Name(static_cast<TensorProto::DataType>(elem_type)))
          : "unknown";
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
  if (!count.has_value() || *count > kMaxFoldedElements) return std::nullopt;
  const bool is_whole = VisitElements(tensor, *count, [&value](auto element) {
    if constexpr (std::is_floating_point_v<decltype(element)>) {
      value.reals.push_back(static_cast<double>(element));
    } else {
      value.ints.push_back(static_cast<int64_t>(element));
    }
  });
  if (!is_whole) return std::nullopt;
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
      break;  // ONNX's shape rules never read these, so the tensor stays empty.
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

namespace {

// Returns nullopt if an index is out of range.
std::optional<int64_t> PositionOf(const int64_t* indices, const Dims& dims) {
  int64_t position = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (indices[axis] < 0 || indices[axis] >= dims[axis]) return std::nullopt;
    position = position * dims[axis] + indices[axis];
  }
  return position;
}

}  // namespace

std::optional<std::vector<int64_t>> SparsePositions(const onnx::SparseTensorProto& sparse) {
  const Dims dims(sparse.dims().begin(), sparse.dims().end());
  const std::optional<int64_t> elements = ElementCount(dims);
  const onnx::TensorProto& indices = sparse.indices();
  if (!elements || sparse.values().dims_size() != 1) return std::nullopt;
  const int64_t count = sparse.values().dims(0);
  const bool is_linear = indices.dims_size() == 1;
  const auto width = is_linear ? 1 : static_cast<int64_t>(dims.size());
  if (indices.dims_size() != (is_linear ? 1 : 2) || indices.dims(0) != count) return std::nullopt;
  if (!is_linear && indices.dims(1) != width) return std::nullopt;
  // Each index takes at least a byte of the file, so this limits the allocation.
  const std::optional<int64_t> numbers = ElementCount({count, width});
  if (!numbers || static_cast<size_t>(*numbers) > indices.ByteSizeLong()) return std::nullopt;
  std::vector<int64_t> listed;
  const bool is_whole = indices.data_type() == onnx::TensorProto::INT64 &&
                        VisitElements(indices, *numbers, [&listed](auto index) {
                          listed.push_back(static_cast<int64_t>(index));
                        });
  if (!is_whole) return std::nullopt;
  const Dims own_dims = is_linear ? Dims{*elements} : dims;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) {
    const auto position = PositionOf(listed.data() + i * width, own_dims);
    if (!position) return std::nullopt;
    positions.push_back(*position);
  }
  return positions;
}

std::optional<ConstantValue> ReadSparse(const onnx::SparseTensorProto& sparse) {
  Dims dims(sparse.dims().begin(), sparse.dims().end());
  const std::optional<int64_t> elements = ElementCount(dims);
  if (!elements || *elements > kMaxFoldedElements) return std::nullopt;
  const auto positions = SparsePositions(sparse);
  const auto listed = positions ? ReadTensor(sparse.values()) : std::nullopt;
  if (!listed || listed->size() != positions->size()) return std::nullopt;
  ConstantValue dense{listed->elem_type, std::move(dims), {}, {}};
  const auto count = static_cast<size_t>(*elements);
  if (dense.is_float()) {
    dense.reals.resize(count);
  } else {
    dense.ints.resize(count);
  }
  for (size_t i = 0; i < positions->size(); ++i) {
    const auto position = static_cast<size_t>((*positions)[i]);
    if (dense.is_float()) {
      dense.reals[position] = listed->reals[i];
    } else {
      dense.ints[position] = listed->ints[i];
    }
  }
  return dense;
}

}  // namespace ckplan
