// Chen et al. 2016: the memory of five allocation strategies over the depth of residual networks
// (Fig. 5) and over the steps of an unrolled LSTM (Fig. 6).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "cli/ckbench/reproduction.h"
#include "cli/ckbench/synthetic_graph.h"
#include "lib/base/result.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/arena.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/static_allocation.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

// ---- Fig. 7, and the figures that only a GPU can measure ----

constexpr const char* kTitanCost = "flops:titan-x-12g";
constexpr int64_t kBatch = 32;
constexpr int64_t kPaperAddedTime = 300;  // "Roughly 30%"

struct ChenTimedNetwork {
  const char* model;
  const char* name;
};

constexpr std::array kChenTimedNetworks = {
    ChenTimedNetwork{"resnet50", "ResNet, 50 layers"},
    ChenTimedNetwork{"resnet101", "ResNet, 101 layers"},
    ChenTimedNetwork{"resnet152", "ResNet, 152 layers"},
};

// Returns the time that the algorithm's plan adds to a step that keeps everything, in 0.1 percent.
Result<int64_t> AddedTime(const TensorGraph& graph, const char* algorithm) {
  const Problem problem(graph);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(problem, SolveLimits{}));
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome,
                          solver->Solve(solver->knob().preset, SolveLimits{}));
  const Schedule schedule = LowerStrategy(graph, outcome.strategy);
  const Cost overhead = Simulator(graph).Run(schedule).value().overhead;
  const Cost step = graph.forward_cost() + graph.backward_cost();
  return FactorSteps(10 * overhead, step);
}

constexpr const char* kTitanTimeNote =
    "The search only considers memory, so the amount of recomputation varies between networks; and "
    "backward takes less than twice as long as forward for operations limited by memory bandwidth.";
constexpr const char* kTitanCommandNote =
    "Empty: only a GPU can fill it in. The plans: `ckbench graph resnet-1001 > resnet.json`, then "
    "`ckplan resnet.json --algo chen-search -o plan.json`; for Fig. 6b and 7 `ckbench graph "
    "lstm-64 > lstm.json`, then `ckplan lstm.json --algo chen-frontier -o plan.json`. These graphs "
    "aren't models, so they cannot be run. To measure the deepest residual network of the "
    "repository, run `ckplan testdata/models/resnet152.onnx -D N=32 --algo chen-search --align 256 "
    "-o plan.json` and `ckexec validate testdata/models/resnet152.onnx --plan plan.json --backend "
    "cuda`, whose report has the driver's peak and the times of both steps.";

Result<FigureTable> ChenTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 7, time by the cost model";
  table.intro =
      "Time that `chen-search` adds to a step for the residual networks of `testdata/models`, by "
      "the cost model of the paper's device (`--cost flops:titan-x-12g`), with batch 32 and images "
      "of 224 x 224; and that `chen-frontier` adds for the LSTM of Fig. 6, where a product costs "
      "10 and everything else 1. The paper reports 30 % for both of its networks.";
  const auto add = [&](const char* subject, const char* how, int64_t ours) {
    Figure figure;
    figure.subject = subject;
    figure.quantity = how;
    figure.unit = FigureUnit::kPercent;
    figure.ours = ours;
    figure.paper = kPaperAddedTime;
    if (figure.NeedsExplanation()) figure.note = table.Note(kTitanTimeNote);
    table.figures.push_back(std::move(figure));
  };
  for (const ChenTimedNetwork& network : kChenTimedNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(
        const TensorGraph graph,
        LoadPaperModel(models, network.model, kBatch, Autograd::kMinimal, 0, kTitanCost));
    CKPLAN_ASSIGN_OR_RETURN(const int64_t ours, AddedTime(graph, "chen-search"));
    add(network.name, "time added by the sublinear plan", ours);
  }
  CKPLAN_ASSIGN_OR_RETURN(const int64_t ours,
                          AddedTime(UnrollLstm(4, 1024, 50, 5000, 64, 64), "chen-frontier"));
  add("LSTM, 64 steps", "time added by chen-frontier", ours);
  return table;
}

FigureTable ChenMeasuredTable() {
  FigureTable table;
  table.title = "Figures 5b, 6b and 7, measured";
  table.intro = "On a Titan X: the memory that `nvidia-smi` reports, and the time of a step.";
  const auto add = [&](const char* subject, const char* how, FigureUnit unit, int64_t paper) {
    Figure figure;
    figure.subject = subject;
    figure.quantity = how;
    figure.unit = unit;
    figure.paper = paper;
    figure.note = table.Note(kTitanCommandNote);
    table.figures.push_back(std::move(figure));
  };
  add("ResNet, 1000 layers", "sublinear plan, at most", FigureUnit::kGigabytes, 70);
  add("LSTM, 64 steps", "sharing / sublinear plan, at least", FigureUnit::kFactor, 400);
  add("ResNet", "time added by the sublinear plan", FigureUnit::kPercent, kPaperAddedTime);
  add("LSTM", "time added by the sublinear plan", FigureUnit::kPercent, kPaperAddedTime);
  return table;
}

// ---- Fig. 5 and 6 ----

// The curves of Fig. 5 and Fig. 6.
struct Curves {
  Bytes none, in_place, sharing, drop_bn_relu, sublinear;
  // The other ways of allocation: graph colouring, and the arena of plan files. Both for keeping
  // everything, then for the sublinear plan.
  Bytes coloring, arena, sublinear_coloring, sublinear_arena;
  // Added by the sublinear plan, in 0.1 percent of a forward pass and of a step.
  int64_t recomputed = 0;
  int64_t added_time = 0;
};

Result<std::unique_ptr<PreparedSolver>> Prepare(const Problem& problem,
                                                std::string_view algorithm) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(algorithm));
  return info->prepare(problem, SolveLimits{});
}

// Returns the schedule of the plan that the algorithm makes without a budget, as in section 5.
Result<Schedule> PlanOf(const TensorGraph& graph, std::string_view algorithm) {
  const Problem problem(graph);
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          Prepare(problem, algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome,
                          solver->Solve(solver->knob().preset, SolveLimits{}));
  return LowerStrategy(graph, outcome.strategy);
}

Bytes Shared(const TensorGraph& graph, const Schedule& schedule) {
  return StaticAllocation(graph, schedule, ArenaStrategy::kSharing);
}

Bytes Colored(const TensorGraph& graph, const Schedule& schedule) {
  return StaticAllocation(graph, schedule, ArenaStrategy::kColoring);
}

Bytes Placed(const TensorGraph& graph, const Schedule& schedule) {
  return PlaceBuffers(BuildTimeline(graph, schedule)).bytes;
}

Curves KeepAllCurves(const TensorGraph& graph) {
  const Schedule keep_all = KeepAllInOwnOrder(graph);
  Curves curves;
  curves.none = StaticAllocation(graph, keep_all, ArenaStrategy::kNone);
  curves.in_place = StaticAllocation(graph, keep_all, ArenaStrategy::kInplace);
  curves.sharing = Shared(graph, keep_all);
  return curves;
}

Result<Curves> ResidualCurves(int64_t depth) {
  const TensorGraph graph = ResidualNetwork(StagesOfDepth(depth), 32, 224);
  Curves curves = KeepAllCurves(graph);
  CKPLAN_ASSIGN_OR_RETURN(const Schedule drop_bn_relu, PlanOf(graph, "chen-drop-bn-relu"));
  CKPLAN_ASSIGN_OR_RETURN(const Schedule sublinear, PlanOf(graph, "chen-search"));
  curves.drop_bn_relu = Shared(graph, drop_bn_relu);
  curves.sublinear = Shared(graph, sublinear);
  const Schedule keep_all = KeepAllInOwnOrder(graph);
  curves.coloring = Colored(graph, keep_all);
  curves.arena = Placed(graph, keep_all);
  curves.sublinear_coloring = Colored(graph, sublinear);
  curves.sublinear_arena = Placed(graph, sublinear);
  const Cost overhead = Simulator(graph).Run(sublinear).value().overhead;
  curves.recomputed = overhead.count() * 1000 / graph.forward_cost().count();
  const Cost step = graph.forward_cost() + graph.backward_cost();
  curves.added_time = overhead.count() * 1000 / step.count();
  return curves;
}

// Returns the memory of the best plan that cuts between time steps, tried with several numbers of
// segments.
Result<Bytes> BestOverTime(const TensorGraph& lstm, int64_t steps) {
  const Problem problem(lstm);
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          Prepare(problem, "chen-frontier"));
  Bytes best = Bytes::Max();
  for (int64_t segments = 1; segments <= steps; segments *= 2) {
    CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome, solver->Solve(segments, SolveLimits{}));
    best = std::min(best, Shared(lstm, LowerStrategy(lstm, outcome.strategy)));
  }
  return best;
}

Result<Curves> LstmCurves(int64_t steps) {
  const TensorGraph lstm = UnrollLstm(4, 1024, 50, 5000, 64, steps);
  Curves curves = KeepAllCurves(lstm);
  CKPLAN_ASSIGN_OR_RETURN(curves.sublinear, BestOverTime(lstm, steps));
  return curves;
}

void Add(FigureTable* table, const std::string& subject, const char* how, FigureUnit unit,
         int64_t ours, std::optional<int64_t> paper = {}, const char* why = "") {
  Figure figure;
  figure.subject = subject;
  figure.quantity = how;
  figure.unit = unit;
  figure.ours = ours;
  figure.paper = paper;
  if (*why != '\0') figure.note = table->Note(why);
  table->figures.push_back(std::move(figure));
}

// Returns the exponent in memory ~ work^exponent, in steps of 0.01; linear growth has the exponent
// 1.
int64_t ExponentSteps(Bytes few, Bytes many, int64_t work_few, int64_t work_many) {
  const auto log_ratio = [](int64_t a, int64_t b) {
    return std::log(static_cast<double>(b) / static_cast<double>(a));
  };
  const double exponent = log_ratio(few.count(), many.count()) / log_ratio(work_few, work_many);
  return std::lround(exponent * 100);
}

constexpr const char* kDepthIntro =
    "Memory of feature maps and their gradients by static allocation, batch 32, images of 224 x "
    "224: pre-activation bottleneck networks with equally many units in each of the four stages. "
    "Elementwise operations and their gradients run in place. Only the last two curves recompute: "
    "drop bn-relu is `chen-drop-bn-relu`, which keeps the results of poolings, and the sublinear "
    "plan is `chen-search`; both share memory. The rows after sharing show graph colouring, the "
    "O(n^2) method of section 3 (here largest first, in place as in sharing), and the arena of "
    "plan files, where each gradient has its own memory. The paper gives numbers only for 1,000 "
    "layers. The exponent is that of memory ~ depth^exponent between 200 and 1,001 layers. A "
    "convolution or product costs 10 and everything else 1; backward costs twice as much. The "
    "paper's 30 % (section 5.4) was measured.";

constexpr const char* kSublinearNote =
    "\"Less than 7GB\" was reported by a device and includes parameters and workspaces; ours "
    "counts only feature maps and gradients.";
constexpr const char* kForwardNote =
    "Section 5.4's \"double forward cost\", as a share of a forward pass. The ends of segments and "
    "the last segment stay in memory, so they aren't recomputed.";
constexpr const char* kFactorNote =
    "\"A factor of two to three\" was read from a log-scale figure. Without optimization, ours "
    "counts every gradient in full.";

void AddResidualCurves(FigureTable* table, int64_t depth, const Curves& curves) {
  const std::string subject = fmt::format("ResNet, {} layers", depth);
  const bool has_paper = depth == 1001;
  const auto number = [&](int64_t steps) {
    return has_paper ? std::optional<int64_t>(steps) : std::nullopt;
  };
  constexpr FigureUnit kUnit = FigureUnit::kGigabytes;
  Add(table, subject, "no optimization", kUnit, GigabyteSteps(curves.none));
  Add(table, subject, "inplace", kUnit, GigabyteSteps(curves.in_place));
  Add(table, subject, "sharing", kUnit, GigabyteSteps(curves.sharing), number(480));
  Add(table, subject, "graph colouring", kUnit, GigabyteSteps(curves.coloring));
  Add(table, subject, "arena of a plan", kUnit, GigabyteSteps(curves.arena));
  Add(table, subject, "drop bn-relu", kUnit, GigabyteSteps(curves.drop_bn_relu));
  Add(table, subject, "sublinear plan", kUnit, GigabyteSteps(curves.sublinear), number(70),
      has_paper ? kSublinearNote : "");
  Add(table, subject, "sublinear plan, graph colouring", kUnit,
      GigabyteSteps(curves.sublinear_coloring));
  Add(table, subject, "sublinear plan, arena of a plan", kUnit,
      GigabyteSteps(curves.sublinear_arena));
}

Result<FigureTable> ResidualTable() {
  FigureTable table;
  table.title = "Figure 5, residual networks of growing depth";
  table.intro = kDepthIntro;
  Curves at_200;
  Curves at_1001;
  for (const int64_t depth : {50, 101, 200, 500, 1001}) {
    CKPLAN_ASSIGN_OR_RETURN(const Curves curves, ResidualCurves(depth));
    AddResidualCurves(&table, depth, curves);
    if (depth == 200) at_200 = curves;
    at_1001 = curves;
  }
  constexpr FigureUnit kUnit = FigureUnit::kFactor;
  const auto exponent = [](Bytes few, Bytes many) { return ExponentSteps(few, many, 200, 1001); };
  Add(&table, "ResNet, 200 to 1001 layers", "exponent of sharing", kUnit,
      exponent(at_200.sharing, at_1001.sharing), 100);
  Add(&table, "ResNet, 200 to 1001 layers", "exponent of the sublinear plan", kUnit,
      exponent(at_200.sublinear, at_1001.sublinear));
  Add(&table, "ResNet, 1001 layers", "recomputed by the sublinear plan", FigureUnit::kPercent,
      at_1001.recomputed, 1000, kForwardNote);
  Add(&table, "ResNet, 1001 layers", "time added by the sublinear plan", FigureUnit::kPercent,
      at_1001.added_time, 300);
  Add(&table, "ResNet, 1001 layers", "no optimization / sharing", kUnit,
      FactorSteps(at_1001.none, at_1001.sharing), 300, kFactorNote);
  Add(&table, "ResNet, 1001 layers", "no optimization / graph colouring", kUnit,
      FactorSteps(at_1001.none, at_1001.coloring), 300, kFactorNote);
  return table;
}

constexpr const char* kLstmIntro =
    "An LSTM of 4 layers and 1,024 hidden units, batch 64, 50 inputs and a softmax over 5,000 "
    "classes at each time step. The cell consists of single operations, as in MXNet. An unrolled "
    "network has no splitting vertices, because each time step passes the states of all layers on "
    "to the next. The sublinear plan is therefore `chen-frontier`, which cuts between time steps "
    "and keeps all states there, with the number of segments (1, 2, 4, ...) that needs the least "
    "memory. Gradients of weights aren't feature maps, so only the rows that say so count them: "
    "one gradient per weight and time step or, in place, one per weight (\"inplace optimization in "
    "our experiment enables direct addition of weight gradient to a single memory cell\").";
constexpr const char* kLstmNote =
    "\"More than 4x\". The factor grows with the number of time steps: section 5.3 has 64, Fig. 6 "
    "several.";

Result<FigureTable> LstmTable() {
  FigureTable table;
  table.title = "Figure 6, unrolled LSTM";
  table.intro = kLstmIntro;
  for (const int64_t steps : {64, 128, 256, 512}) {
    CKPLAN_ASSIGN_OR_RETURN(const Curves curves, LstmCurves(steps));
    const Bytes weights = LstmWeights(4, 1024, 50, 5000);
    const std::string subject = fmt::format("LSTM, {} steps", steps);
    constexpr FigureUnit kUnit = FigureUnit::kGigabytes;
    Add(&table, subject, "no optimization", kUnit, GigabyteSteps(curves.none));
    Add(&table, subject, "inplace", kUnit, GigabyteSteps(curves.in_place));
    Add(&table, subject, "sharing", kUnit, GigabyteSteps(curves.sharing));
    Add(&table, subject, "sublinear plan", kUnit, GigabyteSteps(curves.sublinear));
    Add(&table, subject, "sharing / sublinear plan", FigureUnit::kFactor,
        FactorSteps(curves.sharing, curves.sublinear), 400, kLstmNote);
    Add(&table, subject, "no optimization, with gradients of weights", kUnit,
        GigabyteSteps(curves.none + steps * weights));
    Add(&table, subject, "inplace, with gradients of weights", kUnit,
        GigabyteSteps(curves.in_place + weights));
  }
  return table;
}

}  // namespace

Result<Reproduction> ReproduceChen(const std::string& models) {
  CKPLAN_ASSIGN_OR_RETURN(FigureTable residual, ResidualTable());
  CKPLAN_ASSIGN_OR_RETURN(FigureTable lstm, LstmTable());
  CKPLAN_ASSIGN_OR_RETURN(FigureTable times, ChenTimeTable(models));
  return Reproduction{
      "chen",
      "Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016",
      {std::move(residual), std::move(lstm), std::move(times), ChenMeasuredTable()}};
}

}  // namespace ckplan
