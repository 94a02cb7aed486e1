// Builds graphs of operations of cuDNN's backend interface: tensors of four axes, and operations on
// them. Tensors are numbered as they are added; their ids in a variant pack are chosen by the
// caller.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/cuda/gpu/cudnn_backend.h"
#include "lib/executor/cuda/gpu/cudnn_engines.h"

namespace ckplan::cuda {

class CudnnGraphBuilder {
 public:
  using Tensor = size_t;
  using Axes = std::array<int64_t, 4>;
  static constexpr Tensor kNone = static_cast<Tensor>(-1);

  explicit CudnnGraphBuilder(const CudnnApi& api) : api_(api) {}

  // A tensor in memory. Strides are in elements.
  Tensor Stored(int64_t id, cudnnDataType_t type, const Axes& dims, const Axes& strides);
  // A number of float32, which a variant pack gives by its address on the host.
  Tensor Number(int64_t id);
  // A result that other operations of the graph read, and that need not be stored.
  Tensor Virtual(cudnnDataType_t type, const Axes& dims, const Axes& strides);
  // As above. The elements of a row lie side by side, and there are no gaps.
  Tensor Virtual(const Axes& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // a [.., m, k] by b [.., k, n].
  void Multiply(Tensor a, Tensor b, Tensor product);
  // An elementwise operation of one, two or three operands, which are broadcast. `axis` is for
  // CUDNN_POINTWISE_GEN_INDEX.
  struct Elementwise {
    cudnnPointwiseMode_t mode;
    Tensor x = kNone, y = kNone, third = kNone, result = kNone;
    cudnnDataType_t computed_as = CUDNN_DATA_FLOAT;
    int64_t axis = -1;
  };
  void Apply(const Elementwise& operation);
  // Reduces the axes along which the result has one element.
  void Reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor result);
  // Gives the elements of x other dimensions and strides.
  void Reshape(Tensor x, Tensor result);

  // kUnsupported: cuDNN refuses a descriptor; the message has its reason.
  Result<CudnnDescriptor> Finish(const CudnnTarget& target);

 private:
  Tensor Add(int64_t id, cudnnDataType_t type, const Axes& dims, const Axes& strides,
             bool is_virtual, bool is_number);
  void Keep(CudnnDescriptor descriptor, std::vector<CudnnDescriptor>& to);

  const CudnnApi& api_;
  int64_t next_id_ = 1000;  // The next virtual tensor gets this id.
  std::vector<CudnnDescriptor> tensors_, parts_, operations_;
  Result<Done> result_ = Done{};
};

}  // namespace ckplan::cuda
