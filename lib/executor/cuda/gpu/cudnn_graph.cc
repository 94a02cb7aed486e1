#include "lib/executor/cuda/gpu/cudnn_graph.h"

#include <utility>

namespace ckplan::cuda {

namespace {

CudnnGraphBuilder::Axes PackedStrides(const CudnnGraphBuilder::Axes& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

std::vector<int64_t> ListOf(const CudnnGraphBuilder::Axes& axes) {
  return {axes.begin(), axes.end()};
}

}  // namespace

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Stored(int64_t id, cudnnDataType_t type,
                                                    const Axes& dims, const Axes& strides) {
  return Add(id, type, dims, strides, false, false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Number(int64_t id) {
  return Add(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Virtual(cudnnDataType_t type, const Axes& dims,
                                                     const Axes& strides) {
  return Add(next_id_++, type, dims, strides, true, false);
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Virtual(const Axes& dims, cudnnDataType_t type) {
  return Virtual(type, dims, PackedStrides(dims));
}

CudnnGraphBuilder::Tensor CudnnGraphBuilder::Add(int64_t id, cudnnDataType_t type, const Axes& dims,
                                                 const Axes& strides, bool is_virtual,
                                                 bool is_number) {
  CudnnDescriptor tensor(api_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, ListOf(dims))
      .Set(CUDNN_ATTR_TENSOR_STRIDES, ListOf(strides))
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  if (is_virtual) tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (is_number) tensor.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  Keep(std::move(tensor), tensors_);
  return tensors_.size() - 1;
}

void CudnnGraphBuilder::Multiply(Tensor a, Tensor b, Tensor product) {
  CudnnDescriptor how(api_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  Keep(std::move(how), parts_);
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[product])
      .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, parts_.back());
  Keep(std::move(operation), operations_);
}

void CudnnGraphBuilder::Apply(const Elementwise& operation) {
  CudnnDescriptor how(api_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, operation.mode)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, operation.computed_as);
  if (operation.axis >= 0) how.Set(CUDNN_ATTR_POINTWISE_AXIS, operation.axis);
  Keep(std::move(how), parts_);
  CudnnDescriptor made(api_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_.back())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[operation.x])
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[operation.result]);
  if (operation.y != kNone) {
    made.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[operation.y]);
  }
  if (operation.third != kNone) {
    made.Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[operation.third]);
  }
  Keep(std::move(made), operations_);
}

void CudnnGraphBuilder::Reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor result) {
  CudnnDescriptor reduction(api_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduction.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
  Keep(std::move(reduction), parts_);
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, parts_.back())
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x])
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[result]);
  Keep(std::move(operation), operations_);
}

void CudnnGraphBuilder::Reshape(Tensor x, Tensor result) {
  CudnnDescriptor operation(api_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensors_[x])
      .Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensors_[result]);
  Keep(std::move(operation), operations_);
}

Result<CudnnDescriptor> CudnnGraphBuilder::Finish(const CudnnTarget& target) {
  CKPLAN_RETURN_IF_ERROR(result_);
  return MakeOperationGraph(api_, target, operations_);
}

void CudnnGraphBuilder::Keep(CudnnDescriptor descriptor, std::vector<CudnnDescriptor>& to) {
  const Result<Done> finished = descriptor.Finalize();
  if (result_.ok() && !finished.ok()) result_ = finished;
  to.push_back(std::move(descriptor));
}

}  // namespace ckplan::cuda
