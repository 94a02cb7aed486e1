// ckplan compare: many algorithms, for one model or several, in one table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/compare_models.h"
#include "cli/ckplan/compare_text.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"
#include "cli/common/request_values.h"
#include "lib/base/stop.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"

namespace ckplan {
namespace {

constexpr std::string_view kAll = "all";

// The work limit of a paper's algorithm without a time limit (stop.h), about ten seconds. `best`
// has its own, --effort.
constexpr int64_t kWorkOfEach = 40'000'000;

// ---- The command line ----

// The algorithms in registry order, each once; the request's decisions count as one.
// Returns kUsage for an unknown name.
Result<std::vector<const SolverInfo*>> AlgorithmsOf(const std::string& list,
                                                    const PlanRequest& request) {
  std::set<std::string_view> names;
  if (request.decisions) names.insert(kGivenAlgorithm);
  for (const std::string& name : PartsOfList(list)) {
    if (name == kAll) {
      for (const SolverInfo& info : AllSolvers()) names.insert(info.name);
      if (request.offload) {
        for (const SolverInfo& info : OffloadSolvers()) names.insert(info.name);
      }
      names.insert(kBestAlgorithm);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(name));
    names.insert(info->name);
  }
  std::vector<const SolverInfo*> algorithms;
  for (const SolverInfo* info : ListedAlgorithms()) {
    if (names.count(info->name) != 0) algorithms.push_back(info);
  }
  return algorithms;
}

Result<CompareJob> ReadJob(const Options& options) {
  CompareJob job;
  for (const std::string& path : options.sources) {
    const bool is_known = std::find(job.paths.begin(), job.paths.end(), path) != job.paths.end();
    if (!is_known) job.paths.push_back(path);
  }
  CKPLAN_ASSIGN_OR_RETURN(job.grid, ReadGrid(options.request));
  CKPLAN_ASSIGN_OR_RETURN(
      job.algorithms,
      AlgorithmsOf(options.algorithms.value_or(std::string(kAll)), job.grid.request));
  job.names_algorithms = options.algorithms.has_value();
  CKPLAN_ASSIGN_OR_RETURN(job.time_limit, TimeLimitOf(options));
  return job;
}

// ---- Planning ----

// The budget of the requested kind that a plan exactly meets.
Bytes BudgetOf(const TrainingStep& step, const PlanRequest& request, const Plan& plan) {
  const PlanFigures& figures = plan.figures;
  if (request.paper_budget.is_given()) return *figures.paper.budget;
  if (request.memory.is_given()) {
    return MinMemoryFor({step, request, Bytes(0)}, plan.schedule, figures.peak);
  }
  return figures.peak + (request.total_budget.is_given() ? TotalConstants(figures) : Bytes(0));
}

// Asks for the smallest feasible budget of the requested kind.
PlanRequest RequestMinBudget(PlanRequest request) {
  const bool is_paper_budget = request.paper_budget.is_given();
  Budget& budget = is_paper_budget ? request.paper_budget : PeakBudgetIn(&request);
  budget.kind = Budget::Kind::kMin;
  return request;
}

// One row for each objective of an algorithm that has two, unless the request names one.
std::vector<Objective> ObjectivesOf(const SolverInfo& info, const PlanRequest& request) {
  if (!info.takes_objective || request.objective != Objective::kAuto) return {request.objective};
  return {Objective::kTime, Objective::kMemory};
}

// The parts of a plan that tables show, since whole plans of large models add up.
Plan KeepFigures(const Plan& plan) {
  Plan rest;
  rest.request = plan.request;
  rest.model = plan.model;
  rest.figures = plan.figures;
  return rest;
}

// Plans one model with every algorithm under every budget.
class ComparisonPlanner {
 public:
  ComparisonPlanner(const CompareJob& job, const std::optional<std::string>& time_limit_text,
                    Progress* progress, Comparison* comparison)
      : job_(job),
        time_limit_text_(time_limit_text),
        progress_(progress),
        comparison_(comparison) {}

  // Returns false if Ctrl-C has ended the planning.
  bool PlanAll() {
    const TrainingStep step = comparison_->source->step();
    for (const TypedBudget& budget : job_.grid.budgets) {
      for (const SolverInfo* info : job_.algorithms) {
        // Keeps the algorithms that can plan the graph; one named explicitly reports itself that it
        // cannot.
        if (!job_.names_algorithms && !CanPlan(*info, step)) continue;
        for (const Objective objective : ObjectivesOf(*info, job_.grid.request)) {
          if (!PlanBy(*info, budget, objective)) return false;
        }
      }
    }
    return true;
  }

 private:
  bool PlanBy(const SolverInfo& info, const TypedBudget& budget, Objective objective) {
    progress_->Stage(StageOf(info, budget));
    const Interrupt interrupt(job_.time_limit);
    PlanRequest request = job_.grid.With(budget, comparison_->request);
    request.algorithm = info.name;
    request.objective = objective;
    if (request.algorithm != kGivenAlgorithm) request.decisions.reset();
    AlgorithmRow row = RowOf(info, request, interrupt);
    row.budget_text = budget.text;
    comparison_->rows.push_back(std::move(row));
    return !interrupt.was_interrupted();
  }

  std::string StageOf(const SolverInfo& info, const TypedBudget& budget) const {
    std::string text = "planning";
    if (job_.has_several_models()) text += " " + comparison_->model;
    if (job_.grid.sizes.size() > 1) {
      for (const auto& [name, size] : comparison_->dims) text += fmt::format(" {}={}", name, size);
    }
    if (job_.grid.budgets.size() > 1) text += " within " + budget.text;
    return fmt::format("{} by {}", text, info.name);
  }

  AlgorithmRow RowOf(const SolverInfo& info, const PlanRequest& request,
                     const Interrupt& interrupt) {
    AlgorithmRow row;
    row.info = &info;
    row.algorithm = info.name;
    if (request.objective == Objective::kMemory) row.algorithm += ":memory";
    row.guarantee = NameOf(info.guarantee);
    row.has_time_limit = time_limit_text_.has_value();
    const auto start = std::chrono::steady_clock::now();
    const Result<Plan> plan = WithinLimits(info, request, interrupt);
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (plan.ok()) {
      row.plan = KeepFigures(*plan);
      row.budget = plan->request.budget.in_bytes();
      return row;
    }
    row.budget = BudgetInBytes(request, comparison_->baseline_peak,
                               CoveredByBudget(comparison_->source->step(), request));
    row.error = plan.error();
    row.failure = row.error->code == ErrorCode::kTimeout
                      ? fmt::format("{} has no plan {}", row.algorithm, LimitText())
                      : MessageOf(*row.error);
    if (row.error->code == ErrorCode::kInfeasible) {
      row.min_budget = SearchMinBudget(info, row.algorithm, request, interrupt);
    }
    return row;
  }

  std::string LimitText() const {
    if (time_limit_text_) return fmt::format("within the time limit of {}", *time_limit_text_);
    return "within its work limit; --time-limit TIME raises it";
  }

  Result<Plan> WithinLimits(const SolverInfo& info, const PlanRequest& request,
                            const Interrupt& interrupt) {
    const auto plan_until = [&](std::stop_token stop) {
      return MakePlan(*comparison_->source, request, {std::move(stop), MemoryLimit()});
    };
    if (time_limit_text_ || info.name == kBestAlgorithm) return plan_until(interrupt.token());
    WorkLimit limit(interrupt.token(), kWorkOfEach);
    std::optional<Result<Plan>> plan = limit.Run(plan_until);
    if (!plan) return MakeError(ErrorCode::kTimeout, "stopped");
    return *std::move(plan);
  }

  // The least budget does not depend on the one that was too small. Nothing is returned if the
  // search for it is stopped.
  std::optional<Bytes> SearchMinBudget(const SolverInfo& info, const std::string& algorithm,
                                       const PlanRequest& request, const Interrupt& interrupt) {
    const auto found = least_.find(algorithm);
    if (found != least_.end()) return found->second;
    const Result<Plan> plan = WithinLimits(info, RequestMinBudget(request), interrupt);
    if (!plan.ok() || plan->figures.guarantee.starts_with(kStoppedEarly)) return std::nullopt;
    const Bytes least = BudgetOf(comparison_->source->step(), request, *plan);
    return least_.emplace(algorithm, least).first->second;
  }

  const CompareJob& job_;
  const std::optional<std::string>& time_limit_text_;
  Progress* progress_;
  Comparison* comparison_;
  std::map<std::string, Bytes> least_;
};

// ---- The result ----

std::string Rendered(const ComparisonSet& set, std::string_view format, const Screen& screen) {
  const Comparison& first = set.all.front();
  const bool is_single = set.is_single();
  if (format == "md") return is_single ? CompareMarkdown(first) : CompareSeveralMarkdown(set);
  if (format == "csv") return CompareCsv(set);
  if (format == "latex") return is_single ? CompareLatex(first) : CompareSeveralLatex(set);
  if (format != "text") return CompareJson(set);
  return is_single ? CompareText(first, set.shows_times, screen.out)
                   : CompareSeveralText(set, screen.out);
}

// A number without a unit may be why no algorithm has a plan.
void NoteBareBudgets(const Options& options, const ComparisonSet& set, const Screen& screen) {
  if (set.budget_field.empty()) return;
  std::set<std::string> noted;
  for (const RequestFlags& flags : options.request.EachBudget()) {
    for (const Comparison& comparison : set.all) {
      const std::string budget = flags.ValueOf(set.budget_field).value_or("");
      const bool is_met = std::any_of(
          comparison.rows.begin(), comparison.rows.end(),
          [&](const AlgorithmRow& row) { return row.plan && row.budget_text == budget; });
      if (comparison.unread || is_met) continue;
      const std::string hint = flags.BareBudgetHint(comparison.baseline_peak);
      if (!hint.empty() && noted.insert(hint).second) screen.Note(hint);
    }
  }
}

// Why a comparison has no plan at all; null if it has one.
const Error* FailureOf(const Comparison& comparison) {
  if (comparison.unread) return &*comparison.unread;
  return comparison.has_plan() ? nullptr : &*comparison.rows.front().error;
}

// Prints on standard error what the output does not say. Returns the highest exit code.
ExitCode ReportSeveral(const ComparisonSet& set) {
  const Error* worst = nullptr;
  size_t failing = 0;
  std::set<std::string> printed;
  for (const Comparison& comparison : set.all) {
    const Error* const error = FailureOf(comparison);
    if (error == nullptr) continue;
    ++failing;
    if (worst == nullptr || ExitCodeOf(error->code) > ExitCodeOf(worst->code)) worst = error;
    const bool is_shown = !comparison.unread && CurrentMessageForm() == MessageForm::kText;
    if (!is_shown && printed.insert(error->message).second) PrintError(*error, "ckplan");
  }
  if (worst == nullptr) return ExitCode::kOk;
  PrintError(MakeError(worst->code, fmt::format("{} of {} comparisons {} no plan", failing,
                                                set.all.size(), failing == 1 ? "has" : "have")),
             "ckplan");
  return ExitCodeOf(worst->code);
}

Result<ExitCode> Report(const ComparisonSet& set) {
  if (set.has_several) return ReportSeveral(set);
  const Error* const error = FailureOf(set.all.front());
  if (error == nullptr) return ExitCode::kOk;
  // The text table shows it already.
  if (CurrentMessageForm() == MessageForm::kJson) return *error;
  return ExitCodeOf(error->code);
}

}  // namespace

void AddCompareOptions(CommandLine& line, Options& options) {
  line.Positionals("MODEL", "ONNX models, or graph.json files; - reads a graph.json from stdin",
                   &options.sources);
  line.Value("-a,--algo", "NAME,...|all", "the algorithms (default all); see `ckplan algos`",
             &options.algorithms);
  options.request.Add(line, "decisions", "",
                      "add a row for your own decisions: what to keep, or an order");
  options.request.Add(line, "effort");
  options.request.Add(line, "order");
  options.request.Add(line, "budget", "SIZE|P%|min|balanced,...",
                      "limits on the peak: 16GiB, 60% of keep-all's, min, balanced");
  options.request.Add(line, "total_budget", "SIZE|P%|balanced,...",
                      "limits on the peak plus parameters, optimizer state and inputs");
  options.request.Add(line, "memory", "SIZE|DEVICE,...",
                      "memory of the device, for all that training needs: 8GiB, rtx4090");
  options.request.Add(line, "added_time", "P%,...",
                      "save as much memory as possible while slowing a step by at most P%: 5%,10%");
  options.request.Add(line, "paper_budget", "SIZE|min,...",
                      "limits on the objective of the algorithm's paper");
  options.request.Add(line, RequestFlags::Group::kPlanning);
  line.Value("--time-limit", "TIME",
             "time limit for reading and for each algorithm (default: none; work is limited)",
             &options.time_limit);
  options.request.Add(line, "dims", "NAME=N,...",
                      "bind a symbolic dimension: N=32,64 (repeatable)");
  options.request.Add(line, RequestFlags::Group::kReading);
  line.Value("-o,--output", "FILE", "write the JSON there; - is standard output", &options.output);
  line.Choice("-f,--format", {"text", "json", "md", "csv", "latex"}, "format of the table",
              &options.format);
  AddCommonOptions(line, options);
  line.Flag("-v,--verbose", "show solve times even if the output isn't a terminal",
            &options.is_verbose);
}

Result<ExitCode> RunCompare(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const CompareJob job, ReadJob(options));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  ComparisonSet set;
  CKPLAN_ASSIGN_OR_RETURN(auto read, ReadModels(options, job, screen));
  if (!read) return Interrupted();
  set.all = *std::move(read);
  set.has_several = job.has_several();
  set.budget_field = job.grid.budget_field;
  for (const TypedBudget& budget : job.grid.budgets) set.budgets.push_back(budget.text);
  set.shows_times = options.format == "text" && (screen.out.is_tty || screen.is_verbose);
  Progress progress(screen.shows_progress);
  for (Comparison& comparison : set.all) {
    if (comparison.unread) continue;
    const bool is_whole =
        ComparisonPlanner(job, options.time_limit, &progress, &comparison).PlanAll();
    if (is_whole) continue;
    progress.Clear();
    return Interrupted();
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(ReportTable(options, outputs, screen, [&](std::string_view format) {
    return Rendered(set, format, screen);
  }));
  NoteBareBudgets(options, set, screen);
  return Report(set);
}

}  // namespace ckplan
