// Kusumoto et al. 2019: peak memory with liveness analysis (Table 1) and without (Table 2).
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "cli/ckbench/reproduction.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"
#include "lib/schedule/lower_without_liveness.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr const char* kPaper =
    "Kusumoto, Inoue, Watanabe, Akiba, Koyama: A Graph Theoretic Framework of Recomputation "
    "Algorithms for Memory-Efficient "
    "Backpropagation, NeurIPS 2019";

// Peaks in 0.1 GB, as printed, in the order of the paper's columns; kNone where memory ran out.
using Columns = std::array<int64_t, 5>;
constexpr int64_t kNone = 0;

struct Network {
  const char* model;
  const char* name;
  int64_t batch;
  bool has_fixed_batch;   // The model is for one sample.
  bool has_idle_pooling;  // It pools to the size that is there.
  int64_t vanilla;        // 0.1 GB
  Columns with_liveness;
  Columns without_liveness;
  const char* why;  // How the graph explains differences.
  // Also shows what the dynamic programs find under a budget so many percent above the least one;
  // 0: does not.
  int percent_above_min = 0;
};

constexpr const char* kPspWhy =
    "The paper's graph has 385 vertices, ours, from torchvision's ResNet101, 375: another network "
    "in detail.";
constexpr const char* kUnetWhy =
    "Ours is the published network, whose convolutions do not pad. The authors' graph is larger: "
    "its least budget is 5,545,689,088 "
    "bytes, that of ours 4,643,782,656.";
constexpr const char* kResNetWhy =
    "torchvision's ResNet halves the resolution in the 3 x 3 convolution of a unit, the authors' "
    "in the 1 x 1 one before: other "
    "tensors at the stage boundaries (least budget at batch 32: 1,297,350,656 bytes, 1,258,815,488 "
    "on the authors' graph; 1,310,195,712 "
    "on both for the approximate program).";
constexpr const char* kVggWhy =
    "The graph is the authors', with the least budget to the byte (2,106,589,184 at batch 32) and "
    "their overhead (41). A budget 5 % above the least (the last four rows) allows sequences that "
    "keep less: the memory-centric peak is then the paper's, the time-centric one within 3 points. "
    "So the paper's search for the least budget seems to have ended above it for Table 1; Table 2 "
    "agrees at the least budget itself.";
constexpr const char* kDenseWhy =
    "The same graph up to the loss. The paper's is measured on a device, where convolutions have "
    "workspaces and memory is taken in "
    "blocks.";
constexpr const char* kGoogWhy =
    "Not the same graph: ours is Inception v1 of the ONNX model zoo, 142 vertices without "
    "auxiliary classifiers, the paper's is "
    "Chainer's GoogLeNet of 134. The vanilla peaks are near each other, what can be dropped is "
    "not; without the authors' graph we "
    "cannot tell why.";

constexpr std::array kNetworks = {
    Network{"pspnet101_713",
            "PSPNet",
            2,
            false,
            false,
            94,
            {27, 31, 28, 32, 40},
            {32, 33, 33, 33, 76},
            kPspWhy},
    Network{"unet_572",
            "U-Net",
            8,
            false,
            false,
            91,
            {50, 67, 47, 53, 74},
            {68, 68, 68, 68, kNone},
            kUnetWhy},
    Network{"resnet50",
            "ResNet50",
            96,
            false,
            false,
            89,
            {34, 44, 34, 43, 37},
            {47, 44, 47, 44, 67},
            kResNetWhy},
    Network{"resnet152",
            "ResNet152",
            48,
            false,
            false,
            92,
            {23, 25, 23, 25, 24},
            {28, 28, 28, 28, 41},
            kResNetWhy},
    Network{"vgg19",
            "VGG19",
            64,
            false,
            true,
            70,
            {45, 55, 45, 55, 47},
            {55, 55, 55, 55, 63},
            kVggWhy,
            5},
    Network{"densenet161",
            "DenseNet161",
            32,
            false,
            false,
            85,
            {16, 19, 17, 18, 18},
            {19, 20, 19, 20, 34},
            kDenseWhy},
    Network{"light_inception_v1",
            "GoogLeNet",
            256,
            true,
            false,
            85,
            {52, 55, 52, 59, 65},
            {60, 60, 60, 60, kNone},
            kGoogWhy},
};

struct Column {
  const char* name;
  const char* algorithm;
  Objective objective;
};

constexpr std::array<Column, 5> kColumns = {
    Column{"ApproxDP + MC", "approx-dp", Objective::kMemory},
    Column{"ApproxDP + TC", "approx-dp", Objective::kTime},
    Column{"ExactDP + MC", "exact-dp", Objective::kMemory},
    Column{"ExactDP + TC", "exact-dp", Objective::kTime},
    Column{"Chen's", "chen-greedy", Objective::kTime},
};

// Whether some backward reads the tensor, or the model returns it.
IdVector<TensorId, bool> HeldByBackward(const TensorGraph& graph) {
  IdVector<TensorId, bool> is_held(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    for (const TensorId read : node.backward_reads) is_held[read] = true;
  }
  for (const TensorId output : graph.outputs()) is_held[output] = true;
  return is_held;
}

// Ordinary training in Chainer: tensors that no backward reads are freed after their last reader,
// and all others stay to the end of the step, since the loss holds the whole graph.
Schedule VanillaSchedule(const TensorGraph& graph) {
  const IdVector<TensorId, bool> is_held = HeldByBackward(graph);
  Schedule schedule;
  schedule.frees = FreePolicy::kExplicit;
  for (const NodeId id : graph.nodes().ids()) {
    schedule.steps.push_back(Step::Forward(id));
    std::vector<TensorId> touched = graph.node(id).outputs;
    touched.insert(touched.end(), graph.node(id).inputs.begin(), graph.node(id).inputs.end());
    for (const TensorId tensor : touched) {
      const std::vector<NodeId>& readers = graph.tensor(tensor).consumers;
      const NodeId last = readers.empty() ? graph.tensor(tensor).producer : readers.back();
      if (graph.is_input(tensor) || is_held[tensor] || last != id) continue;
      const Step free = Step::Free(tensor);
      if (schedule.steps.back() != free) schedule.steps.push_back(free);
    }
  }
  schedule.steps.push_back(Step::Loss());
  for (auto i = static_cast<int32_t>(graph.nodes().size()) - 1; i >= 0; --i) {
    schedule.steps.push_back(Step::Backward(NodeId(i)));
  }
  for (const TensorId tensor : graph.tensors().ids()) {
    if (is_held[tensor] && !graph.is_input(tensor)) schedule.steps.push_back(Step::Free(tensor));
  }
  return schedule;
}

Result<TensorGraph> GraphOf(const std::string& models, const Network& network) {
  const int64_t batch = network.has_fixed_batch ? 0 : network.batch;
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph loaded,
                          LoadPaperModel(models, network.model, batch, Autograd::kMinimal));
  const TensorGraph bare = WithoutStatistics(loaded);
  const TensorGraph graph = WithChainedConcatenations(WithoutNodes(bare, [&](const Node& node) {
    return network.has_idle_pooling && IsIdlePooling(bare, node);
  }));
  return network.has_fixed_batch ? WithBatch(graph, network.batch) : graph;
}

Bytes Constants(const TensorGraph& graph) { return TotalConstants(graph.constants(), Bytes(0)); }

constexpr const char* kChenNote =
    "The paper does not give the budget B of Alg. 3, nor say whether it was searched for. Ours is "
    "sqrt(x y) of Appendix A.";

Figure VanillaFigure(const Network& network, Bytes vanilla, FigureTable* table) {
  Figure figure;
  figure.subject = network.name;
  figure.quantity = "vanilla, peak";
  figure.unit = FigureUnit::kGigabytes;
  figure.ours = GigabyteSteps(vanilla);
  figure.paper = network.vanilla;
  if (figure.NeedsExplanation()) figure.note = table->Note(network.why);
  return figure;
}

// The canonical strategy as section 3 describes it, with segments recomputed at once, and liveness
// analysis on top of it (section 3, "popular heuristics").
Schedule WithLiveness(Schedule schedule) {
  std::erase_if(schedule.steps, [](const Step& step) { return step.kind == StepKind::kFree; });
  schedule.frees = FreePolicy::kLiveness;
  return schedule;
}

std::string QuantityOf(const Column& column, int percent_above_min) {
  if (percent_above_min == 0) return column.name;
  return fmt::format("{}, B {} % above least", column.name, percent_above_min);
}

Figure ReductionFigure(const Network& network, const Column& column, std::string quantity,
                       int64_t paper_peak, Bytes peak, Bytes vanilla, FigureTable* table) {
  Figure figure;
  figure.subject = network.name;
  figure.quantity = std::move(quantity);
  figure.unit = FigureUnit::kReduction;
  figure.ours = ReductionSteps(peak, vanilla);
  if (paper_peak != kNone) {
    figure.paper = ReductionSteps(Bytes(paper_peak), Bytes(network.vanilla));
  }
  if (figure.NeedsExplanation()) {
    const bool is_chen = column.algorithm == std::string_view("chen-greedy");
    figure.note = table->Note(is_chen ? kChenNote : network.why);
  }
  return figure;
}

Result<Strategy> StrategyOf(const TensorGraph& graph, const Column& column, int percent_above_min) {
  const Problem problem(graph, column.objective);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(column.algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(problem, SolveLimits{}));
  const int64_t preset = solver->knob().preset;
  const int64_t setting = preset + preset / 100 * percent_above_min;
  CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, solver->Solve(setting, SolveLimits{}));
  return std::move(outcome.strategy);
}

Result<Done> AddNetwork(const std::string& models, const Network& network, FigureTable* with,
                        FigureTable* without) {
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, GraphOf(models, network));
  Simulator simulator(graph);
  const auto peak_of = [&](const Schedule& schedule) {
    return simulator.Run(schedule).value().peak + Constants(graph);
  };
  const Bytes vanilla = peak_of(VanillaSchedule(graph));
  with->figures.push_back(VanillaFigure(network, vanilla, with));
  const auto add_column = [&](size_t i, int percent_above_min) -> Result<Done> {
    const Column& column = kColumns[i];
    CKPLAN_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(graph, column, percent_above_min));
    const Schedule schedule = LowerWithoutLiveness(graph, strategy);
    const std::string quantity = QuantityOf(column, percent_above_min);
    with->figures.push_back(ReductionFigure(network, column, quantity, network.with_liveness[i],
                                            peak_of(WithLiveness(schedule)), vanilla, with));
    without->figures.push_back(ReductionFigure(network, column, quantity,
                                               network.without_liveness[i], peak_of(schedule),
                                               vanilla, without));
    return Done{};
  };
  for (size_t i = 0; i < kColumns.size(); ++i) CKPLAN_RETURN_IF_ERROR(add_column(i, 0));
  if (network.percent_above_min == 0) return Done{};
  for (size_t i = 0; i + 1 < kColumns.size(); ++i) {  // Without Chen's, which has no B of Eq. 2.
    CKPLAN_RETURN_IF_ERROR(add_column(i, network.percent_above_min));
  }
  return Done{};
}

}  // namespace

Result<Reproduction> ReproduceKusumoto(const std::string& models) {
  FigureTable with;
  with.title = "Table 1, peak memory with liveness analysis";
  with.intro =
      "The change of the peak, parameters, their gradients and the input included, against "
      "ordinary training in Chainer, where what "
      "backward reads stays to the end of the step. The budget of the dynamic programs is the "
      "least feasible one of Eq. 2; MC is "
      "memory-centric, TC time-centric; costs are 10 for a convolution and 1 for all else. Chen's "
      "is Alg. 3 on articulation points. "
      "A segment is recomputed at once; liveness frees what it can. The paper's percentages are "
      "computed from its gigabytes, which "
      "have one decimal.";
  FigureTable without;
  without.title = "Table 2, peak memory without liveness analysis";
  without.intro =
      "The same strategies, with frees a segment at a time (`--no-liveness`). Where the paper's "
      "ran out of memory there is no number. "
      "The percentages printed in this table of the paper do not follow from its gigabytes (VGG19: "
      "5.5 of 7.0 GB, printed as -34 %); "
      "those below do.";
  for (const Network& network : kNetworks) {
    CKPLAN_RETURN_IF_ERROR(AddNetwork(models, network, &with, &without));
  }
  return Reproduction{"kusumoto", kPaper, {std::move(with), std::move(without)}};
}

}  // namespace ckplan
