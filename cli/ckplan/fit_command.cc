// ckplan fit: the largest batch, or any other dimension, with which a training step fits a device.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/config.h"
#include "cli/ckplan/fit_text.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/common/memory_limit.h"
#include "cli/common/size_arg.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/size_reader.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/planner/fit.h"

namespace ckplan {
namespace {

constexpr std::string_view kDefaultAddedTimes = "5,10,20,30";
constexpr int64_t kMaxMultiple = 1'000'000;

// Parses a list such as "5,10,12.5%"; the values come ascending and each once.
Result<std::vector<double>> ParseAddedTimes(std::string_view text) {
  std::vector<double> percents;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.ends_with('%')) item.remove_suffix(1);
    double percent = -1;
    const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), percent);
    const bool is_whole = error == std::errc() && rest == item.data() + item.size();
    if (!is_whole || !(percent >= 0 && percent <= kLargestAddedPercent)) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("--added-time: \"{}\" is not a percentage from 0 to {}; write them like {}",
                      item, kLargestAddedPercent, kDefaultAddedTimes));
    }
    percents.push_back(percent);
  }
  std::sort(percents.begin(), percents.end());
  percents.erase(std::unique(percents.begin(), percents.end()), percents.end());
  return percents;
}

Result<SearchEffort> EffortOf(const std::string& name) {
  for (const SearchEffort effort :
       {SearchEffort::kQuick, SearchEffort::kNormal, SearchEffort::kThorough}) {
    if (NameOf(effort) == name) return effort;
  }
  return MakeError(ErrorCode::kInternal, "an unknown effort");
}

Result<FitRequest> ReadRequest(const Options& options) {
  if (IsGraphFile(options.source)) {
    return MakeError(ErrorCode::kUsage,
                     "the sizes of a graph file are fixed; name a model with an open dimension");
  }
  FitRequest request;
  request.read = ReaderOf(options.source);
  request.read_size = SizeReaderOf(options.source);
  RequestFlags flags = options.request;
  const std::vector<std::string> dims = flags.TakeUnboundDims();
  if (dims.size() > 1) {
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("--dim: {} and {} both have no size; only one dimension can be fitted", dims[0],
                    dims[1]));
  }
  if (!dims.empty()) request.dim = dims.front();
  CKPLAN_ASSIGN_OR_RETURN(request.plan, flags.Read());
  if (request.plan.dims.contains(request.dim)) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--dim: {} cannot be both fixed and fitted", request.dim));
  }
  if (request.plan.algorithm == kBestAlgorithm) {
    CKPLAN_ASSIGN_OR_RETURN(request.plan.effort, EffortOf(options.effort));
  }
  CKPLAN_ASSIGN_OR_RETURN(
      request.added_percents,
      ParseAddedTimes(options.added_times.value_or(std::string(kDefaultAddedTimes))));
  CKPLAN_ASSIGN_OR_RETURN(request.multiple_of, ParseInteger(options.multiple_of.value_or("1"),
                                                            "--multiple-of", 1, kMaxMultiple));
  return request;
}

std::string Rendered(const FitReport& report, std::string_view format, const Screen& screen) {
  if (format == "md") return FitMarkdown(report);
  if (format == "csv") return FitCsv(report);
  if (format == "text") return FitText(report, screen.out);
  return FitJson(report);
}

// The command that makes the plan of the suggested row. It has all settings that the row was made
// with, so a configuration file, whose settings for `ckplan plan` may differ, is not read again.
std::string NextHint(const Options& options, const FitRequest& request, const Fit& fit) {
  const FitRow& row = fit.rows[*fit.NextRow()];
  std::string rest;
  if (options.time_limit) rest += " --time-limit " + ShellWord(*options.time_limit);
  if (options.memory_limit) rest += " --memory-limit " + ShellWord(*options.memory_limit);
  if (options.has_no_config || ConfigFileOf(options)) rest += " --no-config";
  return fmt::format("next: ckplan plan {}{}{} -o {}", PathWord(options.source),
                     FlagsFor(RequestOf(request, fit, row)), rest, options.typed.NewFile("plan"));
}

}  // namespace

void AddFitOptions(CommandLine& line, Options& options) {
  options.finds_one_size = true;
  line.Positional("MODEL", "an ONNX model with an open dimension or a batch to fit",
                  &options.source);
  options.request.Add(line, "memory");
  options.request.Add(line, "reserve");
  line.Value("--added-time", "P%,...",
             "how much plans may slow a step, in percent (default 5,10,20,30)",
             &options.added_times);
  line.Value("--multiple-of", "N", "try only multiples of N (default 1)", &options.multiple_of);
  options.request.Add(line, "algorithm");
  line.Choice("--effort", {"quick", "normal", "thorough"}, "how hard best searches for each plan",
              &options.effort);
  options.request.Add(line, "order");
  options.request.Add(line, "optimizer");
  options.request.Add(line, "master_weights");
  options.request.Add(line, "dims", "NAME[=N]",
                      "size of a dimension; the one without a size is fitted");
  options.request.Add(line, RequestFlags::Group::kConstraints);
  options.request.Add(line, RequestFlags::Group::kReading);
  AddTimeLimitOption(line, options);
  line.Value("-o,--output", "FILE", "write the JSON there; - is standard output", &options.output);
  line.Choice("-f,--format", {"text", "json", "md", "csv"}, "output format", &options.format);
  AddCommonOptions(line, options);
  line.Flag("-v,--verbose", "explain why the model takes no larger size", &options.is_verbose);
}

Result<ExitCode> RunFit(const Options& options, const Screen& screen) {
  CKPLAN_ASSIGN_OR_RETURN(const FitRequest request, ReadRequest(options));
  if (!request.plan.memory.is_given()) {
    return MakeError(
        ErrorCode::kUsage,
        "fit needs the device's memory: --memory 24GiB, or a device as --memory rtx4090");
  }
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Progress progress(screen.shows_progress);
  progress.Stage(fmt::format("fitting {}", options.source));
  Result<Fit> found = FindFit(request, {interrupt.token(), MemoryLimit()});
  progress.Clear();
  if (interrupt.was_interrupted()) return Interrupted();
  CKPLAN_ASSIGN_OR_RETURN(Fit fit, InTime(std::move(found), options));
  const StopsSuspended no_stops;  // The results so far are reported completely.
  for (const std::string& warning : fit.warnings) screen.Warn(warning);
  const FitReport report{std::move(fit), request.multiple_of, screen.is_verbose};
  CKPLAN_RETURN_IF_ERROR(ReportTable(options, outputs, screen, [&](std::string_view format) {
    return Rendered(report, format, screen);
  }));
  if (!report.fit.NextRow()) return NothingFitsError(report);
  if (options.format == "text" && !outputs.TakesStdout() && options.typed.CanRepeat()) {
    screen.Note(NextHint(options, request, report.fit));
  }
  return ExitCode::kOk;
}

}  // namespace ckplan
