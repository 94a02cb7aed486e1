#include "lib/cuda/gpu/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace ckplan::cuda {

namespace {

// Default limit of the workspace, in bytes. It is exceeded if all engines need more, or all that
// use tensor cores: those are several times as fast as the others.
constexpr int64_t kUsualLimit = int64_t{256} << 20;
// Tensors begin at multiples of so many bytes; buffers of the arena, and workspaces, at multiples
// of 256.
constexpr int64_t kTensorAlignment = 16;
constexpr int64_t kFirstVersionWithDevices = 90800;

using Attribute = cudnnBackendAttributeName_t;

// The names of a pass's operation and of its attributes.
struct PassNames {
  const char* what;
  cudnnBackendDescriptorType_t operation;
  Attribute alpha, beta, convolution, x, w, y;
};

PassNames NamesOf(ConvPass pass) {
  switch (pass) {
    case ConvPass::kForward:
      break;
    case ConvPass::kBackwardData:
      return {"the gradient of a convolution's input",
              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvPass::kBackwardWeights:
      return {"the gradient of a convolution's weights",
              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
  }
  return {"a convolution",
          CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
}

std::vector<int64_t> Joined(int64_t first, int64_t second, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims{first, second};
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

std::vector<int64_t> StridesOf(const std::vector<int64_t>& dims, bool is_channels_last) {
  std::vector<int64_t> strides(dims.size(), 1);
  int64_t stride = is_channels_last ? dims[1] : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (is_channels_last && i == 1) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Result<CudnnDescriptor> DescribeTensor(const CudnnApi& api, int64_t id, cudnnDataType_t type,
                                       const std::vector<int64_t>& dims, bool is_channels_last) {
  CudnnDescriptor tensor(api, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, StridesOf(dims, is_channels_last))
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  CKPLAN_RETURN_IF_ERROR(tensor.Finalize());
  return tensor;
}

Result<CudnnDescriptor> DescribeConvolution(const CudnnApi& api, const ConvolutionShape& shape) {
  CudnnDescriptor convolution(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(shape.pads.size()))
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, shape.pads)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, shape.pads)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, shape.strides)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, shape.dilations);
  CKPLAN_RETURN_IF_ERROR(convolution.Finalize());
  return convolution;
}

// Returns the graph of the one operation. cuDNN derives the number of groups from the channels of x
// and w.
Result<CudnnDescriptor> DescribeGraph(const CudnnApi& api, const CudnnTarget& target,
                                      const ConvolutionShape& shape, ConvPass pass) {
  const PassNames names = NamesOf(pass);
  const bool is_last = shape.is_channels_last;
  const cudnnDataType_t type =
      shape.type == ElementType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor x,
      DescribeTensor(api, kIdOfX, type,
                     Joined(shape.batch, shape.groups * shape.in_channels, shape.in), is_last));
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor w,
      DescribeTensor(api, kIdOfW, type,
                     Joined(shape.groups * shape.out_channels, shape.in_channels, shape.kernel),
                     is_last));
  CKPLAN_ASSIGN_OR_RETURN(
      const CudnnDescriptor y,
      DescribeTensor(api, kIdOfY, type,
                     Joined(shape.batch, shape.groups * shape.out_channels, shape.out), is_last));
  CKPLAN_ASSIGN_OR_RETURN(const CudnnDescriptor convolution, DescribeConvolution(api, shape));
  CudnnDescriptor operation(api, names.operation);
  operation.Set(names.convolution, convolution)
      .Set(names.x, x)
      .Set(names.w, w)
      .Set(names.y, y)
      .Set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0)
      .Set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  CKPLAN_RETURN_IF_ERROR(operation.Finalize());
  CudnnDescriptor graph(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (target.handle != nullptr) {
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  CKPLAN_RETURN_IF_ERROR(graph.Finalize());
  return graph;
}

Result<std::vector<CudnnDescriptor>> Recommended(const CudnnApi& api, const CudnnTarget& target,
                                                 const CudnnDescriptor& graph,
                                                 cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristics(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties != nullptr) heuristics.Set(kHeuristicsDevice, *target.properties);
  CKPLAN_RETURN_IF_ERROR(heuristics.Finalize());
  return heuristics.GetParts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

class PlanSearch {
 public:
  PlanSearch(const CudnnApi& api, const CudnnTarget& target, const DeviceOptions& options,
             bool may_use_tensor_cores)
      : api_(api),
        target_(target),
        limit_(options.workspace_limit),
        may_use_tensor_cores_(may_use_tensor_cores) {}

  // Returns whether a plan within the limit was found.
  bool Try(Result<std::vector<CudnnDescriptor>> configurations) {
    if (!configurations.ok()) {
      Note(configurations.error());
      return false;
    }
    for (CudnnDescriptor& configuration : *configurations) {
      ++tried_;
      std::optional<CudnnPlan> plan = Accept(std::move(configuration));
      if (!plan) continue;
      const bool is_slower =
          best_ && best_->choice.uses_tensor_cores && !plan->choice.uses_tensor_cores;
      if (is_slower && !limit_) continue;
      const bool fits = plan->choice.workspace <= limit_.value_or(kUsualLimit);
      if (fits || !best_ || plan->choice.workspace < best_->choice.workspace) {
        best_ = std::move(plan);
      }
      if (fits) return is_found_ = true;
    }
    return false;
  }

  // Returns the plan that was found. If no limit was asked for, it may also be the one that takes
  // the least.
  Result<std::shared_ptr<const CudnnPlan>> Finish(const char* what) {
    const auto refuse = [what](const std::string& why) {
      return MakeError(ErrorCode::kUnsupported, fmt::format("cuDNN for {}: {}", what, why));
    };
    if (!best_) {
      return refuse(fmt::format("it has no deterministic engine for this shape{}{}",
                                refusal_.empty() ? "" : "; ", refusal_));
    }
    if (limit_ && !is_found_) {
      return refuse(
          fmt::format("it takes at least {0} bytes of workspace, which is more than the limit; "
                      "raise the workspace limit to {0}",
                      best_->choice.workspace));
    }
    return std::shared_ptr<const CudnnPlan>(std::make_shared<const CudnnPlan>(std::move(*best_)));
  }

 private:
  std::optional<CudnnPlan> Accept(CudnnDescriptor configuration) {
    Result<CudnnPlan> plan = Build(std::move(configuration));
    if (plan.ok()) return std::move(plan).value();
    Note(plan.error());
    return std::nullopt;
  }
  void Note(const Error& error) {
    if (refusal_.empty()) refusal_ = error.message;
  }

  Result<CudnnPlan> Build(CudnnDescriptor configuration) {
    EngineChoice choice;
    choice.rank = tried_;
    CKPLAN_ASSIGN_OR_RETURN(
        const std::vector<CudnnDescriptor> engines,
        configuration.GetParts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    if (engines.size() != 1) return MakeError(ErrorCode::kUnsupported, "it names no engine");
    CKPLAN_ASSIGN_OR_RETURN(choice.engine, engines[0].GetInteger(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
    CKPLAN_ASSIGN_OR_RETURN(const auto notes,
                            engines[0].GetNotes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
    const auto has = [&](cudnnBackendNumericalNote_t note) {
      return std::find(notes.begin(), notes.end(), note) != notes.end();
    };
    choice.uses_tensor_cores = has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return NotFit("is not deterministic");
    if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) {
      return NotFit("does not sum in float32");
    }
    const bool rounds = choice.uses_tensor_cores || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
    if (rounds && !may_use_tensor_cores_) return NotFit("computes in TF32");
    CudnnDescriptor plan(api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (target_.handle != nullptr) {
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    }
    if (target_.properties != nullptr) plan.Set(kPlanDevice, *target_.properties);
    CKPLAN_RETURN_IF_ERROR(plan.Finalize());
    CKPLAN_ASSIGN_OR_RETURN(choice.workspace,
                            plan.GetInteger(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    return CudnnPlan{std::move(configuration), std::move(plan), choice};
  }

  static Error NotFit(std::string_view why) {
    return MakeError(ErrorCode::kUnsupported, fmt::format("its first engine {}", why));
  }

  const CudnnApi& api_;
  const CudnnTarget& target_;
  std::optional<int64_t> limit_;
  bool may_use_tensor_cores_;
  int64_t tried_ = 0;
  bool is_found_ = false;
  std::optional<CudnnPlan> best_;
  std::string refusal_;  // Says why the first configuration was not taken.
};

}  // namespace

Result<CudnnDescriptor> DescribeDevice(const CudnnApi& api, const std::string& properties_json) {
  if (api.version() < kFirstVersionWithDevices) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("cuDNN {} answers only for the GPU that it runs on; install 9.8 "
                                 "or newer to ask it about another",
                                 api.VersionText()));
  }
  CudnnDescriptor device(api, kDevicePropertiesDescriptor);
  device.Set(kDevicePropertiesJson, kCharType, static_cast<int64_t>(properties_json.size()),
             properties_json.data());
  CKPLAN_RETURN_IF_ERROR(device.Finalize());
  return device;
}

Result<std::shared_ptr<const CudnnPlan>> MakeCudnnPlan(const CudnnApi& api,
                                                       const CudnnTarget& target,
                                                       const ConvolutionShape& shape, ConvPass pass,
                                                       const DeviceOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const CudnnDescriptor graph, DescribeGraph(api, target, shape, pass));
  PlanSearch search(api, target, options,
                    options.allow_tf32 || shape.type == ElementType::kBFloat16);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (search.Try(Recommended(api, target, graph, mode))) break;
  }
  return search.Finish(NamesOf(pass).what);
}

}  // namespace ckplan::cuda
