// ckplan pareto: the curve of memory against time, of algorithms, sizes and optimizers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/ckplan/commands.h"
#include "cli/ckplan/options.h"
#include "cli/ckplan/outputs.h"
#include "cli/ckplan/pareto_text.h"
#include "cli/ckplan/request_text.h"
#include "cli/common/memory_limit.h"
#include "cli/common/message.h"
#include "cli/common/request_values.h"
#include "lib/base/stop.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/planner/pareto.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr std::string_view kAllAlgorithms = "all";

// The algorithms in command-line order, each once. `all` means best, the papers' algorithms and,
// with a link to the host, those that only move values.
Result<std::vector<std::string>> AlgorithmsOf(std::string_view list, bool has_link) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const std::string& part : PartsOfList(list)) {
    if (part == kAllAlgorithms) {
      add(kBestAlgorithm);
      for (const SolverInfo& info : AllSolvers()) add(info.name);
      if (!has_link) continue;
      for (const SolverInfo& info : OffloadSolvers()) add(info.name);
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
      return MakeError(ErrorCode::kUsage, fmt::format("--optimizer: \"{}\" is not one of {}", part,
                                                      fmt::join(kOptimizerWords, ", ")));
    }
    optimizers.push_back(static_cast<Optimizer>(found - std::begin(kOptimizerWords)));
  }
  return optimizers;
}

struct Grid {
  std::vector<std::string> algorithms;
  bool takes_all = false;  // If true, algorithms that cannot plan the graph are left out.
  std::vector<Optimizer> optimizers;
  bool has_named_optimizers = false;
};

// With a memory, the state of the optimizers must be known.
Result<Done> CheckStates(const Source& source, const Grid& grid, const Screen& screen) {
  for (const Optimizer optimizer : grid.optimizers) {
    const std::optional<Error> unknown = UnknownState(source, optimizer);
    if (!unknown || !source.request.memory.is_given()) continue;
    if (grid.has_named_optimizers) return *unknown;
    screen.Warn(unknown->message + std::string(kCountsAsNothing));
  }
  return Done{};
}

// Computes the curves of one graph. Returns kTimeout if it is stopped.
Result<Done> AddSeries(const Source& source, const Grid& grid, const SolveLimits& limits,
                       Progress* progress, std::vector<ParetoSeries>* all) {
  const ConstantMemory constants = source.step().constants();
  for (const std::string& algorithm : grid.algorithms) {
    if (grid.takes_all && !CanPlan(*FindSolver(algorithm).value(), source.step())) continue;
    progress->Stage(fmt::format("planning by {}", algorithm));
    ParetoSeries series{
        source.identity, source.request, Bytes(0), KeepAllPeak(source.step()), {}, {}};
    series.request.algorithm = algorithm;
    Result<ParetoCurve> curve = TracePareto(source, series.request, limits);
    if (curve.ok()) {
      series.curve = std::move(curve).value();
    } else if (curve.error().code == ErrorCode::kTimeout ||
               (curve.error().code == ErrorCode::kUsage && !grid.takes_all)) {
      return std::move(curve).error();
    } else {
      series.failure = MessageOf(curve.error());
      series.failure_code = curve.error().code;
    }
    for (const Optimizer optimizer : grid.optimizers) {
      series.request.optimizer = optimizer;
      series.constants =
          TotalConstants(constants, OptimizerState(series.request, source.step().optimized()));
      ParetoSeries within = series;
      if (within.curve) {
        const Result<Done> fits =
            DropPlansAboveMemory(source, series.request, limits, &*within.curve);
        if (!fits.ok() && fits.error().code == ErrorCode::kTimeout) return fits;
        if (!fits.ok()) {
          within.curve.reset();
          within.failure = MessageOf(fits.error());
          within.failure_code = fits.error().code;
        }
      }
      all->push_back(std::move(within));
    }
  }
  return Done{};
}

Result<std::vector<ParetoSeries>> TraceAll(const Options& options, const Grid& grid,
                                           const Interrupt& interrupt, const Screen& screen) {
  Progress progress(screen.shows_progress);
  std::vector<ParetoSeries> all;
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<RequestFlags> combinations,
                          options.request.EachCombinationOfDims());
  for (const RequestFlags& flags : combinations) {
    CKPLAN_ASSIGN_OR_RETURN(const PlanRequest request, flags.Read());
    progress.Stage(fmt::format("reading {}", options.source));
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(options.source, request));
    if (source.step().node_count() == 0) return MakePlan(source.graph, request, {}).error();
    if (all.empty()) {
      progress.Clear();
      WarnOf(source, screen);
      CKPLAN_RETURN_IF_ERROR(CheckStates(source, grid, screen));
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
  line.Value("--optimizer", "NAME,...",
             "optimizers: adamw (default), sgd, momentum, adam, adam8bit", &options.optimizers);
  options.request.Add(line, "master_weights");
  options.request.Add(line, "memory", "", "drop plans that need more: 8GiB, rtx4090");
  options.request.Add(line, "reserve");
  options.request.Add(line, "dims", "NAME=N,...",
                      "bind a symbolic dimension: N=32,64 (repeatable)");
  options.request.Add(line, RequestFlags::Group::kConstraints);
  options.request.Add(line, RequestFlags::Group::kReading);
  AddTimeLimitOption(line, options);
  line.Value("-o,--output", "FILE", "write the JSON there; - is standard output", &options.output);
  line.Choice("-f,--format", {"text", "json", "md", "csv", "svg"}, "format of what is printed",
              &options.format);
  AddCommonOptions(line, options);
}

Result<ExitCode> RunPareto(const Options& options, const Screen& screen) {
  Grid grid;
  const std::string algorithms = options.algorithms.value_or(std::string(kBestAlgorithm));
  CKPLAN_ASSIGN_OR_RETURN(grid.algorithms,
                          AlgorithmsOf(algorithms, options.request.ValueOf("offload").has_value()));
  grid.takes_all = algorithms == kAllAlgorithms;
  grid.has_named_optimizers = options.optimizers.has_value();
  CKPLAN_ASSIGN_OR_RETURN(grid.optimizers, OptimizersOf(options.optimizers.value_or("adamw")));
  CKPLAN_ASSIGN_OR_RETURN(const Outputs outputs,
                          Outputs::Create(options, "json", EmitSubject::kPlan));
  CKPLAN_ASSIGN_OR_RETURN(const auto time_limit, TimeLimitOf(options));
  const Interrupt interrupt(time_limit);
  Result<std::vector<ParetoSeries>> traced =
      CatchStop([&] { return TraceAll(options, grid, interrupt, screen); });
  if (interrupt.was_interrupted()) return Interrupted();
  CKPLAN_ASSIGN_OR_RETURN(const std::vector<ParetoSeries> all, InTime(std::move(traced), options));
  const StopsSuspended no_stops;  // The results so far are reported completely.
  CKPLAN_RETURN_IF_ERROR(ReportTable(options, outputs, screen, [&](std::string_view format) {
    return Rendered(all, format, screen);
  }));
  const bool has_curve = std::any_of(
      all.begin(), all.end(), [](const ParetoSeries& series) { return series.curve.has_value(); });
  if (has_curve) return ExitCode::kOk;
  const bool is_infeasible = std::all_of(all.begin(), all.end(), [](const ParetoSeries& series) {
    return series.failure_code == ErrorCode::kInfeasible;
  });
  const ErrorCode code = is_infeasible ? ErrorCode::kInfeasible : ErrorCode::kUnsupported;
  // The text table shows it already.
  if (CurrentMessageForm() == MessageForm::kJson) return MakeError(code, all.front().failure);
  return ExitCodeOf(code);
}

}  // namespace ckplan
