// ckplan report: plans as an HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/saved_plan.h"
#include "cli/common/memory_limit.h"
#include "lib/files/emit/report.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/pareto.h"

namespace ckplan {
namespace {

constexpr size_t kMaxPlans = 8;  // The page has letters for this many plans.

// A plan file with everything it refers to.
struct ReadPlan {
  ReadPlan(std::string file_name, PlanFile read)
      : name(std::move(file_name)), file(std::move(read)) {
    traced = std::make_unique<TracedPlan>(TracePlan(file.source.step(), file.plan));
  }

  std::string name;
  PlanFile file;
  std::unique_ptr<TracedPlan> traced;
};

using ReadPlans = std::vector<std::unique_ptr<ReadPlan>>;

Result<std::vector<PlanPath>> PathsOf(const Options& options) {
  if (!options.output) {
    return MakeError(ErrorCode::kUsage, "-o is missing; name the page to write: -o report.html");
  }
  CKPLAN_ASSIGN_OR_RETURN(std::vector<PlanPath> paths, PlanPathsOf(options));
  if (paths.size() <= kMaxPlans) return paths;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("a report shows at most {} plans, not {}", kMaxPlans, paths.size()));
}

std::vector<InputFile> InputsOfPlan(const PlanPath& path) {
  std::vector<InputFile> inputs = {{"the plan", path.plan}};
  if (path.model.empty()) return inputs;
  for (InputFile& input : InputsOf(path.model)) inputs.push_back(std::move(input));
  return inputs;
}

Result<ReadPlans> ReadAll(const std::vector<PlanPath>& paths, const Options& options,
                          const Outputs& outputs, const Screen& screen) {
  Progress progress(screen.shows_progress);
  ReadPlans all;
  for (const PlanPath& path : paths) {
    progress.Stage(fmt::format("reading {}", path.plan));
    CKPLAN_RETURN_IF_ERROR(outputs.CheckApartFrom(InputsOfPlan(path)));
    CKPLAN_ASSIGN_OR_RETURN(PlanFile file,
                            ReadPlanFile(path.plan, path.model, options.request.PlanFiles()));
    CKPLAN_RETURN_IF_ERROR(outputs.CheckApartFrom(InputsOfPlan({path.plan, file.model_path})));
    progress.Clear();
    for (const std::string& warning : file.source.warnings) screen.Warn(warning);
    CKPLAN_RETURN_IF_ERROR(CheckSavedPlan(file, path.plan));
    all.push_back(std::make_unique<ReadPlan>(std::filesystem::path(path.plan).filename().string(),
                                             std::move(file)));
  }
  return all;
}

PlanRequest CurveRequest(const ReadPlan& plan) {
  PlanRequest request = plan.file.source.request;
  const PlanRequest& planned = plan.file.plan.request;
  request.algorithm = kBestAlgorithm;
  request.effort = SearchEffort::kQuick;
  request.order = planned.order;
  request.granularity = Granularity::kNode;
  request.objective = Objective::kAuto;
  request.uses_liveness = true;
  request.decisions.reset();
  request.setting.reset();
  request.budget = request.total_budget = request.memory = request.paper_budget = Budget();
  return request;
}

// Names a curve by "best" and the properties in which the plans differ; equal names share a curve.
std::string NameOfCurve(const ReadPlan& plan) {
  std::string name = fmt::format("best, effort quick, of {}", plan.file.plan.model.name);
  const PlanRequest request = CurveRequest(plan);
  for (const RequestField& field : RequestFields()) {
    const bool is_named = field.name == "algorithm" || field.name == "effort" ||
                          field.name == "optimizer" || field.name == "master_weights" ||
                          field.name == "cost_unit" || IsDefault(field, request);
    if (is_named) continue;
    for (const std::string& text : TextsOf(field, request)) name += ", " + text;
  }
  return name;
}

// The curves of `ckplan pareto` at effort quick for each graph of the plans.
Result<std::vector<ReportCurve>> TraceCurves(const ReadPlans& plans, const SolveLimits& limits,
                                             const Screen& screen) {
  Progress progress(screen.shows_progress);
  std::vector<ReportCurve> curves;
  std::vector<std::pair<std::string, std::string>> done;
  for (size_t i = 0; i < plans.size(); ++i) {
    const ReadPlan& plan = *plans[i];
    const std::pair key(plan.file.source.identity.sha256, NameOfCurve(plan));
    if (std::find(done.begin(), done.end(), key) != done.end()) continue;
    done.push_back(key);
    if (plan.file.source.step().node_count() == 0) continue;
    progress.Stage("computing the curve of memory against time");
    Result<ParetoCurve> curve = TracePareto(plan.file.source, CurveRequest(plan), limits);
    ReportCurve shown{key.second, {}, "", i};
    if (curve.ok()) {
      shown.points = std::move(curve)->points;
    } else if (curve.error().code == ErrorCode::kTimeout) {
      return std::move(curve).error();
    } else {
      shown.failure = MessageOf(curve.error());
    }
    curves.push_back(std::move(shown));
  }
  return curves;
}

Result<std::string> PageOf(const std::vector<PlanPath>& paths, const Options& options,
                           const Outputs& outputs, const SolveLimits& limits,
                           const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const ReadPlans plans, ReadAll(paths, options, outputs, screen));
  std::vector<ReportCurve> curves;
  if (!options.has_no_pareto) {
    CKPLAN_ASSIGN_OR_RETURN(curves, TraceCurves(plans, limits, screen));
  }
  std::vector<ReportPlan> shown;
  for (const auto& plan : plans) shown.push_back({plan->name, plan->traced.get()});
  return WriteReport(shown, curves);
}

}  // namespace

void AddReportOptions(CommandLine& line, Options& options) {
  line.Positionals(
      "PLAN",
      "plan files, or models annotated with one; after a single plan you may name its MODEL",
      &options.plans);
  line.Value("-o,--output", "FILE", "the page to write; - is standard output", &options.output);
  line.List("--model", "MODEL", "the model of the plans, or of each (default: beside the plan)",
            &options.models);
  options.request.Add(line, "cost_model");
  options.request.Add(line, "workspaces");
  line.Flag("--no-pareto",
            "leave out the curve of memory against time, which takes seconds to compute",
            &options.has_no_pareto);
  AddTimeLimitOption(line, options);
  AddCommonOptions(line, options);
}

Result<ExitCode> RunReport(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<PlanPath> paths, PathsOf(options));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "html", EmitSubject::kPlan));
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Result<std::string> report = CatchStop([&] {
    return PageOf(paths, options, outputs, {interrupt.token(), MemoryLimit()}, screen);
  });
  if (interrupt.was_interrupted()) return Interrupted();
  CKPLAN_ASSIGN_OR_RETURN(const std::string page, InTime(std::move(report), options));
  const StopsSuspended no_stops;  // The page is complete.
  if (outputs.TakesStdout()) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(page));
    return ExitCode::kOk;
  }
  CKPLAN_RETURN_IF_ERROR(WriteFiles({{*options.output, page}}));
  screen.Note(fmt::format("wrote {}   checked: ok", *options.output));
  return ExitCode::kOk;
}

}  // namespace ckplan
