// ckplan diff: what changed between two plans.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/diff_text.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/saved_plan.h"
#include "cli/common/memory_limit.h"
#include "lib/base/stop.h"
#include "lib/files/emit/json_compare.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

// A plan with its graph, complete enough to write files from.
struct PlanWithGraph {
  Source source;
  Plan plan;
};

struct Side {
  DiffSide shown;
  std::optional<PlanWithGraph> whole;  // Set for --emit.
};

using Sides = std::pair<Side, Side>;

Error NeitherForm() {
  return MakeError(ErrorCode::kUsage,
                   "ckplan diff takes two plan files; to compare algorithms on one model, use "
                   "`ckplan compare MODEL --algo approx-dp,exact-dp`");
}

// The modules from the model's metadata, or from the operations of a joint graph.
ModulesOfRows ModulesOf(const Source& source) {
  ModulesOfRows modules;
  if (!source.joint && source.modules.empty()) return modules;
  const TrainingStep step = source.step();
  for (const NodeId id : step.node_ids()) modules.push_back(step.ModulesOf(id));
  return modules;
}

// A plan file is read once, because it may be a pipe.
Result<Side> FromFile(const std::string& path, const Options& options, const Outputs& outputs) {
  if (outputs.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(PlanDigest digest, ReadPlanDigestFile(path));
    return Side{{path, std::move(digest)}, std::nullopt};
  }
  CKPLAN_ASSIGN_OR_RETURN(PlanFile file,
                          ReadPlanFile(path, options.source, options.request.PlanFiles()));
  CKPLAN_RETURN_IF_ERROR(CheckSavedPlan(file, path, outputs));
  Side side{{path, DigestOf(file.source.step(), file.plan), ModulesOf(file.source)}, std::nullopt};
  side.whole = {std::move(file.source), std::move(file.plan)};
  return side;
}

Result<Sides> FromFiles(const Options& options, const Outputs& outputs) {
  if (options.algorithms) {
    return MakeError(ErrorCode::kUsage, "--algo applies to one model, not to two plan files");
  }
  if (outputs.empty() && !options.source.empty()) {
    return MakeError(ErrorCode::kUsage,
                     "diff compares plans without their model; MODEL is only for --emit");
  }
  CKPLAN_ASSIGN_OR_RETURN(Side older, FromFile(options.plan, options, outputs));
  CKPLAN_ASSIGN_OR_RETURN(Side newer, FromFile(options.newer_plan, options, outputs));
  return Sides(std::move(older), std::move(newer));
}

Result<Side> FromAlgorithm(const Options& options, const Source& source, const PlanRequest& request,
                           const Interrupt& interrupt, Progress* progress) {
  progress->Stage(fmt::format("planning by {}", request.algorithm));
  Result<Plan> plan = MakePlan(source, request, {interrupt.token(), MemoryLimit()});
  progress->Clear();
  if (interrupt.was_interrupted()) return MakeError(ErrorCode::kTimeout, "interrupted");
  // A stopped search returns the best plan so far, which is not the one requested.
  const bool is_whole = plan.ok() && !plan->figures.guarantee.starts_with(kStoppedEarly);
  if (is_whole) {
    Side side{{request.algorithm, DigestOf(source.step(), *plan), ModulesOf(source)}, std::nullopt};
    if (!options.emits.empty()) side.whole = {source, *std::move(plan)};
    return side;
  }
  if (!plan.ok() && plan.error().code != ErrorCode::kTimeout) {
    const StopsSuspended no_stops;  // The error is reported completely.
    Error error = std::move(plan).error();
    const std::string hint = options.request.BareBudgetHint(KeepAllPeak(source.step()));
    if (error.code == ErrorCode::kInfeasible && !hint.empty()) error.notes.push_back(hint);
    return error;
  }
  return TimeLimitPassed(
      options,
      fmt::format(
          " before {} found a plan; allow more time, or try another algorithm (`ckplan algos`)",
          request.algorithm));
}

Result<Sides> FromModel(const Options& options, const Outputs& outputs, const Interrupt& interrupt,
                        const Screen& screen) {
  const std::string list = options.algorithms.value_or("");
  const size_t comma = list.find(',');
  if (comma == std::string::npos || list.find(',', comma + 1) != std::string::npos) {
    return NeitherForm();
  }
  screen.Warn(
      fmt::format("`ckplan diff MODEL --algo` is deprecated; use `ckplan compare {} --algo {}`, or "
                  "diff two plan files",
                  PathWord(options.plan), list));
  CKPLAN_ASSIGN_OR_RETURN(PlanRequest first, options.request.Read());
  PlanRequest second = first;
  first.algorithm = list.substr(0, comma);
  second.algorithm = list.substr(comma + 1);
  CKPLAN_RETURN_IF_ERROR(FindSolver(first.algorithm));
  CKPLAN_RETURN_IF_ERROR(FindSolver(second.algorithm));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadInTime(options.plan, first, options));
  progress.Clear();
  for (const std::string& warning : source.warnings) screen.Warn(warning);
  CKPLAN_RETURN_IF_ERROR(outputs.CheckFor(source));
  CKPLAN_ASSIGN_OR_RETURN(Side older, FromAlgorithm(options, source, first, interrupt, &progress));
  CKPLAN_ASSIGN_OR_RETURN(Side newer, FromAlgorithm(options, source, second, interrupt, &progress));
  return Sides(std::move(older), std::move(newer));
}

std::string NameOf(const ModelIdentity& model) {
  constexpr size_t kShownDigits = 12;
  return fmt::format("\"{}\" sha256:{}", model.name, model.sha256.substr(0, kShownDigits));
}

// Warns about what limits the comparison. kInvalidInput: different models with --strict.
Result<Done> ReportLimits(const ComparedPlans& plans, bool is_strict, const Screen& screen) {
  if (!plans.diff.has_same_model) {
    const std::string text =
        fmt::format("the plans are for different models, {} and {}", NameOf(plans.older.plan.model),
                    NameOf(plans.newer.plan.model));
    const int64_t by_structure = plans.diff.paired_by_structure;
    const std::string matching =
        by_structure == 0
            ? "nodes are matched by the names of their tensors"
            : fmt::format(
                  "{} node{} with other names {} matched by structure: operator, size and "
                  "place",
                  by_structure, by_structure == 1 ? "" : "s", by_structure == 1 ? "is" : "are");
    if (is_strict) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("{}; without --strict, {}", text, matching));
    }
    screen.Warn(fmt::format("{}; {}", text, matching));
  }
  for (const std::string& difference : plans.diff.differences) screen.Warn(difference);
  for (const DiffSide* side : {&plans.older, &plans.newer}) {
    if (side->plan.rest) continue;
    screen.Warn(fmt::format(
        "{} doesn't list what is in memory at its peak; plan again to see what each change frees",
        side->title));
  }
  return Done{};
}

std::string Rendered(const ComparedPlans& plans, const Options& options, const Screen& screen) {
  if (options.format == "json") {
    return WriteDiffJson(plans.older.plan, plans.newer.plan, plans.diff, plans.summary);
  }
  if (options.format == "md") return DiffMarkdown(plans, screen.is_verbose);
  return DiffText(plans, screen.is_verbose, screen.out);
}

// Without a second plan, the first argument is the model.
Result<Outputs> OutputsOf(Options options) {
  if (options.newer_plan.empty()) std::swap(options.plan, options.source);
  return Outputs::Create(options, "", EmitSubject::kTwoPlans);
}

Result<Done> WriteOutputs(const Outputs& outputs, const Sides& sides, const Screen& screen) {
  if (outputs.empty()) return Done{};
  const EmitSource older = EmitSourceOf(sides.first.whole->source, &sides.first.whole->plan);
  EmitSource newer = EmitSourceOf(sides.second.whole->source, &sides.second.whole->plan);
  newer.older = &older;
  CKPLAN_RETURN_IF_ERROR(outputs.Write(newer, screen));
  for (const std::string& file : outputs.Files()) screen.Note(fmt::format("wrote {}", file));
  return Done{};
}

}  // namespace

void AddDiffOptions(CommandLine& line, Options& options) {
  line.Positional("OLD", "the older plan file or annotated model", &options.plan);
  line.OptionalPositional("NEW", "the newer plan file or annotated model", &options.newer_plan);
  line.OptionalPositional("MODEL", "for --emit: the model of both (default: beside each plan)",
                          &options.source);
  {
    const CommandLine::Section deprecated(line, CommandLine::kDeprecated);
    line.Value("-a,--algo", "NAME,NAME", "use `ckplan compare MODEL --algo NAME,NAME`",
               &options.algorithms);
    options.request.Add(line, RequestFlags::Group::kPlanning);
    line.Value("--time-limit", "TIME",
               "time limit for both plans together: 60s, 500ms, 5min (exit code 5)",
               &options.time_limit);
    options.request.Add(line, RequestFlags::Group::kReading);
  }
  line.Flag("--exit-code", "exit with 1 if the plans differ", &options.has_exit_code);
  line.Flag("--strict", "refuse plans of different models (exit code 3)", &options.is_strict);
  line.List("--emit", "KIND=FILE",
            fmt::format("write both plans as {}", EmitterNames(EmitSubject::kTwoPlans, " or ")),
            &options.emits);
  line.Choice("-f,--format", {"text", "json", "md"}, "output format", &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
  line.Flag("-v,--verbose", "show every changed node", &options.is_verbose);
}

Result<ExitCode> RunDiff(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs, OutputsOf(options));
  const Interrupt interrupt(time_limit);
  Result<Sides> sides = options.newer_plan.empty() ? FromModel(options, outputs, interrupt, screen)
                                                   : FromFiles(options, outputs);
  if (interrupt.was_interrupted()) return Interrupted();
  if (!sides.ok()) return std::move(sides).error();
  // Both plans are complete, so their difference is reported completely.
  const StopsSuspended no_stops;
  const DiffSide& older = sides->first.shown;
  const DiffSide& newer = sides->second.shown;
  DiffSummary summary;
  PlanDiff diff = DiffPlans(older.plan, newer.plan, older.modules, newer.modules, &summary);
  const ComparedPlans plans{std::move(sides->first.shown), std::move(sides->second.shown),
                            std::move(diff), std::move(summary)};
  CKPLAN_RETURN_IF_ERROR(ReportLimits(plans, options.is_strict, screen));
  CKPLAN_RETURN_IF_ERROR(WriteOutputs(outputs, *sides, screen));
  if (!screen.is_quiet || options.format != "text") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(Rendered(plans, options, screen)));
  }
  return options.has_exit_code && plans.diff.has_changes ? ExitCode::kDifferent : ExitCode::kOk;
}

}  // namespace ckplan
