#include "lib/files/input/plan_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/model/annotate.h"
#include "lib/files/model/file_rows.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/model_form.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/static_allocation.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// Returns the path of a plan's model if the command line names none.
Result<std::string> FindModelBeside(const std::string& plan_path, const std::string& model_name) {
  const std::filesystem::path beside = std::filesystem::path(plan_path).parent_path() / model_name;
  std::error_code fault;
  const bool is_safe_name = std::filesystem::path(model_name).filename() == model_name;
  if (is_safe_name && std::filesystem::is_regular_file(beside, fault)) return beside.string();
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("the plan is for \"{}\", which is not in the plan's folder; pass the "
                  "model after the plan, or with --model",
                  model_name));
}

// Compares the plan's statements about the model and its costs with the source.
void CompareWithSource(const ModelIdentity& identity, const PlanRequest& read, const Plan& plan,
                       std::vector<std::string>* faults) {
  const PlanRequest& planned = plan.request;
  const auto differs = [&](std::string_view field) {
    faults->push_back(fmt::format("{}: the plan contradicts the model", field));
  };
  if (planned.objective == Objective::kAuto) {
    faults->push_back("objective: must be \"time\" or \"memory\"");
  }
  if (plan.model.opsets != OpsetsInFiles(identity)) differs("opsets");
  if (planned.dims != read.dims) differs("dims");
  if (planned.cost_model != read.cost_model) differs("cost_model");
  if (planned.cost_unit != read.cost_unit) differs("cost_unit");
  if (planned.workspaces != read.workspaces) differs("workspaces");
}

// Returns why the setting can't be one of the algorithm's, as far as the plan shows. Old files have
// no setting.
std::optional<std::string> FaultOfSetting(const TensorGraph& graph, const Plan& plan,
                                          const SolverInfo& info) {
  using Kind = Knob::Kind;
  const std::optional<KnobSetting>& setting = plan.figures.setting;
  if (!setting) return std::nullopt;
  const KnobInfo* const knob = InfoOf(info.knob);
  if (knob == nullptr || knob->name != setting->knob) {
    return fmt::format("{} has no knob {}", info.name, setting->knob);
  }
  const bool is_budget = info.knob == Kind::kPaperBudget || info.knob == Kind::kSegmentBudget;
  if (is_budget && plan.figures.paper.budget != Bytes(setting->value)) {
    return fmt::format("{} is not the budget of result.paper", TextOf(*setting));
  }
  // A chain has at most as many vertices as the graph has nodes.
  const auto nodes = static_cast<int64_t>(graph.nodes().size());
  const bool is_of_chain = info.knob == Kind::kSegmentCount || info.knob == Kind::kResultsPerLevel;
  if (is_of_chain && (setting->value < 1 || setting->value > nodes)) {
    return fmt::format("{} is out of range", TextOf(*setting));
  }
  return std::nullopt;
}

// Given decisions lead to exactly one plan. Returns how this plan differs from it. `replan`
// plans a request for the plan's graph.
template <typename Replan>
std::optional<std::string> FaultOfDecisions(const Plan& plan, std::string_view algorithm,
                                            Replan replan) {
  const bool is_given = algorithm == kGivenAlgorithm;
  if (plan.request.decisions.has_value() != is_given) {
    return fmt::format("{} {}", algorithm, is_given ? "needs decisions" : "does not use decisions");
  }
  if (!is_given) return std::nullopt;
  const Result<Plan> again = replan(plan.request);
  if (!again.ok()) return again.error().message;
  if (again->schedule != plan.schedule || again->decisions != plan.decisions) {
    return "they give different steps or segments";
  }
  const PlanFigures& derived = again->figures;
  const PlanFigures& claimed = plan.figures;
  const bool is_same = derived.is_optimal == claimed.is_optimal && derived.paper == claimed.paper &&
                       derived.guarantee == claimed.guarantee;
  return is_same ? std::nullopt : std::optional<std::string>("they give different figures");
}

void ValidateAlgorithm(const TensorGraph& graph, const Plan& plan,
                       std::vector<std::string>* faults) {
  const auto solver = FindSolver(plan.request.algorithm);
  if (!solver.ok()) return faults->push_back("algorithm: " + solver.error().message);
  if ((*solver)->name == kAutoAlgorithm) {
    return faults->push_back("algorithm: must be the algorithm that auto chose");
  }
  if (const auto fault = FaultOfSetting(graph, plan, **solver)) {
    faults->push_back("setting: " + *fault);
  }
  const auto replan = [&](const PlanRequest& request) { return MakePlan(graph, request, {}); };
  if (const auto fault = FaultOfDecisions(plan, (*solver)->name, replan)) {
    faults->push_back("decisions: " + *fault);
  }
}

// True if the plan has fields that only algorithms for forward graphs set.
bool HasForwardFields(const Plan& plan) {
  const PaperFigures paper{std::nullopt, plan.figures.peak, plan.figures.overhead};
  return plan.request.objective != Objective::kTime || plan.request.setting ||
         plan.request.granularity != Granularity::kNode || plan.figures.setting ||
         plan.figures.paper != paper;
}

// The schedule must have passed the checker.
void CompareStaticAllocations(const TensorGraph& graph, const Plan& plan,
                              std::vector<std::string>* faults) {
  const auto needs = [&](ArenaStrategy strategy) {
    return StaticAllocation(graph, plan.schedule, strategy);
  };
  const StaticAllocations derived{needs(ArenaStrategy::kNone), needs(ArenaStrategy::kInplace),
                                  needs(ArenaStrategy::kSharing)};
  if (plan.figures.static_allocations == derived) return;
  faults->push_back(fmt::format("static_allocation_bytes: the schedule needs {}, {} and {}",
                                derived.none.count(), derived.inplace.count(),
                                derived.sharing.count()));
}

// Compares the plan in a model with its hash before reading it, because a modified plan may not
// even be JSON.
Result<Done> CheckFingerprint(const std::string& path, const std::optional<std::string>& plan) {
  const Result<FoundMarkers> found = ReadMarkers(path);
  if (!found.ok() || found->empty()) return Done{};  // No model, or one without markers.
  if (!plan) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("\"{}\" has markers of a plan but not the plan itself "
                                 "(ckplan.plan); run `ckplan apply` again to write it",
                                 path));
  }
  const std::string sha256 = Sha256Hex(*plan);
  for (const FoundMarker& marker : found->model) {
    if (marker.key != "ckplan.plan_sha256" || marker.value == sha256) continue;
    return MakeError(
        ErrorCode::kCheckFailed,
        fmt::format("the plan in \"{}\" was modified: its sha256 is {}, but marker "
                    "ckplan.plan_sha256 is \"{}\"; run `ckplan apply` again to rewrite it",
                    path, sha256, Printable(marker.value, kLongestName)));
  }
  return Done{};
}

// Reports faults that show that the algorithm can't have made this plan of a joint graph.
void ValidateRuns(const TrainingStep& step, const Plan& plan, bool decides_on_runs,
                  std::vector<std::string>* faults) {
  if (!decides_on_runs) {
    faults->push_back(
        fmt::format("algorithm: {} cannot plan joint graphs", plan.request.algorithm));
  }
  const auto replan = [&](const PlanRequest& again) { return MakePlan(step, again, {}); };
  if (const auto fault = FaultOfDecisions(plan, plan.request.algorithm, replan)) {
    faults->push_back("decisions: " + *fault);
  }
  if (HasForwardFields(plan)) {
    faults->emplace_back("request: has fields that only forward graphs can have");
  }
}

}  // namespace

std::vector<std::string> FindPlanFaults(const TrainingStep& step, const ModelIdentity& identity,
                                        const PlanRequest& read, const Plan& plan) {
  std::vector<std::string> faults = CheckPlan(step, plan);
  if (faults.empty() && !step.is_joint()) CompareStaticAllocations(step.forward(), plan, &faults);
  CompareWithSource(identity, read, plan, &faults);
  const auto solver = FindSolver(plan.request.algorithm);
  const bool decides_on_runs = solver.ok() && PlansRuns(**solver);
  if (step.is_joint() && (decides_on_runs || !step.has_forward())) {
    ValidateRuns(step, plan, decides_on_runs, &faults);
  } else {
    ValidateAlgorithm(step.forward(), plan, &faults);
  }
  return faults;
}

std::vector<std::string> FindPlanFileFaults(const PlanFile& file) {
  const Source& source = file.source;
  return FindPlanFaults(source.step(), source.identity, source.request, file.plan);
}

Result<std::optional<PlanJsonText>> ReadPlanInModel(const std::string& model_path) {
  CKPLAN_ASSIGN_OR_RETURN(std::optional<std::string> text, ReadEmbeddedPlan(model_path));
  CKPLAN_RETURN_IF_ERROR(CheckFingerprint(model_path, text));
  if (!text) return std::optional<PlanJsonText>();
  return std::optional(PlanJsonText{std::move(*text), "the plan in " + model_path, true});
}

Result<PlanJsonText> ReadPlanText(const std::string& path) {
  if (IsGraphFile(path)) {  // Anything that is JSON.
    CKPLAN_ASSIGN_OR_RETURN(std::string text, ReadJsonFile(path, "plan.json"));
    return PlanJsonText{std::move(text), path, false};
  }
  CKPLAN_ASSIGN_OR_RETURN(std::optional<PlanJsonText> embedded, ReadPlanInModel(path));
  if (embedded) return std::move(*embedded);
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("\"{}\" is neither a plan file nor a model with a plan in it; "
                               "`ckplan plan MODEL -o plan.json` writes a plan",
                               path));
}

Result<PlanFile> ReadPlanFile(const std::string& plan_path, const std::string& model_path,
                              const FilesOfPlan& files) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanJsonText text, ReadPlanText(plan_path));
  CKPLAN_ASSIGN_OR_RETURN(const PlanHeader header, ReadPlanHeader(text.text, text.where));
  std::string path = model_path;
  if (path.empty() && text.is_embedded) path = plan_path;
  if (path.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(path, FindModelBeside(plan_path, header.model.name));
  }
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, RequestForReread(header.request, files));
  CKPLAN_ASSIGN_OR_RETURN(Source source, LoadSource(path, request, &header.model));
  CKPLAN_ASSIGN_OR_RETURN(Plan plan, ReadPlanJson(text.text, source.step(), text.where));
  return PlanFile{std::move(source), std::move(plan), path};
}

bool IsAnotherPlan(const std::string& path, const std::string& earlier) {
  std::error_code fault;
  if (!std::filesystem::is_regular_file(path, fault)) return false;
  if (!IsGraphFile(path)) {
    if (IsGraphFile(earlier)) return false;
    const Result<std::optional<std::string>> embedded = ReadEmbeddedPlan(path);
    return embedded.ok() && embedded->has_value();
  }
  const Result<std::string> text = ReadWholeFile(path);
  if (!text.ok()) return false;
  return HasRequest(*text);
}

Result<PlanDigest> ReadPlanDigestFile(const std::string& plan_path) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanJsonText text, ReadPlanText(plan_path));
  return ReadPlanDigest(text.text, text.where);
}

namespace {

// Returns the node of the whole model where the plan's graph begins: it may be a stage.
NodeId FirstNodeOf(const TensorGraph& stage, const TensorGraph& whole) {
  if (stage.nodes().empty()) return NodeId(0);
  const std::string& name = stage.node(NodeId(0)).name;
  for (const NodeId id : whole.nodes().ids()) {
    if (whole.node(id).name == name) return id;
  }
  return NodeId(0);
}

}  // namespace

Result<Annotation> AnnotationOf(const Source& source, const Plan& plan,
                                const std::string& model_path, std::string plan_json) {
  PlanRequest request = source.request;
  request.cost_model = "unit";  // Markers contain neither costs nor workspaces.
  request.workspaces.clear();
  CKPLAN_ASSIGN_OR_RETURN(const ModelSource read, LoadModelSource(model_path, request));
  const std::vector<FileRow> rows =
      FileRowsOf(read.model, read.lowered, FirstNodeOf(source.graph, read.lowered.graph),
                 source.graph.nodes().size());
  CKPLAN_ASSIGN_OR_RETURN(const Plan form, ToModelFormWithCopies(source, plan));
  return MakeAnnotation(rows, source.graph, form, std::move(plan_json));
}

Result<std::vector<std::string>> ValidateMarkers(const PlanFile& file,
                                                 const std::string& plan_path) {
  if (IsGraphFile(plan_path)) return std::vector<std::string>();
  if (!file.source.is_model) {
    return std::vector<std::string>{"markers: only plans for ONNX models have markers"};
  }
  CKPLAN_ASSIGN_OR_RETURN(PlanJsonText text, ReadPlanText(plan_path));
  CKPLAN_ASSIGN_OR_RETURN(const FoundMarkers found, ReadMarkers(plan_path));
  CKPLAN_ASSIGN_OR_RETURN(
      const Annotation expected,
      AnnotationOf(file.source, file.plan, file.model_path, std::move(text.text)));
  return FindMarkerFaults(found, expected);
}

}  // namespace ckplan
