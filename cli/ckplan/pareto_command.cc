// ckplan pareto: the curve of memory against time, of algorithms, sizes and optimizers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/limits.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/pareto_text.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"
#include "lib/base/stop.h"
#include "lib/planner/pareto.h"
#include "lib/planner/planner.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr std::string_view kAllAlgorithms = "all";

// Splits a list at its commas.
std::vector<std::string> PartsOfList(std::string_view list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    parts.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The algorithms in the order of the command line, each once. `all` means best and the papers'
// algorithms.
Result<std::vector<std::string>> AlgorithmsOf(std::string_view list) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const std::string& part : PartsOfList(list)) {
    if (part == kAllAlgorithms) {
      add(kBestAlgorithm);
      for (const SolverInfo& info : AllSolvers()) add(info.name);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(part));
    add(info->name);
  }
  return names;
}

Result<std::vector<Optimizer>> OptimizersOf(std::string_view list) {
  std::vector<Optimizer> optimizers;
  for (const std::string& part : PartsOfList(list)) {
    const auto* const found =
        std::find(std::begin(kOptimizerWords), std::end(kOptimizerWords), part);
    if (found == std::end(kOptimizerWords)) {
      return MakeError(ErrorCode::kUsage, fmt::format("--optimizer: \"{}\" is none of {}", part,
                                                      fmt::join(kOptimizerWords, ", ")));
    }
    optimizers.push_back(static_cast<Optimizer>(found - std::begin(kOptimizerWords)));
  }
  return optimizers;
}

struct Grid {
  std::vector<std::string> algorithms;
  bool wants_all = false;  // If true, algorithms that cannot plan the graph are left out.
  std::vector<Optimizer> optimizers;
};

// Computes the curves of one graph. Returns kTimeout if it is stopped.
Result<Done> AddSeries(const Source& source, const Grid& grid, const SolveLimits& limits,
                       Progress* progress, std::vector<ParetoSeries>* all) {
  const ConstantMemory constants = source.step().constants();
  for (const std::string& algorithm : grid.algorithms) {
    if (grid.wants_all && !CanPlan(*FindSolver(algorithm).value(), source.step())) continue;
    progress->Stage(fmt::format("planning by {}", algorithm));
    ParetoSeries series{
        source.identity, source.request, Bytes(0), KeepAllPeak(source.step()), {}, {}};
    series.request.algorithm = algorithm;
    Result<ParetoCurve> curve = TracePareto(source, series.request, limits);
    if (curve.ok()) {
      series.curve = std::move(curve).value();
    } else if (curve.error().code == ErrorCode::kTimeout ||
               (curve.error().code == ErrorCode::kUsage && !grid.wants_all)) {
      return std::move(curve).error();
    } else {
      series.failure = MessageOf(curve.error());
    }
    for (const Optimizer optimizer : grid.optimizers) {
      series.request.optimizer = optimizer;
      series.constants =
          TotalConstants(constants, OptimizerState(optimizer, source.step().optimized_bytes()));
      all->push_back(series);
    }
  }
  return Done{};
}

// Sizes of 30 dimensions, two for each, would be 2^30 requests. `typed` has the flags of all sizes:
// " -D N=1,2 -D T=3".
Result<Done> CheckCombinations(std::string_view typed) {
  constexpr size_t kMaxCombinations = 1000;
  size_t combinations = 1;
  while (!typed.empty()) {
    const std::string_view word = typed.substr(0, typed.find(' '));
    typed.remove_prefix(std::min(word.size() + 1, typed.size()));
    const size_t sizes = PartsOfList(word.substr(word.rfind('=') + 1)).size();
    if (sizes > kMaxCombinations / combinations) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("-D: the sizes have more than {} combinations; give fewer",
                                   kMaxCombinations));
    }
    combinations *= sizes;
  }
  return Done{};
}

Result<std::vector<ParetoSeries>> TraceAll(const Options& options, const Grid& grid,
                                           const Interrupt& interrupt, const Screen& screen) {
  Progress progress(screen.shows_progress);
  std::vector<ParetoSeries> all;
  CKPLAN_RETURN_IF_ERROR(CheckCombinations(options.request.Typed("dims")));
  for (const RequestFlags& flags : options.request.EachCombinationOfDims()) {
    CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, flags.Read());
    progress.Stage(fmt::format("reading {}", options.source));
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(options.source, request));
    if (source.step().node_count() == 0) return MakePlan(source.graph, request, {}).error();
    if (all.empty()) {
      progress.Clear();
      for (const std::string& warning : source.warnings) screen.Warn(warning);
    }
    CKPLAN_RETURN_IF_ERROR(
        AddSeries(source, grid, {interrupt.token(), MemoryLimit()}, &progress, &all));
  }
  return all;
}

std::string Rendered(const std::vector<ParetoSeries>& all, std::string_view format,
                     const Screen& screen) {
  if (format == "md") return ParetoMarkdown(all);
  if (format == "csv") return ParetoCsv(all);
  if (format == "svg") return ParetoSvg(all);
  if (format == "text") return ParetoText(all, screen.out);
  return ParetoJson(all);
}

}  // namespace

void AddParetoOptions(CommandLine& line, Options& options) {
  line.Positional("MODEL", "an ONNX model, or a graph.json; - reads a graph.json from stdin",
                  &options.source);
  line.Value("-a,--algo", "NAME,...|all", "the algorithms (default best); see `ckplan algos`",
             &options.algorithms);
  options.request.Add(line, "effort");
  options.request.Add(line, "order");
  line.Value("--optimizer", "NAME,...", "optimizers: sgd (default), momentum, adam, adamw",
             &options.optimizers);
  options.request.Add(line, "dims", "NAME=N,...", "sizes of a symbolic dimension; once for each");
  options.request.Add(line, RequestFlags::Group::kConstraints);
  options.request.Add(line, RequestFlags::Group::kReading);
  line.Value("--time-limit", "TIME", "give up after 60s, 500ms, 5min (exit code 5)",
             &options.time_limit);
  AddMemoryOption(line, options);
  line.Value("-o,--output", "FILE", "write the JSON there; - is standard output", &options.output);
  line.Choice("-f,--format", {"text", "json", "md", "csv", "svg"}, "format of what is printed",
              &options.format);
  AddScreenOptions(line, options);
}

Result<ExitCode> RunPareto(const Options& options, const Screen& screen) {
  Grid grid;
  const std::string algorithms = options.algorithms.value_or(std::string(kBestAlgorithm));
  CKPLAN_ASSIGN_OR_RETURN(grid.algorithms, AlgorithmsOf(algorithms));
  grid.wants_all = algorithms == kAllAlgorithms;
  CKPLAN_ASSIGN_OR_RETURN(grid.optimizers, OptimizersOf(options.optimizers.value_or("sgd")));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Result<std::vector<ParetoSeries>> traced =
      UnlessStopped([&] { return TraceAll(options, grid, interrupt, screen); });
  if (interrupt.was_interrupted()) return Interrupted();
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<ParetoSeries> all, InTime(std::move(traced), options));
  const StopsSuspended whole;  // The results so far are reported completely.
  CKPLAN_RETURN_IF_ERROR(ReportTable(options, outputs, screen, [&](std::string_view format) {
    return Rendered(all, format, screen);
  }));
  const bool has_curve = std::any_of(
      all.begin(), all.end(), [](const ParetoSeries& series) { return series.curve.has_value(); });
  if (has_curve) return ExitCode::kOk;
  // The table has it already, for people.
  if (CurrentMessageForm() == MessageForm::kJson) {
    return MakeError(ErrorCode::kUnsupported, all.front().failure);
  }
  return ExitCode::kInput;
}

}  // namespace ckplan
