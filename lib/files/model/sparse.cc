#include "lib/files/model/sparse.h"

#include <cstddef>
#include <utility>

#include "lib/files/model/tensor_elements.h"

namespace ckplan {

namespace {

// Returns nothing if an index lies outside the dimensions.
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
  // Each index takes a byte or more of the file, so this limits what is allocated.
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
