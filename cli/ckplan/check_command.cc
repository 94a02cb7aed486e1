// ckplan check: replays a plan file by the independent checker.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/findings.h"
#include "cli/ckplan/limits.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/threshold.h"
#include "lib/base/human_bytes.h"
#include "lib/base/printable.h"
#include "lib/emit/json_writer.h"
#include "lib/planner/plan_file.h"

namespace ckplan {
namespace {

constexpr std::string_view kChecker = "checker";

// What was found about a plan that could be read.
struct Findings {
  std::vector<std::string> faults;  // What the checker found wrong.
  std::vector<Verdict> verdicts;    // One for each limit; none where there are faults.

  bool limits_hold() const {
    return std::all_of(verdicts.begin(), verdicts.end(),
                       [](const Verdict& verdict) { return verdict.holds; });
  }
};

std::string CheckJson(const Plan& plan, const Findings& findings) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("model").Text(plan.model.name);
  json.Key("algorithm").Text(plan.request.algorithm);
  json.Key("ok").Boolean(findings.faults.empty() && findings.limits_hold());
  json.Key("peak_bytes").Amount(plan.figures.peak);
  json.Key("overhead_cost").Amount(plan.figures.overhead);
  json.Key("faults").BeginArray(JsonLayout::kLines);
  for (const std::string& fault : findings.faults) json.Text(fault);
  json.End();
  json.Key("limits").BeginArray(JsonLayout::kLines);
  for (const Verdict& verdict : findings.verdicts) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("limit").Text(verdict.threshold);
    json.Key("ok").Boolean(verdict.holds);
    json.Key("why").Text(verdict.message);
    json.End();
  }
  json.End().End();
  return std::move(json).Finish();
}

std::string CheckText(const Plan& plan, const Findings& findings, const Terminal& terminal) {
  std::string text =
      fmt::format("ok   {}   {}   peak {}   time {} of a training step\n",
                  Printable(plan.model.name, kLongestName), Printable(plan.request.algorithm),
                  HumanBytes(plan.figures.peak), SignedPercent(StepOverheadRatio(plan.figures)));
  for (const Verdict& verdict : findings.verdicts) {
    const std::string line = fmt::format("{} {}   {}", verdict.holds ? "ok  " : "FAIL",
                                         verdict.threshold, verdict.message);
    text += verdict.holds ? line : Styled(line, TextStyle::kWarning, terminal);
    text += '\n';
  }
  return text;
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

struct CheckRequest {
  std::vector<Threshold> thresholds;
  std::optional<PlanDigest> against;
};

// All that can be wrong about the command line, before the model is read.
Result<CheckRequest> CheckRequestOf(const Options& options) {
  if (options.annotate != "none" && options.format == "json") {
    return MakeError(ErrorCode::kUsage, "--annotate and --format json exclude each other");
  }
  CheckRequest request;
  bool has_growth = false;
  for (const std::string& text : options.fail_on) {
    CKPLAN_ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text));
    has_growth = has_growth || threshold.is_growth;
    request.thresholds.push_back(std::move(threshold));
  }
  if (options.against) {
    CKPLAN_ASSIGN_OR_RETURN(request.against, ReadPlanDigestFile(*options.against));
  } else if (has_growth) {
    CKPLAN_RETURN_IF_ERROR(JudgeThresholds(request.thresholds, {}, {}, nullptr));
  }
  return request;
}

// The figures of a plan with faults mean nothing, so no limit is checked against them.
Result<Findings> Judge(const CheckRequest& request, const PlanFile& file) {
  Findings findings;
  findings.faults = JudgePlanFile(file);
  if (!findings.faults.empty()) return findings;
  CKPLAN_ASSIGN_OR_RETURN(findings.verdicts,
                          JudgeThresholds(request.thresholds, file.plan.figures, file.plan.request,
                                          request.against ? &*request.against : nullptr));
  return findings;
}

// ---- For continuous integration ----

// "peak_bytes: the plan says 1, ..." is about peak_bytes, whatever the numbers are.
std::string SubjectOf(std::string_view fault) {
  return fmt::format("{}: {}", kChecker, fault.substr(0, fault.find(':')));
}

FindingsReport ReportOf(const Options& options, const std::string& model,
                        const Findings& findings) {
  FindingsReport report{options.plan, model, {}};
  for (const std::string& fault : findings.faults) {
    const std::string subject = SubjectOf(fault);
    report.findings.push_back(
        {std::string(kChecker), subject, fault, true, WithoutNumbers(subject)});
  }
  if (findings.faults.empty()) {
    report.findings.push_back({std::string(kChecker), std::string(kChecker), "ok", false});
  }
  for (const Verdict& verdict : findings.verdicts) {
    report.findings.push_back({verdict.check, verdict.threshold, verdict.message, !verdict.holds});
  }
  return report;
}

std::string Annotated(const Options& options, const FindingsReport& report) {
  if (options.annotate == "github") return GithubAnnotations(report);
  if (options.annotate == "gitlab") return GitlabCodeQuality(report);
  return JunitReport(report);
}

// What cannot be judged is a finding as well: a plan for another model, for the model has changed
// and its plan has not, and a file that cannot be read.
Result<ExitCode> TellUnreadable(const Options& options, Error error, const Screen& screen) {
  const bool is_other_model = error.code == ErrorCode::kCheckFailed;
  const bool is_found = is_other_model || ExitCodeOf(error.code) == ExitCode::kInput;
  if (is_found && options.annotate != "none") {
    const std::string what = is_other_model ? "other model" : "unreadable";
    const std::string& path = options.source.empty() ? options.plan : options.source;
    const std::string model = std::filesystem::path(path).filename().string();
    const FindingsReport report{
        options.plan,
        model,
        {{std::string(kChecker), "checker: " + what, MessageOf(error), true, what}}};
    CKPLAN_RETURN_IF_ERROR(screen.Print(Annotated(options, report)));
  }
  return error;
}

// On standard output; returns whether it names the limits that fail.
Result<bool> Tell(const Options& options, const Plan& plan, const Findings& findings,
                  const Screen& screen) {
  if (options.format == "json") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckJson(plan, findings)));
    return false;
  }
  if (options.annotate != "none") {
    const FindingsReport report = ReportOf(options, plan.model.name, findings);
    CKPLAN_RETURN_IF_ERROR(screen.Print(Annotated(options, report)));
    return false;
  }
  if (!findings.faults.empty() || screen.is_quiet) return false;
  CKPLAN_RETURN_IF_ERROR(screen.Print(CheckText(plan, findings, screen.out)));
  return true;
}

// On standard error: that limits fail, and which unless that has been said.
void TellFailures(const std::string& path, const std::vector<Verdict>& verdicts, bool is_told) {
  std::vector<std::string> failures;
  for (const Verdict& verdict : verdicts) {
    if (!verdict.holds)
      failures.push_back(fmt::format("{}: {}", verdict.threshold, verdict.message));
  }
  Error error = MakeError(ErrorCode::kCheckFailed,
                          fmt::format("{} fails {} of {} limit{}", path, failures.size(),
                                      verdicts.size(), verdicts.size() == 1 ? "" : "s"));
  if (!is_told) error.notes = FirstOf(std::move(failures));
  PrintError(error, "ckplan");
}

}  // namespace

void AddCheckOptions(CommandLine& line, Options& options) {
  line.Positional("PLAN", "a plan file, or a model annotated with one", &options.plan);
  line.OptionalPositional("MODEL", "the model or graph.json of the plan (default: beside it)",
                          &options.source);
  options.request.Add(line, "cost_model");
  line.List("--fail-on", "LIMIT", "exit with 1 above it: peak>16GiB, overhead>5%, peak:+1%",
            &options.fail_on);
  line.Value("--against", "OLD", "the plan file that limits on growth (peak:+1%) start from",
             &options.against);
  line.Choice("--annotate", {"none", "github", "gitlab", "junit"},
              "print failures as continuous integration reads them", &options.annotate);
  line.Choice("-f,--format", {"text", "json"}, "format of the output", &options.format);
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunCheck(const Options& options, const Screen& screen) {
  const Result<CheckRequest> request = CheckRequestOf(options);
  if (!request.ok()) return TellUnreadable(options, request.error(), screen);
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", options.plan));
  Result<PlanFile> file =
      ReadPlanFile(options.plan, options.source, options.request.ValueOf("cost_model"));
  progress.Clear();
  if (!file.ok()) return TellUnreadable(options, std::move(file).error(), screen);
  for (const std::string& warning : file->source.warnings) screen.Warn(warning);
  CKPLAN_ASSIGN_OR_RETURN(const Findings findings, Judge(*request, *file));
  CKPLAN_ASSIGN_OR_RETURN(const bool is_told, Tell(options, file->plan, findings, screen));
  if (!findings.faults.empty()) return CheckError(options.plan, findings.faults);
  if (findings.limits_hold()) return ExitCode::kOk;
  TellFailures(options.plan, findings.verdicts, is_told);
  return ExitCode::kDifferent;
}

}  // namespace ckplan
