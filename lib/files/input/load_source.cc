#include "lib/files/input/load_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/stop.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/model/model.h"
#include "lib/files/model/other_format.h"
#include "lib/files/model/weights.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/model_variant.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/one_device.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr std::string_view kOwnCosts = "graph";         // A graph file's own costs, in plans.
constexpr std::string_view kWorkspacesOfFile = "file";  // A workspaces file, in plans.
constexpr std::string_view kNanoseconds = "ns";
constexpr std::string_view kModelCosts = "flops";  // The default of a request for a model.

Error NotForGraphFiles(std::string_view what, std::string_view why, std::string_view field) {
  return Error{ErrorCode::kUsage,
               fmt::format("{} only for ONNX models; a graph file {}", what, why),
               {},
               {"leave out", {{std::string(field), ""}}}};
}

Result<TensorGraph> WithWorkspaces(const TensorGraph& graph, const std::string& path) {
  TensorGraphParts parts = PartsOf(graph);
  CKPLAN_RETURN_IF_ERROR(SetWorkspaces(path, parts.nodes));
  return TensorGraph::Create(std::move(parts));
}

Result<TensorGraph> WithCosts(const TensorGraph& graph, const CostModel& cost) {
  TensorGraphParts parts = PartsOf(graph);
  if (cost.kind == CostKind::kUnit) {
    for (Node& node : parts.nodes) node.forward_cost = node.backward_cost = Cost(1);
  } else {
    CKPLAN_RETURN_IF_ERROR(SetMeasuredCosts(cost.path, parts.nodes));
  }
  return TensorGraph::Create(std::move(parts));
}

Result<Done> CheckGraphFileRequest(const PlanRequest& request,
                                   const std::optional<CostModel>& cost) {
  for (const RequestField& field : RequestFields()) {
    const std::string_view why = field.scope.not_for_graph_files;
    if (why.empty() || IsDefault(field, request)) continue;
    return NotForGraphFiles(field.scope.subject, why, field.name);
  }
  if (!cost || cost->kind == CostKind::kUnit || cost->kind == CostKind::kFile) return Done{};
  return NotForGraphFiles(fmt::format("the cost model {} is", cost->name()),
                          "has its own costs, which only unit or file:PATH can replace",
                          "cost_model");
}

// A joint graph has one cost per operation, and no forward nodes that a cost model could apply to.
Result<Done> CheckJointGraphRequest(const PlanRequest& request,
                                    const std::optional<CostModel>& cost) {
  if (!request.workspaces.empty()) {
    return Error{
        ErrorCode::kUsage,
        "a workspaces file applies only to forward graphs; a joint graph has its own workspaces",
        {},
        {"leave out", {{"workspaces", ""}}}};
  }
  if (!cost) return Done{};
  return Error{
      ErrorCode::kUsage,
      fmt::format(
          "the cost model {} applies only to forward graphs; a joint graph has its own costs",
          cost->name()),
      {},
      {"leave out", {{"cost_model", ""}}}};
}

// Returns the step with each operation's modules, taken from its node of the model.
JointGraph WithModules(const Expansion& expansion, const ModuleCalls& modules) {
  JointGraphParts parts = PartsOf(expansion.graph);
  for (const OpId id : parts.ops.ids()) {
    const Step& step = expansion.step_of[static_cast<size_t>(id.index())];
    if (modules.empty() || step.kind == StepKind::kLoss) continue;
    const int32_t call = modules.call_of[step.node()];
    if (call >= 0) parts.ops[id].module = modules.call(call).path;
  }
  return JointGraph::Create(std::move(parts)).value();
}

// Makes parameter gradients count in the peak, each from the operation that computes it.
Result<Done> CountArrivingGradients(Source* source) {
  if (source->joint) {
    source->joint = WithArrivingGradients(*source->joint);
  } else if (source->is_model) {
    Expansion expansion = ExpandWithArrivingGradients(source->graph);
    source->joint = WithModules(expansion, source->modules);
    source->step_of = std::move(expansion.step_of);
  } else {
    return Error{ErrorCode::kUsage,
                 "arriving gradients need an ONNX model or a joint graph; a graph file doesn't say "
                 "which node computes which gradient",
                 {},
                 {"leave out", {{"gradients", ""}}}};
  }
  return Done{};
}

// Turns the source into a joint graph, whose plans may move values to the host.
void ExpandForOffload(Source* source) {
  if (!source->joint) {
    Expansion expansion = ExpandTensorGraph(source->graph);
    source->joint = WithModules(expansion, source->modules);
    source->step_of = std::move(expansion.step_of);
  }
}

// Copies take nanoseconds, so costs must too. A graph file does not state its unit.
Result<Done> SettleUnitForOffload(Source* source) {
  PlanRequest& request = source->request;
  if (request.cost_unit == kNanoseconds) return Done{};
  if (request.cost_model != kOwnCosts) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("offloading needs costs in nanoseconds; costs by \"{}\" have no unit of time",
                    request.cost_model),
        {},
        {"use", {{"cost_model", source->is_model ? "flops" : "file:PATH"}}}};
  }
  request.cost_unit = kNanoseconds;
  source->warnings.push_back(
      fmt::format("{}: its costs are taken as nanoseconds, the unit of copies to the host",
                  source->identity.name));
  return Done{};
}

Result<Done> Align(Source* source) {
  const int64_t alignment = source->request.align_bytes;
  if (alignment <= 1) return Done{};
  CKPLAN_ASSIGN_OR_RETURN(source->graph, AlignSizes(source->graph, alignment));
  if (source->joint) {
    CKPLAN_ASSIGN_OR_RETURN(source->joint, AlignSizes(*source->joint, alignment));
  }
  return Done{};
}

// Warns if the request counts something differently from what it says. Fails with kUsage if a graph
// file does not say which parameters have master weights, or which are trained.
Result<Done> CheckOptimizer(Source* source) {
  const PlanRequest& request = source->request;
  const Optimized optimized = source->step().optimized();
  const bool has_only_sum = optimized.tensors.empty() && optimized.bytes > Bytes(0);
  if (request.has_master_weights && (has_only_sum || optimized.is_unknown)) {
    return NotForGraphFiles("master weights are",
                            "without \"optimized_tensors\" does not say which of its parameters "
                            "are stored in 16 bits",
                            "master_weights");
  }
  const bool has_limit = request.memory.is_given() || request.total_budget.is_given();
  const std::optional<Error> unknown = UnknownState(*source, request.optimizer);
  if (unknown && has_limit) {
    if (!request.implied.contains("optimizer")) return *unknown;
    source->warnings.push_back(unknown->message + std::string(kCountsAsNothing));
  }
  const std::string& name = source->identity.name;
  if (request.has_master_weights && optimized.bytes > Bytes(0) && !HasSixteenBits(optimized)) {
    source->warnings.push_back(fmt::format(
        "{}: no trained parameter is stored in 16 bits, so master weights change nothing", name));
  }
  if (request.optimizer == Optimizer::kAdam8Bit && has_only_sum) {
    source->warnings.push_back(
        fmt::format("{}: the state of {} is estimated for one float32 tensor, because the graph "
                    "file has only the "
                    "sum of its gradients (no \"optimized_tensors\")",
                    name, NameOf(request.optimizer)));
  }
  return Done{};
}

void SettleCosts(const CostModel& cost, PlanRequest* request) {
  request->cost_model = cost.name();
  request->cost_unit = cost.unit();
}

void SettleWorkspaces(PlanRequest* request) {
  if (!request->workspaces.empty()) request->workspaces = kWorkspacesOfFile;
}

bool BeginsAsJson(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

// Removes default settings that a graph file can't have: it has no dimensions and is read as it is.
PlanRequest ForGraphFile(PlanRequest request) {
  const std::set<std::string>& optional = request.optional_dims;
  for (const std::string& name : optional) request.dims.erase(name);
  std::erase_if(request.set_inputs, [&](const std::string& text) {
    return optional.contains(text.substr(0, text.rfind('=') + 1));
  });
  std::erase_if(request.op_shapes, [&](const std::string& text) {
    return optional.contains(text.substr(0, text.find('=') + 1));
  });
  for (const std::string& name : request.implied) {
    const RequestField& field = FieldOf(name);
    if (!field.scope.not_for_graph_files.empty()) ResetField(field, &request);
  }
  return request;
}

Result<Source> LoadGraphFile(const std::string& path, const PlanRequest& asked,
                             const ModelIdentity* planned) {
  const PlanRequest request = ForGraphFile(asked);
  std::optional<CostModel> cost;
  if (!request.cost_model.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(cost, ParseCostModel(request.cost_model));
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadJsonFile(path, "graph.json"));
  if (IsOnnxInJson(text)) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("\"{}\" is {}", path, kOnnxInJson));
  }
  const std::string sha256 = Sha256Hex(text);
  if (planned != nullptr) CKPLAN_RETURN_IF_ERROR(CheckSameModel(*planned, path, sha256));
  CKPLAN_RETURN_IF_ERROR(CheckGraphFileRequest(request, cost));
  const std::string where =
      path == kStandardStream ? "stdin" : std::filesystem::path(path).filename().string();
  CKPLAN_ASSIGN_OR_RETURN(AnyGraph graph, ReadAnyGraphJson(text, where));
  Source source{TensorGraph::Create({}).value(), {where, sha256, {}}, request, false, {}, {}};
  source.request.cost_model = kOwnCosts;
  source.request.cost_unit = "1";
  if (auto* const joint = std::get_if<JointGraph>(&graph)) {
    CKPLAN_RETURN_IF_ERROR(CheckJointGraphRequest(request, cost));
    source.joint = std::move(*joint);
    return source;
  }
  source.graph = std::get<TensorGraph>(std::move(graph));
  if (cost) {
    CKPLAN_ASSIGN_OR_RETURN(source.graph, WithCosts(source.graph, *cost));
    SettleCosts(*cost, &source.request);
  }
  if (!request.workspaces.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(source.graph, WithWorkspaces(source.graph, request.workspaces));
  }
  SettleWorkspaces(&source.request);
  return source;
}

Result<CostModel> ModelCosts(const PlanRequest& request) {
  if (!request.cost_model.empty()) return ParseCostModel(request.cost_model);
  const std::string& device = request.memory.device;
  return ParseCostModel(device.empty() ? std::string(kModelCosts)
                                       : fmt::format("{}:{}", kModelCosts, device));
}

// Returns the workspaces file that the plan was made with, or "" if there was none.
Result<std::string> WorkspacesToReadAgain(const PlanRequest& plan, const FilesOfPlan& files) {
  if (plan.workspaces.empty() == !files.workspaces) return files.workspaces.value_or("");
  if (files.workspaces) {
    return Error{ErrorCode::kUsage,
                 "the plan was made without a workspaces file",
                 {},
                 {"leave out", {{"workspaces", ""}}}};
  }
  return Error{ErrorCode::kUsage,
               "the plan's workspaces came from a file",
               {},
               {"name it with", {{"workspaces", "FILE"}}}};
}

// Sets the request's backward steps, and converts the graph if they are by input.
void SettleBackward(Source* source) {
  PlanRequest& request = source->request;
  if (source->joint) return;
  if (request.backward == BackwardSteps::kAuto && !request.uses_liveness) {
    request.backward = BackwardSteps::kByInput;
  }
  if (request.backward != BackwardSteps::kByInput) return;
  source->graph = WithBackwardByInput(source->graph);
}

// Applies the settings that concern a source as a whole. `request` is the one given.
Result<Source> Settled(Source source, const PlanRequest& request) {
  if (request.gradients == ParameterGradients::kArriving) {
    CKPLAN_RETURN_IF_ERROR(CountArrivingGradients(&source));
  }
  if (request.offload) CKPLAN_RETURN_IF_ERROR(SettleUnitForOffload(&source));
  CKPLAN_RETURN_IF_ERROR(CheckOptimizer(&source));
  CKPLAN_RETURN_IF_ERROR(Align(&source));
  // Workspaces and gradients are rounded up individually, before the expansion adds them up.
  if (request.offload) ExpandForOffload(&source);
  SettleBackward(&source);
  return source;
}

}  // namespace

Result<WholeModel> LoadWholeModel(const std::string& path, const PlanRequest& request,
                                  const ModelIdentity* planned) {
  CKPLAN_ASSIGN_OR_RETURN(ModelSource read, LoadModelSource(path, request, planned));
  Source source{
      std::move(read.lowered.graph), read.model.identity(), std::move(read.request),        true,
      std::move(read.lowered.roles), read.model.warnings(), std::move(read.lowered.modules)};
  for (std::string& warning : read.lowered.warnings) source.warnings.push_back(std::move(warning));
  source.absent_values = std::move(read.lowered.absent_values);
  source.constant_batch = read.model.constant_batch();
  source.restored = read.model.restored();
  source.buffers = SumBuffers(read.lowered.parameters);
  return WholeModel{std::move(source), std::move(read.lowered.parameters),
                    std::move(read.lowered.works), std::move(read.cost)};
}

Result<Source> SourceOf(WholeModel model, const PlanRequest& request) {
  if (IsPartOfModel(request)) {
    CKPLAN_RETURN_IF_ERROR(ReduceToDevice(model.parameters, &model.source));
  }
  return Settled(std::move(model.source), request);
}

Result<ModelSource> LoadModelSource(const std::string& path, const PlanRequest& request,
                                    const ModelIdentity* planned) {
  LowerOptions lower;
  lower.autograd = request.autograd;
  lower.lists_parameters = true;
  CKPLAN_ASSIGN_OR_RETURN(lower.cost, ModelCosts(request));
  lower.workspaces = request.workspaces;
  CKPLAN_ASSIGN_OR_RETURN(Model model, LoadModel(path, {.dims = request.dims,
                                                        .input_shapes = request.input_shapes,
                                                        .activation_type = request.activation_type,
                                                        .freeze = request.freeze,
                                                        .planned = planned,
                                                        .optional_dims = request.optional_dims,
                                                        .batch = request.batch,
                                                        .fused = request.fused,
                                                        .rounding = request.rounding,
                                                        .restored = request.restored,
                                                        .autograd = request.autograd,
                                                        .outputs = request.outputs,
                                                        .weights = request.weights,
                                                        .set_inputs = request.set_inputs,
                                                        .op_shapes = request.op_shapes}));
  CKPLAN_ASSIGN_OR_RETURN(ModelGraph lowered, LowerModel(model, lower));
  ModelSource source{std::move(model), std::move(lowered), request};
  source.request.dims = source.model.dims();
  source.request.set_inputs = UsedSetInputs(source.model, request.set_inputs);
  source.request.op_shapes = UsedOpShapes(source.model, request.op_shapes);
  SettleCosts(lower.cost, &source.request);
  SettleWorkspaces(&source.request);
  source.cost = std::move(lower.cost);
  return source;
}

Result<Done> CheckCostModel(const std::string& text) {
  CKPLAN_RETURN_IF_ERROR(ParseCostModel(text));
  return Done{};
}

Result<PlanRequest> RequestForReread(const PlanRequest& plan, const FilesOfPlan& files) {
  PlanRequest request = plan;
  request.cost_unit.clear();
  CKPLAN_ASSIGN_OR_RETURN(request.workspaces, WorkspacesToReadAgain(plan, files));
  if (files.cost) {
    CKPLAN_ASSIGN_OR_RETURN(const CostModel given, ParseCostModel(*files.cost));
    request.cost_model = *files.cost;
    if (given.name() == plan.cost_model) return request;
    return MakeError(ErrorCode::kUsage,
                     fmt::format("the plan was made with the cost model {}, not {}",
                                 plan.cost_model, given.name()));
  }
  if (plan.cost_model == "file") {
    return Error{ErrorCode::kUsage,
                 "the plan's costs came from a file",
                 {},
                 {"name it with", {{"cost_model", "file:PATH"}}}};
  }
  if (plan.cost_model == kOwnCosts) request.cost_model.clear();
  return request;
}

std::vector<std::string> FilesOf(const std::string& path) {
  std::vector<std::string> files = {path};
  if (IsGraphFile(path) || IsSpecialFile(path)) return files;
  for (std::string& file : ExternalFiles(path)) files.push_back(std::move(file));
  return files;
}

bool IsGraphFile(const std::string& path) {
  if (IsStream(path) || path.ends_with(".json")) return true;
  // No ONNX file begins with '{': a protobuf message starts with a field's tag, and 0x7B would
  // start a group, which ONNX does not use. ONNX's text formats have their own extensions.
  if (path.ends_with("txt") || path.ends_with("textproto")) return false;
  constexpr size_t kPeekedBytes = 64;
  return BeginsAsJson(PeekFile(path, kPeekedBytes));
}

Result<std::string> ReadJsonFile(const std::string& path, std::string_view what) {
  CKPLAN_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path));
  if (!IsStream(path) || BeginsAsJson(text)) return text;
  const std::string shown =
      path == kStandardStream ? "standard input" : fmt::format("\"{}\"", path);
  return MakeError(
      ErrorCode::kInvalidInput,
      fmt::format("{} does not contain {}; name an ONNX model by its path", shown, what));
}

Result<Source> LoadSource(const std::string& path, const PlanRequest& request,
                          const ModelIdentity* planned) {
  CKPLAN_RETURN_IF_ERROR(CheckDeviceRequest(request));
  return CatchStop([&]() -> Result<Source> {
    if (!IsGraphFile(path)) {
      CKPLAN_ASSIGN_OR_RETURN(WholeModel model, LoadWholeModel(path, request, planned));
      return SourceOf(std::move(model), request);
    }
    CKPLAN_ASSIGN_OR_RETURN(Source source, LoadGraphFile(path, request, planned));
    return Settled(std::move(source), request);
  });
}

ReadSource ReaderOf(std::string path) {
  return [path = std::move(path)](const PlanRequest& request) { return LoadSource(path, request); };
}

}  // namespace ckplan
