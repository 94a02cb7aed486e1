#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

#include "cli/ckbench/commands.h"
#include "cli/common/request_flags.h"
#include "cli/common/size_arg.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/algorithms/best/annealing.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// This is enough moves for a second on most graphs.
constexpr int64_t kMoves = 1'000'000;
// The budget of the annealing, in percent of the peak of its first plan.
constexpr int64_t kBudgetPercent = 80;
// Simulations are repeated for this many seconds.
constexpr double kSeconds = 0.5;

struct SpeedRequest {
  std::vector<std::string> files;
  RequestFlags flags{Reading::kOperators};
  std::optional<std::string> moves;
  std::string format = "text";
};

CommandLine SpeedCommandLine(SpeedRequest* request) {
  CommandLine line("ckbench speed",
                   "ckbench speed testdata/models/resnet50.onnx -D N=32 --format md",
                   "Measures annealing moves and simulations per second of CPU time.");
  line.Positionals("FILE", "models, graphs or joint graphs", &request->files);
  request->flags.Add(line, "dims");
  line.Value("--moves", "N", "annealing moves to run (default 1000000)", &request->moves);
  line.Choice("-f,--format", {"text", "md"}, "output format", &request->format);
  return line;
}

double PerSecond(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

double MovesPerSecond(const JointGraph& graph, int64_t moves) {
  const RunProblem problem(graph);
  const int64_t budget = KeepAllPeak(graph).count() / 100 * kBudgetPercent;
  const Runs start = OwnOrder(graph);
  AnnealOptions options;
  options.moves = moves;
  const double begin = CpuSeconds();
  const AnnealOutcome outcome = Anneal(problem, budget, {&start, 1}, options);
  return PerSecond(static_cast<double>(outcome.moves), CpuSeconds() - begin);
}

// Simulates the graph's own order, from its first run to its last.
double SimulationsPerSecond(const JointGraph& graph) {
  Simulator simulator(graph);
  const Runs runs = OwnOrder(graph);
  const double begin = CpuSeconds();
  double seconds = 0;
  int64_t count = 0;
  do {
    CKPLAN_CHECK(simulator.Run(runs).ok(), "a graph's own order is a plan of it");
    ++count;
    seconds = CpuSeconds() - begin;
  } while (seconds < kSeconds);
  return PerSecond(static_cast<double>(count), seconds);
}

std::string Rounded(double count) { return fmt::format("{:.0f}", count); }

std::vector<std::string> SpeedRow(const std::string& path, const Source& source, int64_t moves) {
  const JointGraph graph = source.joint ? *source.joint : ExpandTensorGraph(source.graph).graph;
  const double simulations = SimulationsPerSecond(graph);
  const auto ops = static_cast<double>(graph.ops().size());
  return {std::filesystem::path(path).stem().string(), fmt::format("{}", graph.ops().size()),
          Rounded(MovesPerSecond(graph, moves)), Rounded(simulations), Rounded(simulations * ops)};
}

}  // namespace

Result<ExitCode> RunSpeed(std::vector<std::string> arguments) {
  SpeedRequest request;
  CommandLine line = SpeedCommandLine(&request);
  const Screen screen = BenchScreen();
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<ExitCode> done,
                          ParseOrHelp(line, std::move(arguments), screen));
  if (done) return *done;
  CKPLAN_ASSIGN_OR_RETURN(const PlanRequest wanted, request.flags.Read());
  int64_t moves = kMoves;
  if (request.moves) {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    CKPLAN_ASSIGN_OR_RETURN(moves, ParseInteger(*request.moves, "--moves", 1, kMax));
  }
  TextTable table;
  table.columns = {{.name = "graph"},
                   {.name = "operations", .is_number = true},
                   {.name = "moves/s", .is_number = true},
                   {.name = "simulations/s", .is_number = true},
                   {.name = "simulated runs/s", .is_number = true}};
  Progress progress(screen.shows_progress);
  for (const std::string& path : request.files) {
    progress.Stage(fmt::format("measuring {}", path));
    CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(path, wanted));
    table.rows.push_back(SpeedRow(path, source, moves));
  }
  progress.Clear();
  CKPLAN_RETURN_IF_ERROR(PrintTable(table, request.format, screen));
  return ExitCode::kOk;
}

}  // namespace ckplan
