#include "cli/ckbench/chen_times.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

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

// Returns the time that the sublinear plan adds to a step that keeps everything, in 0.1 percent.
Result<int64_t> AddedTime(const TensorGraph& graph) {
  const Problem problem(graph);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver("chen-search"));
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
    "The search weighs memory alone, so how much is computed again differs from network to "
    "network; "
    "and where memory limits an operation, backward takes less than twice as long as forward.";
constexpr const char* kTitanCommandNote =
    "Empty: only a GPU can fill it in. The plans: `ckbench graph resnet-1001 > resnet.json`, then "
    "`ckplan resnet.json --algo chen-search -o plan.json`; for Fig. 6b and 7 `ckbench graph "
    "lstm-64 > lstm.json`, then `ckplan lstm.json --algo chen-frontier -o plan.json`. A step needs "
    "a model, which these graphs are not. The deepest residual network of the repository is "
    "measured by `ckplan testdata/models/resnet152.onnx -D N=32 --algo chen-search --align 256 -o "
    "plan.json` and `ckexec validate testdata/models/resnet152.onnx --plan plan.json --backend "
    "cuda`, whose report has the driver's peak and the times of both steps.";

}  // namespace

Result<FigureTable> ChenTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 7, time by the cost model";
  table.intro =
      "What `chen-search` takes above a step that keeps everything, by the cost model of the "
      "paper's device (`--cost flops:titan-x-12g`), batch 32, images of 224 x 224, for the "
      "residual networks of `testdata/models`. The paper's 30 % is of both its networks.";
  for (const ChenTimedNetwork& network : kChenTimedNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(
        const TensorGraph graph,
        LoadPaperModel(models, network.model, kBatch, Autograd::kMinimal, 0, kTitanCost));
    Figure figure;
    figure.subject = network.name;
    figure.quantity = "time added by the sublinear plan";
    figure.unit = FigureUnit::kPercent;
    CKPLAN_ASSIGN_OR_RETURN(figure.ours, AddedTime(graph));
    figure.paper = kPaperAddedTime;
    if (figure.NeedsExplanation()) figure.note = table.Note(kTitanTimeNote);
    table.figures.push_back(std::move(figure));
  }
  return table;
}

FigureTable ChenMeasuredTable() {
  FigureTable table;
  table.title = "Figures 5b, 6b and 7, measured";
  table.intro = "On a Titan X: all memory that `nvidia-smi` reports, and the time of a step.";
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

}  // namespace ckplan
