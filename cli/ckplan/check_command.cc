// ckplan check: replays a plan file by the independent checker.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/plan_file.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/thresholds.h"
#include "lib/emit/human_bytes.h"
#include "lib/emit/json_writer.h"
#include "lib/plan/check.h"

namespace ckplan {
namespace {

std::string CheckJson(const Plan& plan, const std::vector<std::string>& faults,
                      const std::vector<CheckedItem>& items) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("model").Text(plan.model.name);
  json.Key("algorithm").Text(plan.request.algorithm);
  const bool is_ok = std::all_of(items.begin(), items.end(),
                                 [](const CheckedItem& item) { return item.message.empty(); });
  json.Key("ok").Boolean(is_ok);
  json.Key("peak_bytes").Amount(plan.figures.peak);
  json.Key("overhead_cost").Amount(plan.figures.overhead);
  json.Key("faults").BeginArray(JsonLayout::kLines);
  for (const std::string& fault : faults) json.Text(fault);
  json.End();
  json.Key("limits").BeginArray(JsonLayout::kLines);
  for (size_t i = 1; i < items.size(); ++i) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("limit").Text(items[i].name);
    json.Key("ok").Boolean(items[i].message.empty());
    json.Key("why").Text(items[i].message);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

std::string CheckText(const PlanFile& file) {
  const PlanFigures& figures = file.plan.figures;
  const auto step = static_cast<double>((figures.forward_cost + figures.backward_cost).count());
  const double overhead = step > 0 ? static_cast<double>(figures.overhead.count()) / step : 0;
  return fmt::format("ok   {}   {}   peak {}   time {} of a training step\n", file.plan.model.name,
                     file.plan.request.algorithm, HumanBytes(figures.peak),
                     SignedPercent(overhead));
}

// The first few lines of a list.
std::vector<std::string> FirstOf(std::vector<std::string> lines) {
  constexpr size_t kShown = 10;
  if (lines.size() > kShown) lines.resize(kShown);
  return lines;
}

Error CheckError(std::string_view plan_path, std::vector<std::string> faults) {
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{} does not pass the checker: {} fault{}", plan_path,
                                      faults.size(), faults.size() == 1 ? "" : "s"));
  error.notes = FirstOf(std::move(faults));
  return error;
}

struct Thresholds {
  std::vector<Threshold> list;
  std::optional<PlanDigest> against;
};

// kUsage before anything is read, but for the old plan itself.
Result<Thresholds> ThresholdsOf(const Options& options) {
  Thresholds thresholds;
  for (const std::string& text : options.fail_on) {
    CKPLAN_ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text));
    if (threshold.is_growth && !options.against) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--fail-on \"{}\" needs --against OLD, the plan to grow from", text));
    }
    thresholds.list.push_back(std::move(threshold));
  }
  if (options.against) {
    CKPLAN_ASSIGN_OR_RETURN(thresholds.against, ReadPlanDigestFile(*options.against));
  }
  return thresholds;
}

// The checker first, then the thresholds in the order of the command line.
std::vector<CheckedItem> ItemsOf(const Thresholds& thresholds, const Plan& plan,
                                 const std::vector<std::string>& faults) {
  std::vector<CheckedItem> items = {{"checker", fmt::format("{}", fmt::join(faults, "; "))}};
  const PlanFigures* const against = thresholds.against ? &thresholds.against->figures : nullptr;
  for (const Threshold& threshold : thresholds.list) {
    items.push_back(Judge(threshold, plan.figures, against));
  }
  return items;
}

std::string Annotations(const Options& options, const Plan& plan,
                        const std::vector<CheckedItem>& items) {
  if (options.annotate == "github") return GithubAnnotations(items, options.plan);
  if (options.annotate == "gitlab") return GitlabReport(items, options.plan, plan.model.name);
  if (options.annotate == "junit") return JunitReport(items, options.plan);
  return "";
}

// Says which limits do not hold, also where nothing else is said; whether there are any.
bool TellFailures(const std::string& path, const std::vector<CheckedItem>& items) {
  std::vector<std::string> failures;
  for (size_t i = 1; i < items.size(); ++i) {
    if (items[i].message.empty()) continue;
    failures.push_back(fmt::format("{}: {}", items[i].name, items[i].message));
  }
  if (failures.empty()) return false;
  Error error = MakeError(ErrorCode::kCheckFailed, fmt::format("{} fails {} of {} limits", path,
                                                               failures.size(), items.size() - 1));
  error.notes = FirstOf(std::move(failures));
  PrintError(error, "ckplan");
  return true;
}

}  // namespace

void AddCheckOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model or graph.json of the plan (default: beside it)",
                          &options.source);
  AddCostOption(line, options);
  line.List("--fail-on", "LIMIT", "exit with 1 above it: peak>16GiB, overhead>5%, peak:+1%",
            &options.fail_on);
  line.Value("--against", "OLD", "the plan file that limits on growth (peak:+1%) start from",
             &options.against);
  line.Choice("--annotate", {"none", "github", "gitlab", "junit"},
              "print failures as continuous integration reads them", &options.annotate);
  line.Choice("-f,--format", {"text", "json"}, "of what is printed", &options.format);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunCheck(const Options& options, const Screen& screen) {
  if (options.annotate != "none" && options.format == "json") {
    return MakeError(ErrorCode::kUsage, "--annotate and --format json exclude each other");
  }
  CKPLAN_ASSIGN_OR_RETURN(const Thresholds thresholds, ThresholdsOf(options));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(options.plan, options.source, options.cost));
  progress.Clear();
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  std::vector<std::string> faults = CheckPlan(file.source.graph, file.plan);
  const std::vector<CheckedItem> items = ItemsOf(thresholds, file.plan, faults);
  if (options.format == "json") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckJson(file.plan, faults, items)));
  }
  CKPLAN_RETURN_IF_ERROR(screen.Print(Annotations(options, file.plan, items)));
  if (!faults.empty()) return CheckError(options.plan, std::move(faults));
  if (TellFailures(options.plan, items)) return ExitCode::kDifferent;
  if (options.format == "text" && options.annotate == "none" && !screen.is_quiet) {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckText(file)));
  }
  return ExitCode::kOk;
}

}  // namespace ckplan
