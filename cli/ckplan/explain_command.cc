// ckplan explain: what lives at a plan's peak, and why a tensor is kept or recomputed.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/explain_text.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/saved_plan.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/explain/what_if.h"
#include "lib/problem/parallel/division.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

constexpr std::string_view kPeak = "peak";

std::vector<ExplainedSubject> ExplainAll(const TracedPlan& traced, std::vector<Subject> subjects) {
  int64_t work = kWhatIfSteps;
  std::vector<ExplainedSubject> all;
  for (Subject& subject : subjects) {
    ExplainedSubject explained{std::move(subject), {}};
    for (const TensorId tensor : explained.subject.tensors) {
      explained.tensors.push_back(ExplainTensor(traced, tensor, &work));
    }
    all.push_back(std::move(explained));
  }
  return all;
}

// The model was given in place of the name.
Result<Done> CheckName(const Options& options) {
  std::error_code fault;
  if (!options.source.empty() || !std::filesystem::is_regular_file(options.what, fault)) {
    return Done{};
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("\"{0}\" is a file, not something to explain; try: ckplan explain {1} peak {0}",
                  options.what, options.plan));
}

Result<std::string> Explanation(const Options& options, const PlanFile& file,
                                const Screen& screen) {
  const TrainingStep graph = file.source.step();
  const TracedPlan traced = TracePlan(graph, file.plan);
  const bool is_json = options.format == "json";
  if (options.what == kPeak) {
    const PeakExplanation peak = ExplainPeak(traced);
    return is_json ? PeakJson(traced, peak) : PeakText(file.source, traced, peak, screen);
  }
  Result<std::vector<Subject>> found = FindSubjects(graph, file.source.absent_values, options.what);
  if (!found.ok()) {
    Error error = std::move(found).error();
    if (const auto& stage = file.plan.request.pipeline) {
      error.notes.push_back(fmt::format("the plan is only for stage {}", TextOf(*stage)));
    }
    return error;
  }
  const std::vector<ExplainedSubject> all = ExplainAll(traced, std::move(found).value());
  return is_json ? SubjectsJson(traced, all) : SubjectsText(file.source, traced, all, screen);
}

}  // namespace

void AddExplainOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.Positional("WHAT", "peak, or the name of a tensor, node or module; * and ? match many",
                  &options.what);
  line.OptionalPositional("MODEL", "the model of the plan (default: beside it)", &options.source);
  options.request.Add(line, "cost_model");
  options.request.Add(line, "workspaces");
  line.Flag("-v,--verbose", "show all rows, not just the largest", &options.is_verbose);
  line.Choice("-f,--format", {"text", "json"}, "output format", &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunExplain(const Options& options, const Screen& screen) {
  CKPLAN_RETURN_IF_ERROR(CheckName(options));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(options.plan, options.source, options.request.PlanFiles()));
  progress.Clear();
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  CKPLAN_RETURN_IF_ERROR(CheckSavedPlan(file, options.plan));
  progress.Stage("explaining");
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, Explanation(options, file, screen));
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return ExitCode::kOk;
}

}  // namespace ckplan
