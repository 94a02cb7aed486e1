// ckplan check: replays plan files with the independent checker.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/fail_on.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/plan_summary.h"
#include "cli/ckplan/request_text.h"
#include "cli/ckplan/saved_plan.h"
#include "cli/common/files.h"
#include "cli/common/text_table.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/files/emit/findings.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChecker = "checker";

struct Findings {
  PlanPath path;
  // Why the plan could not be judged; the other members are then empty.
  std::optional<Error> error;
  std::string model;  // The model's name in the plan.
  std::string algorithm;
  PlanFigures figures;
  std::vector<std::string> faults;       // The faults that the checker found.
  std::vector<Verdict> verdicts;         // One for each limit; empty if there are faults.
  std::string absence;                   // Why --against has no plan to compare with: "is empty".
  std::optional<Accounting> accounting;  // With --memory.
  Budget memory;

  bool is_sound() const { return !error && faults.empty(); }
  bool is_ok() const { return is_sound() && AllHold(verdicts); }
};

// ---- The command line ----

bool IsFolder(const std::string& path) {
  std::error_code fault;
  return fs::is_directory(path, fault);
}

bool IsThere(const std::string& path) {
  std::error_code fault;
  return fs::exists(path, fault) || fault;
}

// Checks the command line completely before a plan is read.
Result<std::vector<Threshold>> ThresholdsOf(const Options& options, size_t plans) {
  if (options.annotate != "none" && options.format != "text") {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--annotate and --format {} cannot be combined", options.format));
  }
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Threshold> thresholds,
                          ThresholdsIn(options, LimitSubject::kPlan));
  for (const Threshold& threshold : thresholds) {
    if (threshold.is_growth && !options.against) {
      CKPLAN_RETURN_IF_ERROR(EvaluateFailOn({threshold}, {}, {}, {}));
    }
  }
  if (plans > 1 && options.against && IsThere(*options.against) && !IsFolder(*options.against)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--against \"{}\" is not a folder; to check {} plans, name a "
                                 "folder with older plans of the same file names",
                                 *options.against, plans));
  }
  return thresholds;
}

// ---- Judging ----

// Returns the older plan, or why there is none yet: "is empty". The first change that adopts a
// check has nothing to compare with. A file that is damaged is an error.
Result<PlanDigest> ReadOlderPlan(const std::string& path, std::string* absence) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::error_code fault;
  if (path != kStandardStream && !IsThere(path)) {
    *absence = "does not exist";
    return PlanDigest();
  }
  if (fs::is_regular_file(path, fault) && fs::is_empty(path, fault)) {
    *absence = "is empty";
    return PlanDigest();
  }
  if (!IsGraphFile(path)) {
    CKPLAN_ASSIGN_OR_RETURN(const auto embedded, ReadPlanInModel(path));
    if (embedded) return ReadPlanDigest(embedded->text, embedded->where);
    const Result<Source> model = LoadSource(path, PlanRequest());
    const bool is_damaged = !model.ok() && ExitCodeOf(model.error().code) == ExitCode::kInput &&
                            model.error().code != ErrorCode::kUnsupported;
    if (is_damaged) return model.error();
    *absence = "is a model that contains no plan";
    return PlanDigest();
  }
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  if (text.find_first_not_of(kBlanks) == std::string::npos) {
    *absence = "is empty";
    return PlanDigest();
  }
  return ReadPlanDigest(text, path);
}

// In a folder, the older plan has the name of the newer one.
Result<OlderPlan> OlderPlanOf(const Options& options, const std::string& plan,
                              std::string* absence) {
  OlderPlan older;
  if (!options.against) return older;
  const bool is_folder = IsFolder(*options.against);
  const std::string path =
      is_folder ? (fs::path(*options.against) / fs::path(plan).filename()).generic_string()
                : *options.against;
  CKPLAN_ASSIGN_OR_RETURN(PlanDigest digest, ReadOlderPlan(path, absence));
  if (absence->empty()) {
    older.plan = std::move(digest);
  } else {
    older.absence = fmt::format("{}{} {}; the plan counts as new, so growth limits hold",
                                is_folder ? "" : "--against ", path, *absence);
  }
  return older;
}

Result<Done> Judge(const Options& options, const std::vector<Threshold>& thresholds,
                   const Screen& screen, Findings* findings) {
  const PlanPath& path = findings->path;
  CKPLAN_ASSIGN_OR_RETURN(const OlderPlan older,
                          OlderPlanOf(options, path.plan, &findings->absence));
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("reading {}", path.plan));
  CKPLAN_ASSIGN_OR_RETURN(const PlanFile file,
                          ReadPlanFile(path.plan, path.model, options.request.PlanFiles()));
  progress.Clear();
  for (const std::string& warning : file.source.warnings) screen.Warn(warning);
  findings->model = file.plan.model.name;
  findings->algorithm = file.plan.request.algorithm;
  findings->figures = file.plan.figures;
  findings->faults = FindPlanFileFaults(file);
  if (findings->faults.empty()) {
    CKPLAN_ASSIGN_OR_RETURN(findings->faults, ValidateMarkers(file, path.plan));
  }
  // The figures of a faulty plan mean nothing, so no limit is checked against them.
  if (!findings->faults.empty()) return Done{};
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest asked, options.request.Read());
  WarnOfUnknownState(thresholds, file.source, screen);
  const auto account = [&](const Budget& memory) {
    PlanRequest request = file.source.request;
    request.memory = memory;
    request.reserve = asked.reserve;
    return AccountFor({file.source.step(), request, file.source.buffers}, file.plan.schedule,
                      file.plan.figures.peak);
  };
  CKPLAN_ASSIGN_OR_RETURN(
      findings->verdicts,
      EvaluateFailOn(thresholds, file.plan.figures, file.plan.request, older,
                     [&](const Budget& memory) { return account(memory).need(); }));
  findings->memory = asked.memory;
  if (asked.memory.is_given()) findings->accounting = account(asked.memory);
  return Done{};
}

// ---- As text and JSON ----

void WriteFindings(const Findings& findings, JsonWriter* json) {
  json->BeginObject(JsonLayout::kLines);
  json->Key("schema_version").Text("1.0");
  json->Key("plan").Text(findings.path.plan);
  if (findings.error) {
    json->Key("ok").Boolean(false);
    json->Key("error").Text(MessageOf(*findings.error)).End();
    return;
  }
  json->Key("model").Text(findings.model);
  json->Key("algorithm").Text(findings.algorithm);
  json->Key("ok").Boolean(findings.is_ok());
  json->Key("peak_bytes").Amount(findings.figures.peak);
  json->Key("overhead_cost").Amount(findings.figures.overhead);
  json->Key("faults").BeginArray(JsonLayout::kLines);
  for (const std::string& fault : findings.faults) json->Text(fault);
  json->End();
  json->Key("limits").BeginArray(JsonLayout::kLines);
  for (const Verdict& verdict : findings.verdicts) WriteVerdict(verdict, json);
  json->End();
  if (findings.accounting) {
    json->Key("accounting");
    WriteAccounting(*findings.accounting, findings.memory, JsonLayout::kLines, json);
  }
  json->End();
}

// Returns an object for one plan, an array of objects for several.
std::string CheckJson(const std::vector<Findings>& all) {
  JsonWriter json;
  if (all.size() > 1) json.BeginArray(JsonLayout::kLines);
  for (const Findings& findings : all) WriteFindings(findings, &json);
  if (all.size() > 1) json.End();
  return std::move(json).Finish();
}

// Empty for a plan that is not sound, which is an error on standard error. If there are several
// plans, each line names its own.
std::string CheckText(const Findings& findings, bool has_several, const Terminal& terminal) {
  if (!findings.is_sound()) return "";
  const std::string plan = has_several ? Printable(findings.path.plan, kLongestName) : "";
  return fmt::format("ok   {}{}{}   {}   peak {}   time {} of a training step\n", plan,
                     plan.empty() ? "" : "   ", Printable(findings.model, kLongestName),
                     Printable(findings.algorithm), HumanBytes(findings.figures.peak),
                     SignedPercent(StepOverheadRatio(findings.figures))) +
         VerdictLines(findings.verdicts, plan, terminal) +
         (findings.accounting && !has_several
              ? '\n' +
                    AccountingTable(*findings.accounting, "memory").Text(0, terminal.table_width())
              : "");
}

// The table's verdict on a plan: "ok", or why not in a few words.
std::string ResultText(const Findings& findings) {
  if (findings.error) return MessageOf(*findings.error);
  if (!findings.faults.empty()) {
    return fmt::format("{} fault{}: {}", findings.faults.size(),
                       findings.faults.size() == 1 ? "" : "s", findings.faults.front());
  }
  std::string failed;
  for (const Verdict& verdict : findings.verdicts) {
    if (verdict.holds) continue;
    failed += (failed.empty() ? "fails " : ", ") + verdict.threshold;
  }
  return failed.empty() ? "ok" : failed;
}

// One table for all plans of a repository.
std::string CheckMarkdown(const std::vector<Findings>& all) {
  TextTable table;
  table.columns = {{"plan"}, {"model"}, {"algorithm"}, {"peak", true}, {"time", true}, {"result"}};
  for (const Findings& findings : all) {
    std::vector<std::string> cells = {findings.path.plan, findings.model, findings.algorithm};
    if (findings.is_sound()) {
      cells.push_back(HumanBytes(findings.figures.peak));
      cells.push_back(SignedPercent(StepOverheadRatio(findings.figures)));
    } else {
      cells.insert(cells.end(), 2, "");
    }
    cells.push_back(ResultText(findings));
    table.rows.push_back(std::move(cells));
  }
  return table.Markdown() + "\n";
}

// ---- For continuous integration ----

// The identity of the fault "peak_bytes: the plan says 1, ..." is peak_bytes, without the numbers.
std::string SubjectOf(std::string_view fault) {
  return fmt::format("{}: {}", kChecker, fault.substr(0, fault.find(':')));
}

// A plan that cannot be judged is a finding as well: the model may have changed without its plan,
// or the file may be unreadable. Other errors are about the command line.
std::vector<Finding> FindingsOf(const Error& error) {
  const bool is_other_model = error.code == ErrorCode::kCheckFailed;
  if (!is_other_model && ExitCodeOf(error.code) != ExitCode::kInput) return {};
  const std::string what = is_other_model ? "other model" : "unreadable";
  return {{std::string(kChecker), "checker: " + what, MessageOf(error), true, what}};
}

FindingsReport ReportOf(const Findings& findings) {
  FindingsReport report{findings.path.plan, findings.model, {}};
  if (findings.error) {
    const PlanPath& path = findings.path;
    report.model = fs::path(path.model.empty() ? path.plan : path.model).filename().string();
    report.findings = FindingsOf(*findings.error);
    return report;
  }
  for (const std::string& fault : findings.faults) {
    const std::string subject = SubjectOf(fault);
    report.findings.push_back({std::string(kChecker), subject, fault, true, StripNumbers(subject)});
  }
  if (findings.faults.empty()) {
    report.findings.push_back({std::string(kChecker), std::string(kChecker), "ok", false});
  }
  for (const Verdict& verdict : findings.verdicts) {
    report.findings.push_back({verdict.check, verdict.threshold, verdict.message, !verdict.holds});
  }
  return report;
}

std::string FindingsInForm(const std::string& form, const std::vector<Findings>& all) {
  std::vector<FindingsReport> reports;
  for (const Findings& findings : all) {
    FindingsReport report = ReportOf(findings);
    if (!report.findings.empty()) reports.push_back(std::move(report));
  }
  if (reports.empty()) return "";
  if (form == "github") return GithubAnnotations(reports);
  return form == "gitlab" ? GitlabCodeQuality(reports) : JunitReport(reports);
}

// ---- Files ----

// A form in which --emit writes the results.
struct CheckForm {
  std::string_view name;
  std::string (*write)(const std::vector<Findings>& all);
};
constexpr CheckForm kCheckForms[] = {
    {"junit", [](const std::vector<Findings>& all) { return FindingsInForm("junit", all); }},
    {"gitlab", [](const std::vector<Findings>& all) { return FindingsInForm("gitlab", all); }},
    {"github", [](const std::vector<Findings>& all) { return FindingsInForm("github", all); }},
    {"json", CheckJson},
    {"md", CheckMarkdown},
};

struct CheckOutput {
  const CheckForm* form = nullptr;
  std::string path;
};

// Reads "junit=report.xml". kUsage: it has another form, or names a file that cannot be written or
// that the command reads.
Result<std::vector<CheckOutput>> CheckOutputsOf(const Options& options,
                                                const std::vector<PlanPath>& plans) {
  std::vector<CheckOutput> outputs;
  std::vector<std::string> paths;
  for (const std::string& emit : options.emits) {
    const size_t equals = emit.find('=');
    const std::string_view name = std::string_view(emit).substr(0, equals);
    const auto* const form = std::find_if(std::begin(kCheckForms), std::end(kCheckForms),
                                          [&](const CheckForm& one) { return one.name == name; });
    if (equals == std::string::npos || equals + 1 == emit.size() || form == std::end(kCheckForms)) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--emit: write KIND=FILE with junit, gitlab, github, json or md, "
                      "not \"{}\"",
                      emit.substr(0, kLongestName)));
    }
    outputs.push_back({form, emit.substr(equals + 1)});
    paths.push_back(outputs.back().path);
    if (outputs.back().path == kStandardStream) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--emit writes files; use -f {} to print this", form->name));
    }
    CKPLAN_RETURN_IF_ERROR(CheckWritable(outputs.back().path));
  }
  std::vector<InputFile> inputs;
  for (const PlanPath& plan : plans) {
    inputs.push_back({"the plan", plan.plan});
    if (!plan.model.empty()) inputs.push_back({"the model", plan.model});
  }
  CKPLAN_RETURN_IF_ERROR(CheckApart(inputs, paths));
  return outputs;
}

Result<Done> WriteCheckOutputs(const std::vector<CheckOutput>& outputs,
                               const std::vector<Findings>& all, const Screen& screen) {
  std::vector<std::string> contents;  // Which `files` only refers to.
  for (const CheckOutput& output : outputs) contents.push_back(output.form->write(all));
  std::vector<OutputFile> files;
  for (size_t i = 0; i < outputs.size(); ++i) files.push_back({outputs[i].path, contents[i]});
  CKPLAN_RETURN_IF_ERROR(WriteFiles(files));
  for (const CheckOutput& output : outputs) screen.Note(fmt::format("wrote {}", output.path));
  return Done{};
}

// ---- Reports ----

// Prints the results on standard output. Returns whether they name the limits that fail.
Result<bool> Report(const Options& options, const std::vector<Findings>& all,
                    const Screen& screen) {
  const std::string& form = options.annotate == "none" ? options.format : options.annotate;
  if (form == "github" || form == "gitlab" || form == "junit") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(FindingsInForm(form, all)));
    return false;
  }
  if (form == "json") {
    const bool has_json = all.size() > 1 || !all.front().error;
    if (has_json) CKPLAN_RETURN_IF_ERROR(screen.Print(CheckJson(all)));
    return false;
  }
  if (form == "md") {
    CKPLAN_RETURN_IF_ERROR(screen.Print(CheckMarkdown(all)));
    return true;
  }
  if (screen.is_quiet) return false;
  std::string text;
  for (const Findings& findings : all) text += CheckText(findings, all.size() > 1, screen.out);
  CKPLAN_RETURN_IF_ERROR(screen.Print(text));
  return true;
}

Error CheckError(std::string_view plan_path, std::vector<std::string> faults) {
  constexpr size_t kShown = 10;
  Error error =
      MakeError(ErrorCode::kCheckFailed, fmt::format("{} fails the check: {} fault{}", plan_path,
                                                     faults.size(), faults.size() == 1 ? "" : "s"));
  if (faults.size() > kShown) faults.resize(kShown);
  error.notes = std::move(faults);
  return error;
}

// Prints on standard error why a plan fails, if it does. Returns its exit code.
ExitCode ReportFailure(const Findings& findings, bool is_reported) {
  if (findings.is_ok()) return ExitCode::kOk;
  if (findings.is_sound()) {
    PrintFailures(findings.path.plan, findings.verdicts, is_reported);
    return ExitCode::kDifferent;
  }
  Error error = findings.error ? *findings.error : CheckError(findings.path.plan, findings.faults);
  if (error.message.find(findings.path.plan) == std::string::npos) {
    error.message = fmt::format("{}: {}", findings.path.plan, error.message);
  }
  PrintError(error, "ckplan");
  return ExitCodeOf(error.code);
}

// Reports all failures and returns the highest exit code.
ExitCode ReportFailures(const std::vector<Findings>& all, bool is_reported) {
  ExitCode code = ExitCode::kOk;
  for (const Findings& findings : all) code = std::max(code, ReportFailure(findings, is_reported));
  const auto failing =
      std::count_if(all.begin(), all.end(), [](const Findings& one) { return !one.is_ok(); });
  if (all.size() > 1 && failing > 0) {
    PrintError(MakeError(ErrorCode::kCheckFailed, fmt::format("{} of {} plans fail{}", failing,
                                                              all.size(), failing == 1 ? "s" : "")),
               "ckplan", code);
  }
  return code;
}

// Prints that --against has none of the plans, if so.
void WarnOfAbsence(const std::string& against, const std::vector<Findings>& all,
                   const Screen& screen) {
  const bool lacks_all =
      std::none_of(all.begin(), all.end(), [](const Findings& one) { return one.absence.empty(); });
  if (!lacks_all) return;
  const std::string why =
      IsFolder(against) ? "has no plan with the same file name" : all.front().absence;
  screen.Warn(fmt::format("--against \"{}\" {}; every plan counts as new, so growth limits hold",
                          against, why));
}

}  // namespace

void AddCheckOptions(CommandLine& line, Options& options) {
  line.Positionals(
      "PLAN",
      "plan files, or models annotated with one; after a single plan you may name its MODEL",
      &options.plans);
  line.List("--model", "MODEL",
            "the model or graph.json of the plans, or of each (default: beside the plan)",
            &options.models);
  options.request.Add(line, "cost_model");
  options.request.Add(line, "workspaces");
  line.List("--fail-on", "LIMIT",
            "exit with 1 if a limit is exceeded: peak>16GiB, peak>60%, overhead>5%, peak:+10MiB",
            &options.fail_on);
  line.Value("--max-peak", "SIZE", "short for --fail-on 'peak>SIZE'", &options.max_peak);
  options.request.Add(line, "memory", "", "exit with 1 if training needs more: 8GiB, rtx4090");
  options.request.Add(line, "reserve");
  line.Value("--against", "OLD",
             "baseline plan for growth limits, or a folder of plans with the same file names",
             &options.against);
  line.Choice("-f,--format", {"text", "json", "md", "github", "gitlab", "junit"},
              "output format; github, gitlab and junit are for CI", &options.format);
  line.List("--emit", "KIND=FILE", "also write the results to a file: junit=report.xml",
            &options.emits);
  {
    const CommandLine::Section deprecated(line, CommandLine::kDeprecated);
    line.Choice("--annotate", {"none", "github", "gitlab", "junit"}, "use -f", &options.annotate);
  }
  AddMemoryOption(line, options);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunCheck(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<PlanPath> paths, PlanPathsOf(options));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<Threshold> thresholds,
                          ThresholdsOf(options, paths.size()));
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<CheckOutput> outputs, CheckOutputsOf(options, paths));
  std::vector<Findings> all;
  for (const PlanPath& path : paths) {
    Findings findings{path};
    Result<Done> judged = Judge(options, thresholds, screen, &findings);
    if (!judged.ok()) findings.error = std::move(judged).error();
    all.push_back(std::move(findings));
  }
  if (options.against) WarnOfAbsence(*options.against, all, screen);
  CKPLAN_ASSIGN_OR_RETURN(const bool is_reported, Report(options, all, screen));
  CKPLAN_RETURN_IF_ERROR(WriteCheckOutputs(outputs, all, screen));
  return ReportFailures(all, is_reported);
}

}  // namespace ckplan
