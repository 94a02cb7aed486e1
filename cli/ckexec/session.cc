#include "cli/ckexec/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <limits>

#include "cli/ckexec/plan_again.h"
#include "cli/ckplan/source.h"
#include "cli/common/files.h"
#include "cli/common/size_arg.h"
#include "lib/emit/json_plan.h"
#include "lib/model/annotate.h"
#include "lib/plan/check.h"

namespace ckplan {
namespace {

struct PlanText {
  std::string text;
  std::string where;
};

Result<std::optional<PlanText>> FindPlan(const ExecOptions& options, PlanNeed need) {
  if (need == PlanNeed::kNone) return std::optional<PlanText>();
  if (options.plan) {
    CKPLAN_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(*options.plan));
    return std::optional(PlanText{std::move(text), *options.plan});
  }
  CKPLAN_ASSIGN_OR_RETURN(std::optional<std::string> embedded, ReadEmbeddedPlan(options.model));
  if (embedded)
    return std::optional(PlanText{std::move(*embedded), "the plan in " + options.model});
  if (need == PlanNeed::kOptional) return std::optional<PlanText>();
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("\"{}\" has no plan in it; name one with --plan, or write one into it "
                  "with `ckplan apply`",
                  options.model));
}

Result<ModelAndPlan> Load(const SourceRequest& request) {
  LowerOptions lower;
  lower.autograd = request.autograd;
  if (request.cost) {
    lower.cost = *request.cost;
  } else {
    CKPLAN_ASSIGN_OR_RETURN(lower.cost, ParseCostModel("flops"));
  }
  CKPLAN_ASSIGN_OR_RETURN(Model model, LoadModel(request.path, request.load));
  CKPLAN_ASSIGN_OR_RETURN(ModelGraph lowered, LowerModel(model, lower));
  return ModelAndPlan{std::move(model), std::move(lowered), std::nullopt};
}

Error OtherModel(const ModelIdentity& planned, const ModelIdentity& found) {
  constexpr size_t kShownDigits = 12;
  return MakeError(
      ErrorCode::kCheckFailed,
      fmt::format("the plan is for another model: \"{}\" with sha256 {}..., but \"{}\" "
                  "has {}...; plan the model again",
                  planned.name, planned.sha256.substr(0, kShownDigits), found.name,
                  found.sha256.substr(0, kShownDigits)));
}

Result<Done> CheckRuns(const PlanHeader& header) {
  if (header.request.autograd == Autograd::kMinimal) return Done{};
  return MakeError(ErrorCode::kUsage,
                   "the plan keeps what PyTorch's autograd keeps; ckexec runs plans of --autograd "
                   "minimal, so plan again without --autograd torch");
}

// How the step stores activations: as the plan says, where there is one.
Result<ActivationType> ActivationTypeOf(const ExecOptions& options, const PlanHeader* plan,
                                        const Backend& backend) {
  ActivationType type = plan != nullptr ? plan->request.activation_type : ActivationType::kOfModel;
  if (options.stores_bfloat16) {
    if (plan != nullptr && type != ActivationType::kBFloat16) {
      return MakeError(ErrorCode::kUsage,
                       "the plan is not for activations stored as bfloat16; plan again with "
                       "--activation-type bf16, or leave out --bf16");
    }
    type = ActivationType::kBFloat16;
  }
  if (type != ActivationType::kBFloat16 || backend.StoresBFloat16()) return type;
  return MakeError(
      ErrorCode::kUnsupported,
      fmt::format("the {} backend stores floats as float32 alone; use --backend cuda, "
                  "or {}",
                  backend.name(),
                  plan != nullptr ? "plan without --activation-type bf16" : "leave out --bf16"));
}

}  // namespace

Result<ModelAndPlan> LoadModelAndPlan(const ExecOptions& options, const Backend& backend,
                                      PlanNeed need) {
  if (IsGraphFile(options.model)) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("\"{}\" is a graph file, which nobody can run; name the model", options.model));
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<PlanText> text, FindPlan(options, need));
  if (!text) {
    Options source;
    source.dims = options.dims;
    source.input_shapes = options.input_shapes;
    CKPLAN_ASSIGN_OR_RETURN(SourceRequest request, SourceRequestOf(source, options.model));
    CKPLAN_ASSIGN_OR_RETURN(request.load.activation_type,
                            ActivationTypeOf(options, nullptr, backend));
    return Load(request);
  }
  CKPLAN_ASSIGN_OR_RETURN(const PlanHeader header, ReadPlanHeader(text->text, text->where));
  CKPLAN_RETURN_IF_ERROR(CheckRuns(header));
  CKPLAN_RETURN_IF_ERROR(ActivationTypeOf(options, &header, backend));
  CKPLAN_ASSIGN_OR_RETURN(
      const SourceRequest request,
      SourceRequestOf(header.request, header.model, options.cost, options.model));
  CKPLAN_ASSIGN_OR_RETURN(ModelAndPlan planned, Load(request));
  if (planned.model.identity().sha256 != header.model.sha256) {
    return OtherModel(header.model, planned.model.identity());
  }
  TensorGraph aligned = planned.lowered.graph;
  if (request.align_bytes > 1) {
    CKPLAN_ASSIGN_OR_RETURN(aligned, AlignSizes(aligned, request.align_bytes));
  }
  CKPLAN_ASSIGN_OR_RETURN(planned.plan, ReadPlanJson(text->text, aligned, text->where));
  const std::vector<std::string> faults = CheckPlan(aligned, *planned.plan);
  if (!faults.empty()) {
    return Error{ErrorCode::kCheckFailed,
                 fmt::format("{} does not pass the checker, so nothing was run", text->where),
                 faults};
  }
  CKPLAN_RETURN_IF_ERROR(CheckAlignment(aligned, *planned.plan, backend, options));
  return planned;
}

Result<StepOnBackend> StepOnBackend::Create(Backend& backend, const ModelAndPlan& planned,
                                            const ExecOptions& options) {
  CKPLAN_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(options));
  StepOnBackend step;
  CKPLAN_ASSIGN_OR_RETURN(StepGraph graph, BuildStepGraph(planned.model, planned.lowered));
  step.graph = std::make_unique<const StepGraph>(std::move(graph));
  CKPLAN_ASSIGN_OR_RETURN(StepOperators operators, PrepareOperators(backend, *step.graph));
  step.operators = std::make_unique<const StepOperators>(std::move(operators));
  CKPLAN_ASSIGN_OR_RETURN(const WeightFile weights, WeightFile::Open(options.model));
  CKPLAN_ASSIGN_OR_RETURN(
      ConstantStore constants,
      ConstantStore::Create(backend, *step.graph, *step.operators, weights, seed));
  step.constants = std::make_unique<ConstantStore>(std::move(constants));
  return step;
}

Result<Done> WriteUninterrupted(const std::string& path, std::string_view text) {
  const auto handler = signal(SIGINT, SIG_IGN);
  Result<Done> written = WriteFiles({{path, text}});
  signal(SIGINT, handler);
  return written;
}

Result<uint64_t> SeedOf(const ExecOptions& options) {
  if (!options.seed) return uint64_t{0};
  CKPLAN_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger(*options.seed, "--seed", 0,
                                                           std::numeric_limits<int64_t>::max()));
  return static_cast<uint64_t>(seed);
}

Result<int> CountOf(const std::optional<std::string>& text, std::string_view flag, int otherwise,
                    int least) {
  if (!text) return otherwise;
  constexpr int kMost = 1'000'000;
  CKPLAN_ASSIGN_OR_RETURN(const int64_t count,
                          ParseInteger(*text, std::string(flag), least, kMost));
  return static_cast<int>(count);
}

}  // namespace ckplan
