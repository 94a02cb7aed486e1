#include "lib/executor/cuda/testing/emulated/emulated_descriptors.h"

#include <algorithm>

#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan::cuda {

namespace {

using Kind = cudnnBackendDescriptorType_t;

// An attribute that the program sets.
struct AttributeRule {
  EmulatedName name;
  Kind kind;
  cudnnBackendAttributeType_t type;
  bool is_list = false;
  bool is_required = true;
};

constexpr Kind kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
constexpr Kind kConvolution = CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR;
constexpr Kind kForward = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
constexpr Kind kData = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
constexpr Kind kFilter = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
constexpr Kind kPointwise = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
constexpr Kind kMatmul = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
constexpr Kind kReduction = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
constexpr Kind kReshape = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;
constexpr Kind kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
constexpr Kind kHeuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
constexpr Kind kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
constexpr Kind kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;

constexpr AttributeRule kRules[] = {
    {CUDNN_ATTR_TENSOR_UNIQUE_ID, kTensor, CUDNN_TYPE_INT64},
    {CUDNN_ATTR_TENSOR_DATA_TYPE, kTensor, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_ATTR_TENSOR_DIMENSIONS, kTensor, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_TENSOR_STRIDES, kTensor, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensor, CUDNN_TYPE_INT64},
    {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, kConvolution, CUDNN_TYPE_INT64},
    {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, kConvolution, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_ATTR_CONVOLUTION_CONV_MODE, kConvolution, CUDNN_TYPE_CONVOLUTION_MODE},
    {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, kConvolution, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, kConvolution, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, kConvolution, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_CONVOLUTION_DILATIONS, kConvolution, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, kForward, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, kForward, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, kForward, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, kForward, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, kForward, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, kForward, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, kData, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, kData, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, kData, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, kData, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, kData, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, kData, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, kFilter, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, kFilter, CUDNN_TYPE_DOUBLE},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, kFilter, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, kFilter, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, kFilter, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, kFilter, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_TENSOR_IS_VIRTUAL, kTensor, CUDNN_TYPE_BOOLEAN, false, false},
    {CUDNN_ATTR_TENSOR_IS_BY_VALUE, kTensor, CUDNN_TYPE_BOOLEAN, false, false},
    {CUDNN_ATTR_POINTWISE_MODE, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_TYPE_POINTWISE_MODE},
    {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_TYPE_INT64, false, false},
    {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kPointwise, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kPointwise, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kPointwise, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kPointwise, CUDNN_TYPE_BACKEND_DESCRIPTOR, false, false},
    {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kPointwise, CUDNN_TYPE_BACKEND_DESCRIPTOR, false, false},
    {CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_ATTR_OPERATION_MATMUL_DESC, kMatmul, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_MATMUL_ADESC, kMatmul, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kMatmul, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kMatmul, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
    {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_TYPE_DATA_TYPE},
    {CUDNN_ATTR_OPERATION_REDUCTION_DESC, kReduction, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kReduction, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kReduction, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kReshape, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kReshape, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_OPERATIONGRAPH_OPS, kGraph, CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, kGraph, CUDNN_TYPE_HANDLE, false, false},
    {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kHeuristics, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_ENGINEHEUR_MODE, kHeuristics, CUDNN_TYPE_HEUR_MODE},
    {CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, kHeuristics, CUDNN_TYPE_BACKEND_DESCRIPTOR, false, false},
    {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kPlan, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, kPlan, CUDNN_TYPE_HANDLE, false, false},
    {CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, kPlan, CUDNN_TYPE_BACKEND_DESCRIPTOR, false, false},
    {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, kPack, CUDNN_TYPE_INT64, true},
    {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, kPack, CUDNN_TYPE_VOID_PTR, true},
    {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, kPack, CUDNN_TYPE_VOID_PTR},
    {CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
     CUDNN_TYPE_CHAR, true},
};

size_t SizeOfType(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
      return sizeof(int);
    default:
      return 8;
  }
}

std::map<cudnnBackendDescriptor_t, std::shared_ptr<EmulatedDescriptor>>& LiveDescriptors() {
  static std::map<cudnnBackendDescriptor_t, std::shared_ptr<EmulatedDescriptor>> alive;
  return alive;
}

}  // namespace

std::vector<int64_t> EmulatedDescriptor::Integers(EmulatedName name) const {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < attributes.at(name).count; ++i) values.push_back(Get<int64_t>(name, i));
  return values;
}

std::string EmulatedDescriptor::Text(EmulatedName name) const {
  const std::vector<unsigned char>& bytes = attributes.at(name).bytes;
  return {bytes.begin(), bytes.end()};
}

void EmulatedDescriptor::SetInteger(EmulatedName name, int64_t value) {
  Attribute& attribute = attributes[name];
  attribute.count = 1;
  attribute.bytes.resize(sizeof(value));
  std::memcpy(attribute.bytes.data(), &value, sizeof(value));
}

void EmulatedDescriptor::SetPart(EmulatedName name,
                                 std::shared_ptr<const EmulatedDescriptor> part) {
  attributes[name] = {1, {}, {std::move(part)}};
}

cudnnBackendDescriptor_t AddEmulatedDescriptor(Kind kind) {
  auto descriptor = std::make_shared<EmulatedDescriptor>();
  descriptor->kind = kind;
  void* const handle = descriptor.get();
  LiveDescriptors().emplace(handle, std::move(descriptor));
  CountEmulatedObjects(1);
  return handle;
}

void RemoveEmulatedDescriptor(cudnnBackendDescriptor_t handle) {
  if (IsPlanted("descriptors are kept")) return;
  CKPLAN_CHECK(LiveDescriptors().erase(handle) == 1, "only an existing object is destroyed");
  CountEmulatedObjects(-1);
}

std::shared_ptr<EmulatedDescriptor> FindEmulatedDescriptor(cudnnBackendDescriptor_t handle) {
  const auto found = LiveDescriptors().find(handle);
  CKPLAN_CHECK(found != LiveDescriptors().end(), "a library call uses a live descriptor");
  return found->second;
}

void SetEmulatedAttribute(EmulatedDescriptor& descriptor, EmulatedName name,
                          cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  CKPLAN_CHECK(!descriptor.is_finalized, "a finalized descriptor is not changed");
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const AttributeRule& row) { return row.name == name; });
  CKPLAN_CHECK(rule != std::end(kRules) && rule->kind == descriptor.kind,
               "the descriptor has this attribute");
  CKPLAN_CHECK(rule->type == type, "an attribute is set with its own type");
  CKPLAN_CHECK(count >= 1 && (rule->is_list || count == 1),
               "an attribute has the right number of values");
  EmulatedDescriptor::Attribute attribute;
  attribute.count = count;
  const auto* const bytes = static_cast<const unsigned char*>(values);
  attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * SizeOfType(type));
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const auto handle = static_cast<const cudnnBackendDescriptor_t*>(values)[i];
      attribute.parts.push_back(FindEmulatedDescriptor(handle));
      CKPLAN_CHECK(attribute.parts.back()->is_finalized, "a descriptor's parts are finalized");
    }
  }
  descriptor.attributes[name] = std::move(attribute);
}

void CheckEmulatedComplete(const EmulatedDescriptor& descriptor) {
  CKPLAN_CHECK(!descriptor.is_finalized, "a descriptor is finalized once");
  for (const AttributeRule& rule : kRules) {
    if (rule.kind != descriptor.kind || !rule.is_required) continue;
    CKPLAN_CHECK(descriptor.Has(rule.name), "a descriptor has all its attributes");
  }
}

bool IsEmulatedOrder(const EmulatedDescriptor& tensor, bool is_channels_last) {
  const std::vector<int64_t> dims = tensor.Integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = is_channels_last ? dims[1] : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (is_channels_last && i == 1) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides == tensor.Integers(CUDNN_ATTR_TENSOR_STRIDES);
}

}  // namespace ckplan::cuda
