// ckplan modules: which modules to wrap in torch.utils.checkpoint to come near a plan, and with
// --for, which plan of another runtime comes near it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/runtime_output.h"
#include "cli/ckplan/saved_plan.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/plan/diff.h"
#include "lib/planning/planner/model_form.h"
#include "lib/planning/planner/module_plan.h"
#include "lib/planning/runtimes/runtime_plan.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// "BasicBlock" of "torchvision.models.resnet.BasicBlock".
std::string ShortClass(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::string ModulesJson(const Plan& plan, const ModulePlan& found) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("model").Text(plan.model.name);
  json.Key("sha256").Text(plan.model.sha256);
  json.Key("algorithm").Text(plan.request.algorithm);
  json.Key("budget_bytes").Amount(found.budget);
  json.Key("fits").Boolean(found.fits());
  json.Key("cost_unit").Text(plan.request.cost_unit);
  json.Key("step_cost").Amount(plan.figures.forward_cost + plan.figures.backward_cost);
  json.Key("keep_all").BeginObject(JsonLayout::kInline);
  json.Key("peak_bytes").Amount(plan.figures.baseline_peak).Key("overhead_cost").Integer(0).End();
  json.Key("plan").BeginObject(JsonLayout::kInline);
  json.Key("peak_bytes").Amount(plan.figures.peak);
  json.Key("overhead_cost").Amount(plan.figures.overhead).End();
  json.Key("wrapped").BeginObject(JsonLayout::kInline);
  json.Key("peak_bytes").Amount(found.peak);
  json.Key("overhead_cost").Amount(found.overhead).End();
  json.Key("modules").BeginArray(JsonLayout::kLines);
  for (const WrappedModule& module : found.modules) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("path").Text(module.path).Key("class").Text(module.class_name);
    json.Key("calls").Integer(module.call_count).Key("nodes").Integer(module.node_count);
    json.Key("recomputed_bytes").Amount(module.recomputed);
    json.Key("overhead_cost").Amount(module.overhead).End();
  }
  json.End().End();
  return std::move(json).Finish();
}

TextTable ModulesTable(const Plan& plan, const ModulePlan& found) {
  TextTable table;
  table.columns = {{"module", false, TableColumn::Fit::kElide},
                   {"class"},
                   {"calls", true, TableColumn::Fit::kWhole, 1},
                   {"nodes", true},
                   {"recomputed", true},
                   {"time", true}};
  for (const WrappedModule& module : found.modules) {
    table.rows.push_back({module.path.empty() ? "(the model)" : module.path,
                          ShortClass(module.class_name), std::to_string(module.call_count),
                          std::to_string(module.node_count), HumanBytes(module.recomputed),
                          SignedPercent(AddedShare(plan, module.overhead))});
  }
  return table;
}

// A sentence on the cost of wrapping whole modules.
std::string VerdictText(const Plan& plan, const ModulePlan& found) {
  if (!found.fits()) {
    return fmt::format(
        "no set of modules fits in {}; the best found needs {} more; --for finds a plan that "
        "another runtime can run: {}",
        HumanBytes(found.budget), HumanBytes(found.peak - found.budget),
        fmt::join(RuntimeKindNames(), ", "));
  }
  if (found.modules.empty()) {
    return fmt::format("no module needs wrapping: the step fits in {} as it is",
                       HumanBytes(found.budget));
  }
  const double lost = AddedShare(plan, found.overhead) - StepOverheadRatio(plan.figures);
  return fmt::format(
      "wrapping these in torch.utils.checkpoint fits in {} and changes step time by {} compared "
      "with the plan",
      HumanBytes(found.budget), SignedPercent(lost));
}

std::string ModulesText(const Plan& plan, const ModulePlan& found, const Terminal& terminal) {
  std::string text = fmt::format("{}   {}\n\n", Printable(plan.model.name, kLongestName),
                                 Printable(plan.request.algorithm));
  if (!found.modules.empty()) {
    text += ModulesTable(plan, found).Text(0, terminal.table_width()) + "\n";
  }
  text +=
      BesidePlanTable(plan, "modules", found.peak, found.overhead).Text(0, terminal.table_width());
  return text + "\n" + VerdictText(plan, found) + "\n";
}

// The memory limit for other runtimes' plans: the plan's budget, or its peak if that is higher or
// there is no budget.
Bytes BudgetOf(const Plan& plan) {
  return std::max(plan.figures.peak, plan.request.budget.in_bytes().value_or(Bytes(0)));
}

Result<std::string> FormatForRuntime(const Options& options, const PlanFile& file,
                                     const Terminal& terminal) {
  CKPLAN_ASSIGN_OR_RETURN(const RuntimeKind kind, FindRuntimeKind(*options.runtime));
  const JointGraph graph = NamedStep(file.source.step(), file.source.modules);
  CKPLAN_ASSIGN_OR_RETURN(const RuntimePlan found,
                          FindRuntimePlan(graph, kind, BudgetOf(file.plan)));
  return options.format == "json" ? RuntimePlanJson(file.plan, found)
                                  : RuntimePlanText(file.plan, found, terminal);
}

Result<std::string> Modules(const Options& options, const PlanFile& file,
                            const Terminal& terminal) {
  const TrainingStep step = file.source.step();
  if (!step.has_forward()) {
    return MakeError(ErrorCode::kUsage,
                     "this plan is for a joint graph, not for a model's modules; --for finds a "
                     "plan for another runtime");
  }
  CKPLAN_ASSIGN_OR_RETURN(
      const ModulePlan found,
      FindModulePlan(step, file.source.modules, ToModelForm(file.source, file.plan)));
  return options.format == "json" ? ModulesJson(file.plan, found)
                                  : ModulesText(file.plan, found, terminal);
}

}  // namespace

void AddModulesOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model of the plan (default: beside it)", &options.source);
  line.Value("--for", "KIND",
             fmt::format("find the best plan that another runtime can run: {}",
                         fmt::join(RuntimeKindNames(), ", ")),
             &options.runtime);
  options.request.Add(line, "cost_model");
  options.request.Add(line, "workspaces");
  line.Choice("-f,--format", {"text", "json"}, "output format", &options.format);
  AddCommonOptions(line, options);
}

Result<ExitCode> RunModules(const Options& options, const Screen& screen) {
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(options.plan, options.source, options.request.PlanFiles()));
  progress.Clear();
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  CKPLAN_RETURN_IF_ERROR(CheckSavedPlan(file, options.plan));
  progress.Stage("choosing modules");
  const Result<std::string> text = options.runtime ? FormatForRuntime(options, file, screen.out)
                                                   : Modules(options, file, screen.out);
  progress.Clear();
  if (!text.ok()) return text.error();
  CKPLAN_RETURN_IF_ERROR(screen.Print(*text));
  return ExitCode::kOk;
}

}  // namespace ckplan
