// ckplan plan: one model, one algorithm, one plan.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/ckplan/suggestions.h"
#include "cli/common/memory_limit.h"
#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/ckplan.h"
#include "lib/files/emit/emitters.h"
#include "lib/planning/planner/alternatives.h"
#include "lib/planning/planner/peak_budget.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Puts the verdict before the plan's summary, and the accounting after it.
std::string AddAccounting(const Source& source, const Plan& plan, const std::string& summary,
                          const Terminal& terminal) {
  const Budget& memory = source.request.memory;
  const Accounting accounting = AccountForPlan(source, plan);
  std::optional<double> added_share = StepOverheadRatio(plan.figures);
  if (plan.figures.overhead == Cost(0) && AccountForKeepAll(source).need() <= memory.bytes) {
    added_share.reset();
  }
  return Folded(FitLine(accounting, memory, added_share) + "\n\n", terminal.table_width()) +
         summary + AccountingTable(accounting, "memory").Text(2, terminal.table_width()) + "\n";
}

Result<std::string> Rendered(const Options& options, const Source& source, const Plan& plan,
                             double solve_seconds, const Screen& screen) {
  if (options.format == "json") return WritePlanJson(plan, source.step());
  if (options.format == "md") return PlanMarkdown(source, plan);
  if (options.format == "csv") return PlanCsv(source, plan);
  const std::string field = options.request.BudgetField();
  const SummaryLimit limit = field == "memory"         ? SummaryLimit::kNeed
                             : field == "total_budget" ? SummaryLimit::kTotal
                                                       : SummaryLimit::kPeak;
  const SummaryRequest request{options.request.Typed(field.empty() ? "budget" : field), limit,
                               solve_seconds, screen.is_verbose};
  const std::string text = PlanText(source, plan, request, screen.out) + "\n";
  return field == "memory" ? AddAccounting(source, plan, text, screen.out) : text;
}

// True without a budget or an output file: show only the trade-off.
bool ShowsOnlyCurve(const Options& options, const PlanRequest& request, const Outputs& outputs,
                    const Plan& plan) {
  const bool has_limit = PeakBudgetOf(request).is_given() || request.added_time.is_given();
  return request.algorithm == kBestAlgorithm && !has_limit && outputs.empty() &&
         options.format == "text" && !options.is_verbose && plan.figures.curve.size() > 1;
}

// A command for a plan on the curve, the one that adds about 10 %.
std::string BudgetHint(const TypedArguments& typed, const Plan& plan) {
  const double percent =
      std::ceil(100 * Ratio(plan.figures.peak.count(), plan.figures.baseline_peak.count()));
  return "next: ckplan plan" +
         typed.With(fmt::format(" --budget {}% -o {}", percent, typed.NewFile("plan")));
}

// A command line for the next step, or "" if the model cannot be read again.
std::string NextHint(const Options& options, const Source& source, const Outputs& outputs) {
  const std::string plan_file = outputs.FileOf("json");
  if (plan_file.empty()) {
    return fmt::format("next: add -o {} to write the plan", options.typed.NewFile("plan"));
  }
  if (!options.typed.CanRepeat()) return "";
  std::string files;  // Needed to read a plan again.
  for (const std::string_view field : {"cost_model", "workspaces"}) {
    if (const auto value = options.request.ValueOf(field)) {
      files += fmt::format(" {} {}", FlagOf(std::string(field)), ShellWord(*value));
    }
  }
  files += options.typed.Of({"--memory-limit", "--config", "--no-config"});
  if (!source.is_model) {
    return fmt::format("next: ckplan check {} {}{}", PathWord(plan_file), PathWord(options.source),
                       files);
  }
  const std::string planned =
      std::filesystem::path(source.identity.name).stem().string() + ".planned.onnx";
  return fmt::format("next: ckplan apply {} {}{} -o {}", PathWord(plan_file),
                     PathWord(options.source), files, PathWord(planned));
}

Result<Plan> Solve(const Source& source, const PlanRequest& request, const Interrupt& interrupt,
                   Shortage* shortage) {
  const SolveLimits limits{interrupt.token(), MemoryLimit()};
  Result<Plan> plan = MakePlan(source, request, limits, shortage);
  if (plan.ok() || plan.error().code != ErrorCode::kInfeasible) return plan;
  return AddAlternative(std::move(plan).error(), source.step(), request, limits);
}

// Reports what stopped the search, why it had no choice, and which algorithm --algo auto took.
void ReportChoice(const PlanRequest& request, const Source& source, const Plan& plan,
                  const Shortage& shortage, const Interrupt& interrupt, const Options& options,
                  const Screen& screen) {
  const std::string limit = options.time_limit.value_or("");
  const std::string stop = interrupt.was_interrupted()
                               ? "it was interrupted"
                               : fmt::format("the time limit of {} passed", limit);
  for (const std::string& name : shortage.of_time) {
    screen.Warn(fmt::format("skipped {}: {} before it found a plan", name, stop));
  }
  for (const std::string& name : shortage.of_memory) {
    screen.Warn(
        fmt::format("skipped {}: it needs more memory than {}", name, DescribeMemoryLimit().limit));
  }
  if (plan.figures.guarantee.starts_with(kStoppedEarly)) {
    screen.Warn(fmt::format("{} before the search finished; this is the best plan so far", stop));
  }
  if (request.algorithm != kAutoAlgorithm) {
    if (const std::string why = WhyNothingToCut(source, plan); !why.empty()) screen.Warn(why);
    const std::string better =
        BetterAtFrontiers(source, request, plan, options, {interrupt.token(), MemoryLimit()});
    if (!better.empty()) screen.Note(better);
    return;
  }
  screen.Note(fmt::format("auto: {} has the best plan", plan.request.algorithm));
}

Result<ExitCode> Report(const Options& options, const Outputs& outputs, const Source& source,
                        const PlanRequest& request, const Plan& plan, double solve_seconds,
                        const Screen& screen) {
  if (ShowsOnlyCurve(options, request, outputs, plan)) {
    if (screen.is_quiet) return ExitCode::kOk;
    CKPLAN_RETURN_IF_ERROR(screen.Print(CurveText(source, plan, screen.out) + "\n"));
    if (options.typed.CanRepeat()) screen.Note(BudgetHint(options.typed, plan));
    return ExitCode::kOk;
  }
  CKPLAN_RETURN_IF_ERROR(outputs.Write(
      EmitSourceOf(source, &plan, AnnotatorOf(source, plan, options.source)), screen));
  const bool has_summary = options.format == "text" && !outputs.TakesStdout() && !screen.is_quiet;
  if (has_summary || options.format != "text") {
    CKPLAN_ASSIGN_OR_RETURN(const std::string text,
                            Rendered(options, source, plan, solve_seconds, screen));
    CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  }
  const std::string remark = SavesNothing(plan.figures);
  if (!has_summary && options.format != "md" && !remark.empty()) {
    screen.Warn(fmt::format("peak {}: {}", HumanBytes(plan.figures.peak), remark));
  }
  for (const std::string& file : outputs.Files()) {
    screen.Note(fmt::format("wrote {}   checked: ok", file));
  }
  if (!has_summary) return ExitCode::kOk;
  const std::string hint = NextHint(options, source, outputs);
  if (!hint.empty()) screen.Note(hint);
  return ExitCode::kOk;
}

// Explains why there is no plan, in terms of the command line.
Result<ExitCode> ReportNoPlan(const Options& options, const Source& source,
                              const PlanRequest& request, const Interrupt& interrupt, Error error) {
  if (interrupt.was_interrupted()) return Interrupted();
  if (error.code == ErrorCode::kInfeasible) {
    const StopsSuspended no_stops;  // The whole error is reported.
    const std::string hint = options.request.BareBudgetHint(KeepAllPeak(source.step()));
    if (!hint.empty()) error.notes.push_back(hint);
  }
  if (error.code != ErrorCode::kTimeout) {
    return RefusalOfMemory(source, request, options, {interrupt.token(), MemoryLimit()},
                           std::move(error));
  }
  return TimeLimitPassed(
      options,
      " before a plan was found; allow more time, or try another algorithm (`ckplan algos`)");
}

}  // namespace

void AddPlanOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  options.request.Add(line, RequestFlags::Group::kAlgorithm);
  options.request.Add(line, RequestFlags::Group::kPlanning);
  line.Value("--time-limit", "TIME", "give up after 60s, 500ms, 5min (exit code 5)",
             &options.time_limit);
  options.request.Add(line, RequestFlags::Group::kReading);
  line.Value("-o,--output", "FILE", "write the plan there; - is standard output", &options.output);
  line.List("--emit", "KIND=FILE",
            fmt::format("write it as {}", EmitterNames(EmitSubject::kPlan, " or ")),
            &options.emits);
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "output format", &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
  line.Flag("-v,--verbose", "list everything that is recomputed; print the solve time",
            &options.is_verbose);
}

Result<ExitCode> RunPlan(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, options.request.Read());
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.source));
  Result<Source> loaded = LoadInTime(options.source, request, options);
  progress.Clear();
  if (interrupt.was_interrupted()) return Interrupted();
  CKPLAN_ASSIGN_OR_RETURN(const Source source, std::move(loaded));
  CKPLAN_RETURN_IF_ERROR(outputs.CheckFor(source));
  WarnOf(source, screen);

  progress.Stage(fmt::format("planning by {}", request.algorithm));
  const auto start = std::chrono::steady_clock::now();
  Shortage shortage;
  Result<Plan> plan = Solve(source, request, interrupt, &shortage);
  const double seconds = SecondsSince(start);
  progress.Clear();
  if (!plan.ok()) return ReportNoPlan(options, source, request, interrupt, std::move(plan).error());
  const StopsSuspended no_stops;  // The plan so far is written completely.
  ReportChoice(request, source, *plan, shortage, interrupt, options, screen);
  if (screen.is_verbose) screen.Note(fmt::format("ckplan: planned in {:.3f} s", seconds));
  CKPLAN_ASSIGN_OR_RETURN(const ExitCode code,
                          Report(options, outputs, source, request, *plan, seconds, screen));
  return interrupt.was_interrupted() ? ExitCode::kInterrupted : code;
}

}  // namespace ckplan
