#include "cli/ckexec/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>

#include "cli/common/files.h"
#include "cli/common/size_arg.h"
#include "lib/base/text.h"
#include "lib/executor/core/element_orders.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/files/model/annotate.h"
#include "lib/files/model/file_rows.h"
#include "lib/planning/planner/model_form.h"
#include "lib/problem/schedule/expand.h"

namespace ckplan {

namespace {

struct UnalignedBuffer {
  std::string what;
  Bytes bytes;
};

std::optional<UnalignedBuffer> FindUnaligned(const TensorGraph& graph, int64_t alignment) {
  const auto fits = [alignment](Bytes bytes) { return bytes.count() % alignment == 0; };
  for (const TensorId id : graph.tensors().ids()) {
    const Tensor& tensor = graph.tensor(id);
    const bool is_placed = !tensor.producer.is_none();  // Inputs lie outside the arena.
    if (is_placed && !fits(tensor.bytes)) return UnalignedBuffer{tensor.name, tensor.bytes};
  }
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    for (const Bytes bytes : {node.forward_workspace, node.backward_workspace}) {
      if (!fits(bytes)) return UnalignedBuffer{"the workspace of " + node.name, bytes};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string ReplanCommand(const Plan& plan, int64_t align_bytes, const ExecOptions& options) {
  PlanRequest request = plan.request;
  request.align_bytes = align_bytes;
  // The default objective also leads to a time-centric plan, so no option is needed.
  if (request.objective == Objective::kTime) request.objective = Objective::kAuto;
  request.cost_model = options.request.ValueOf("cost_model").value_or(request.cost_model);
  request.workspaces = options.request.ValueOf("workspaces").value_or(request.workspaces);
  const std::string plan_file = options.plan.value_or("plan.json");
  if (!request.decisions) {
    return fmt::format("ckplan {}{} -o {}", options.model, FlagsFor(request), plan_file);
  }
  // The plan file can also serve as decisions, which the output must not overwrite.
  request.decisions.reset();
  return fmt::format("ckplan {}{} {} {} -o new-plan.json", options.model, FlagsFor(request),
                     FlagOf("decisions"), plan_file);
}

Result<Done> CheckAlignment(const TensorGraph& graph, const Plan& plan, const Backend& backend,
                            const ExecOptions& options) {
  const std::optional<UnalignedBuffer> misfit = FindUnaligned(graph, backend.alignment());
  if (!misfit) return Done{};
  // Both are powers of two, so the larger one satisfies both.
  const int64_t align = std::max(backend.alignment(), plan.request.align_bytes);
  return Error{
      ErrorCode::kUsage,
      fmt::format("\"{}\" has {} bytes, but buffers of the {} backend begin at multiples "
                  "of {}; plan again with --align {}",
                  misfit->what, misfit->bytes.count(), backend.name(), backend.alignment(), align),
      {ReplanCommand(plan, align, options)}};
}

namespace {

Result<std::optional<PlanJsonText>> FindPlan(const ExecOptions& options, PlanNeed need) {
  if (need == PlanNeed::kNone) return std::optional<PlanJsonText>();
  if (options.plan) {
    CKPLAN_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(*options.plan));
    return std::optional(PlanJsonText{std::move(text), *options.plan});
  }
  CKPLAN_ASSIGN_OR_RETURN(std::optional<PlanJsonText> embedded, ReadPlanInModel(options.model));
  if (embedded || need == PlanNeed::kOptional) return embedded;
  return MakeError(
      ErrorCode::kUsage,
      fmt::format(
          "\"{}\" contains no plan; name one with --plan, or write one into it with `ckplan apply`",
          options.model));
}

Result<Done> CheckRunnable(const PlanHeader& header) {
  if (header.request.gradients == ParameterGradients::kArriving) {
    return MakeError(
        ErrorCode::kUsage,
        "the plan allocates parameter gradients when they arrive, but ckexec holds them "
        "throughout the step; plan again without --gradients arriving");
  }
  if (header.request.backward == BackwardSteps::kByInput) {
    return MakeError(ErrorCode::kUsage,
                     "the plan computes gradients by input, but ckexec computes them by node; plan "
                     "again without --backward by-input and --no-liveness");
  }
  if (header.request.pipeline) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("the plan is for one of {} pipeline stages, but ckexec runs whole models; "
                    "plan again without --pipeline",
                    header.request.pipeline->stages));
  }
  if (header.request.sharding) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("the plan shards the parameters over {} devices, but ckexec runs "
                                 "on one; plan again without --shard",
                                 header.request.sharding->devices));
  }
  return Done{};
}

// Returns the type in which the step stores activations: the plan's type, if there is a plan.
Result<ActivationType> ActivationTypeOf(const ExecOptions& options, const PlanHeader* plan,
                                        const Backend& backend) {
  ActivationType type = plan != nullptr ? plan->request.activation_type : ActivationType::kOfModel;
  if (options.stores_bfloat16) {
    if (plan != nullptr && type != ActivationType::kBFloat16) {
      return MakeError(ErrorCode::kUsage,
                       "the plan was not made for bfloat16 activations; plan again with "
                       "--activation-type bf16, or leave out --bf16");
    }
    type = ActivationType::kBFloat16;
  }
  if (type != ActivationType::kBFloat16 || backend.StoresBFloat16()) return type;
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("the {} backend stores floats only as float32; use --backend cuda, "
                  "or {}",
                  backend.name(),
                  plan != nullptr ? "plan without --activation-type bf16" : "leave out --bf16"));
}

TrainingStep StepOf(const Expansion& expansion, const TensorGraph& graph, const Link& link) {
  return TrainingStep(expansion.graph, graph, expansion.step_of).WithLink(&link);
}

Error AddMemoryLimitNote(Error error, const ExecOptions& options) {
  if (error.code == ErrorCode::kInfeasible && options.memory_limit) {
    error.notes.push_back(fmt::format("the limit is --memory-limit {}", *options.memory_limit));
  }
  return error;
}

}  // namespace

Result<ModelAndPlan> LoadModelAndPlan(const ExecOptions& options, const Backend& backend,
                                      PlanNeed need) {
  if (IsStream(options.model)) {
    return MakeError(ErrorCode::kUsage,
                     "cannot read a model from standard input or a pipe; name its file");
  }
  if (IsGraphFile(options.model)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("\"{}\" is a JSON file; ckexec runs ONNX models", options.model));
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<PlanJsonText> text, FindPlan(options, need));
  if (!text) {
    CKPLAN_ASSIGN_OR_RETURN(PlanRequest request, options.request.Read());
    CKPLAN_ASSIGN_OR_RETURN(request.activation_type, ActivationTypeOf(options, nullptr, backend));
    request.cost_model.clear();  // Without a plan, only the operators matter, not their costs.
    request.workspaces.clear();
    CKPLAN_ASSIGN_OR_RETURN(ModelSource source, LoadModelSource(options.model, request));
    return ModelAndPlan{std::move(source.model), std::move(source.lowered), std::nullopt,
                        request.autograd};
  }
  CKPLAN_ASSIGN_OR_RETURN(const PlanHeader header, ReadPlanHeader(text->text, text->where));
  CKPLAN_RETURN_IF_ERROR(CheckRunnable(header));
  CKPLAN_RETURN_IF_ERROR(ActivationTypeOf(options, &header, backend));
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request,
                          RequestForReread(header.request, options.request.PlanFiles()));
  CKPLAN_ASSIGN_OR_RETURN(ModelSource source,
                          LoadModelSource(options.model, request, &header.model));
  TensorGraph aligned = source.lowered.graph;
  if (request.align_bytes > 1) {
    CKPLAN_ASSIGN_OR_RETURN(aligned, AlignSizes(aligned, request.align_bytes));
  }
  // A plan that may move values to the host was made for the graph's expansion.
  std::optional<Expansion> expansion;
  if (request.offload) expansion = ExpandTensorGraph(aligned);
  const TrainingStep step = expansion ? StepOf(*expansion, aligned, *request.offload) : aligned;
  CKPLAN_ASSIGN_OR_RETURN(Plan plan, ReadPlanJson(text->text, step, text->where));
  std::vector<std::string> faults =
      FindPlanFaults(step, source.model.identity(), source.request, plan);
  if (faults.empty() && text->is_embedded) {
    CKPLAN_ASSIGN_OR_RETURN(const FoundMarkers found, ReadMarkers(options.model));
    Plan form = plan;
    if (expansion) {
      CKPLAN_ASSIGN_OR_RETURN(form, ToModelFormWithCopies(aligned, *expansion, plan));
    }
    faults = FindMarkerFaults(
        found, MakeAnnotation(FileRowsOf(source.model, source.lowered), aligned, form, text->text));
  }
  if (!faults.empty()) {
    return Error{ErrorCode::kCheckFailed,
                 fmt::format("{} fails the check; nothing was run", text->where), faults};
  }
  CKPLAN_RETURN_IF_ERROR(CheckAlignment(aligned, plan, backend, options));
  return ModelAndPlan{std::move(source.model), std::move(source.lowered), std::move(plan),
                      request.autograd};
}

Result<StepOnBackend> StepOnBackend::Create(Backend& backend, const ModelAndPlan& planned,
                                            const ExecOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(options));
  StepOnBackend step;
  CKPLAN_ASSIGN_OR_RETURN(StepGraph graph,
                          BuildStepGraph(planned.model, planned.lowered, planned.autograd));
  ChooseOrders(graph, backend);
  step.graph = std::make_unique<const StepGraph>(std::move(graph));
  CKPLAN_ASSIGN_OR_RETURN(StepOperators operators, PrepareOperators(backend, *step.graph));
  step.operators = std::make_unique<const StepOperators>(std::move(operators));
  CKPLAN_ASSIGN_OR_RETURN(const WeightFile weights, WeightFile::Open(options.model));
  auto constants = ConstantStore::Create(backend, *step.graph, *step.operators, weights, seed);
  if (!constants.ok()) return AddMemoryLimitNote(std::move(constants).error(), options);
  step.constants = std::make_unique<ConstantStore>(std::move(constants).value());
  return step;
}

Result<Done> CheckOutput(const ExecOptions& options, const std::optional<std::string>& output) {
  if (!output) return Done{};
  CKPLAN_RETURN_IF_ERROR(CheckWritable(*output));
  std::vector<InputFile> inputs = InputsOf(options.model);
  if (options.plan) inputs.push_back({"the plan", *options.plan});
  if (const auto costs = options.request.CostFile()) inputs.push_back({"the costs", *costs});
  if (const auto file = options.request.ValueOf("workspaces")) {
    inputs.push_back({"the workspaces", *file});
  }
  return CheckApart(inputs, {*output});
}

Result<Done> WriteUninterrupted(const std::string& path, std::string_view text) {
  const auto handler = signal(SIGINT, SIG_IGN);
  Result<Done> written = WriteFiles({{path, text}});
  signal(SIGINT, handler);
  return written;
}

std::string PlanningStep(const ExecOptions& options, std::string_view measured) {
  std::string flags;
  for (const std::string_view field :
       {"dims", "input_shapes", "batch", "outputs", "weights", "set_inputs", "op_shapes", "fused",
        "restored", "autograd"}) {
    const std::string typed = options.request.Typed(field);
    if (!typed.empty()) flags += " " + typed;
  }
  if (options.stores_bfloat16) flags += " --activation-type bf16";
  const std::string plan = NewJsonFile("plan", {options.model, options.output.value_or("")});
  return Printable(fmt::format("next: ckplan {}{} {} -o {}", PathWord(options.model), flags,
                               measured, plan)) +
         "\n";
}

Result<uint64_t> SeedOf(const ExecOptions& options) {
  if (!options.seed) return uint64_t{0};
  CKPLAN_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger(*options.seed, "--seed", 0,
                                                           std::numeric_limits<int64_t>::max()));
  return static_cast<uint64_t>(seed);
}

Result<int> CountOf(const std::optional<std::string>& text, std::string_view flag, int otherwise,
                    int min_count) {
  if (!text) return otherwise;
  constexpr int kMax = 1'000'000;
  CKPLAN_ASSIGN_OR_RETURN(const int64_t count,
                          ParseInteger(*text, std::string(flag), min_count, kMax));
  return static_cast<int>(count);
}

}  // namespace ckplan
