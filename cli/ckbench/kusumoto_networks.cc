#include "cli/ckbench/kusumoto_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cli/ckbench/chainer_graph.h"
#include "cli/ckbench/paper_graph.h"
#include "lib/base/file.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

constexpr const char* kLossVertices =
    "The authors' graphs have two more vertices: the loss, and the Reshape before the linear "
    "layers, which isn't an operation in ours.";
constexpr const char* kUnetVertices =
    "The authors' graph has a ReLU after each up-convolution (4 vertices), a second dropout and "
    "the loss; ours crops each axis by a separate operation (4).";
constexpr const char* kPspWhy =
    "The paper's graph has 385 vertices; ours has 375, as torchvision's ResNet101 differs in "
    "details.";
constexpr const char* kUnetWhy =
    "Ours is the published network, whose convolutions do not pad. The authors' graph is larger: "
    "its least budget is 5,545,689,088 bytes, ours 4,643,782,656.";
constexpr const char* kResNetWhy =
    "torchvision's ResNet halves the resolution in the 3 x 3 convolution of a unit, the authors' "
    "in the 1 x 1 convolution before it, so tensors at stage boundaries differ (least budget at "
    "batch 32: 1,297,350,656 bytes; on the authors' graph 1,258,815,488; for the approximate "
    "program 1,310,195,712 on both).";
constexpr const char* kKusumotoVggWhy =
    "The graph is the authors'. Its smallest feasible budget (2,106,589,184 bytes at batch 32) and "
    "overhead (41) equal theirs.";
constexpr const char* kDenseWhy =
    "The same graph except for the loss. What Chainer's functions hold and what are views there "
    "count only on the authors' graph (`ckbench kusumoto`).";
constexpr const char* kGoogWhy =
    "The graphs differ: ours is Inception v1 of the ONNX model zoo (142 vertices, without "
    "auxiliary classifiers), the paper's is Chainer's GoogLeNet (134). `ckbench kusumoto` computes "
    "these columns on the authors' graph.";

constexpr std::array kKusumotoNetworks = {
    KusumotoNetwork{.model = "pspnet101_713",
                    .name = "PSPNet",
                    .graph = "cg_pspnet.txt",
                    .graph_batch = 1,
                    .batch = 2,
                    .vertices = 385,
                    .vanilla = 94,
                    .with_liveness = {27, 31, 28, 32, 40},
                    .with_percent = {71, 67, 70, 66, 58},
                    .without_liveness = {32, 33, 33, 33, 76},
                    .without_percent = {57, 56, 56, 56, 13},
                    .vertices_why = kPspWhy,
                    .why = kPspWhy},
    KusumotoNetwork{.model = "unet_572",
                    .name = "U-Net",
                    .graph = "cg_unet.txt",
                    .graph_batch = 8,
                    .batch = 8,
                    .vertices = 60,
                    .vanilla = 91,
                    .with_liveness = {50, 67, 47, 53, 74},
                    .with_percent = {45, 26, 48, 42, 18},
                    .without_liveness = {68, 68, 68, 68, kRanOutOfMemory},
                    .without_percent = {21, 21, 21, 21, kRanOutOfMemory},
                    .vertices_why = kUnetVertices,
                    .why = kUnetWhy},
    KusumotoNetwork{.model = "resnet50",
                    .name = "ResNet50",
                    .graph = "cg_resnet50.txt",
                    .graph_batch = 32,
                    .batch = 96,
                    .vertices = 176,
                    .vanilla = 89,
                    .with_liveness = {34, 44, 34, 43, 37},
                    .with_percent = {62, 51, 62, 51, 59},
                    .without_liveness = {47, 44, 47, 44, 67},
                    .without_percent = {42, 45, 42, 45, 22},
                    .vertices_why = kLossVertices,
                    .why = kResNetWhy},
    KusumotoNetwork{.model = "resnet152",
                    .name = "ResNet152",
                    .graph = "cg_resnet152.txt",
                    .graph_batch = 32,
                    .batch = 48,
                    .vertices = 516,
                    .vanilla = 92,
                    .with_liveness = {23, 25, 23, 25, 24},
                    .with_percent = {75, 73, 75, 73, 74},
                    .without_liveness = {28, 28, 28, 28, 41},
                    .without_percent = {61, 61, 61, 61, 48},
                    .vertices_why = kLossVertices,
                    .why = kResNetWhy},
    KusumotoNetwork{.model = "vgg19",
                    .name = "VGG19",
                    .graph = "cg_vgg19.txt",
                    .graph_batch = 32,
                    .batch = 64,
                    .vertices = 46,
                    .has_idle_pooling = true,
                    .vanilla = 70,
                    .with_liveness = {45, 55, 45, 55, 47},
                    .with_percent = {36, 22, 36, 22, 34},
                    .without_liveness = {55, 55, 55, 55, 63},
                    .without_percent = {34, 34, 34, 34, 26},
                    .vertices_why = kLossVertices,
                    .why = kKusumotoVggWhy},
    KusumotoNetwork{.model = "densenet161",
                    .name = "DenseNet161",
                    .graph = "cg_densenet.txt",
                    .graph_batch = 32,
                    .batch = 32,
                    .vertices = 568,
                    .vanilla = 85,
                    .with_liveness = {16, 19, 17, 18, 18},
                    .with_percent = {81, 78, 80, 78, 79},
                    .without_liveness = {19, 20, 19, 20, 34},
                    .without_percent = {70, 69, 70, 69, 55},
                    .vertices_why = kLossVertices,
                    .why = kDenseWhy},
    KusumotoNetwork{.model = "light_inception_v1",
                    .name = "GoogLeNet",
                    .graph = "cg_googlenet.txt",
                    .graph_batch = 32,
                    .batch = 256,
                    .vertices = 134,
                    .has_fixed_batch = true,
                    .vanilla = 85,
                    .with_liveness = {52, 55, 52, 59, 65},
                    .with_percent = {39, 36, 39, 31, 24},
                    .without_liveness = {60, 60, 60, 60, kRanOutOfMemory},
                    .without_percent = {29, 29, 29, 29, kRanOutOfMemory},
                    .vertices_why = kGoogWhy,
                    .why = kGoogWhy},
};

// Returns for each tensor whether some backward reads it, or the model returns it.
IdVector<TensorId, bool> HeldByBackward(const TensorGraph& graph) {
  IdVector<TensorId, bool> is_held(graph.tensors().size());
  for (const Node& node : graph.nodes()) {
    for (const TensorId read : node.backward_reads) is_held[read] = true;
  }
  for (const TensorId output : graph.outputs()) is_held[output] = true;
  return is_held;
}

}  // namespace

std::span<const KusumotoNetwork> KusumotoNetworks() { return kKusumotoNetworks; }

Result<TensorGraph> KusumotoGraph(const std::string& models, const KusumotoNetwork& network,
                                  int64_t batch, std::string_view cost) {
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph loaded,
                          LoadPaperModel(models, network.model, network.has_fixed_batch ? 0 : batch,
                                         Autograd::kMinimal, 0, cost));
  const TensorGraph bare = WithoutStatistics(loaded);
  const TensorGraph graph = WithChainedConcatenations(WithoutNodes(bare, [&](const Node& node) {
    return network.has_idle_pooling && IsIdlePooling(bare, node);
  }));
  return network.has_fixed_batch ? WithBatch(graph, batch) : graph;
}

Result<ChainerNetwork> ReadAuthorsNetwork(const std::string& folder,
                                          const KusumotoNetwork& network) {
  const std::string path = folder + "/" + network.graph;
  CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  return ReadChainerNetwork(text, path);
}

TensorGraph WithChainerBuffers(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  int64_t file_id = 0;
  for (const Tensor& tensor : parts.tensors) file_id = std::max(file_id, tensor.file_id + 1);
  for (Node& node : parts.nodes) {
    const bool is_normalisation = node.op == "LocalResponseNormalization";
    if (!is_normalisation && node.op != "Dropout") continue;
    Tensor held;
    held.file_id = file_id++;
    held.name = node.name + (is_normalisation ? " scale" : " mask");
    held.bytes = parts.tensors[node.outputs.front()].bytes;
    held.kind = TensorKind::kStatistic;
    held.requires_grad = false;
    if (is_normalisation) node.backward_workspace = held.bytes;
    node.outputs.push_back(parts.tensors.push_back(std::move(held)));
    node.backward_reads.push_back(node.outputs.back());
  }
  return TensorGraph::Create(std::move(parts)).value();
}

TensorGraph WithChainerReads(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) {
    if (node.op == "Add" || node.op == "Concat") node.backward_reads.clear();
  }
  return TensorGraph::Create(std::move(parts)).value();
}

int64_t ChenSegmentsOf(const TensorGraph& graph) {
  // A splitting vertex but the last one is the boundary of one lower set.
  const auto sets = static_cast<int64_t>(FindChain(graph, VertexGraph(graph)).splitting.size()) + 1;
  int64_t root = 1;
  while ((root + 1) * (root + 1) <= sets) ++root;
  return root;
}

Result<Bytes> KusumotoBudget(const TensorGraph& graph, const KusumotoNetwork& network,
                             int64_t step_mb) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver("approx-dp"));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(Problem(graph, Objective::kTime), SolveLimits{}));
  const int64_t step = step_mb * 1'000'000 * network.batch / network.graph_batch;
  return Bytes(RoundUp(solver->knob().preset, step));
}

Result<Strategy> KusumotoStrategy(const TensorGraph& graph, const KusumotoColumn& column,
                                  std::optional<Bytes> budget) {
  const Problem problem(graph, column.objective);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(column.algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(problem, SolveLimits{}));
  const bool is_chen = &column == &kKusumotoColumns[kChenColumn];
  const int64_t setting =
      is_chen ? ChenSegmentsOf(graph) : budget.value_or(Bytes(solver->knob().preset)).count();
  CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, solver->Solve(setting, SolveLimits{}));
  return std::move(outcome.strategy);
}

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

Schedule CanonicalWithLiveness(const TensorGraph& graph, const Strategy& strategy) {
  Schedule schedule = LowerWithoutLiveness(graph, strategy);
  std::erase_if(schedule.steps, [](const Step& step) { return step.is_free(); });
  schedule.frees = FreePolicy::kLiveness;
  return schedule;
}

namespace {

constexpr Bytes kK40Memory(kKusumotoDeviceMemory * 100'000'000);
constexpr const char* kK40Cost = "flops:k40-12g";

// The curves of Fig. 3 as positions in kKusumotoColumns, the time-centric curve first.
constexpr std::array<size_t, 3> kCurves = {1, 0, 4};

constexpr const char* kBatchNote =
    "Ours is where the simulated peak, which only counts tensors, reaches 11.4 GB. The authors' is "
    "where a device had no room for convolution workspaces and partly empty blocks, or the largest "
    "batch they tried; Fig. 3 does not say which.";
constexpr const char* kTimeNote =
    "The paper's is measured. In the cost model every operation reaches the device's peak rate of "
    "arithmetic or memory; on a real device each reaches a different share of it.";

Figure BatchFigure(const KusumotoNetwork& network, const char* how, int64_t batch,
                   std::optional<int64_t> paper, FigureTable* table) {
  Figure figure;
  figure.subject = network.name;
  figure.quantity = how;
  figure.unit = FigureUnit::kCount;
  figure.ours = batch;
  figure.paper = paper;
  if (figure.NeedsExplanation()) figure.note = table->Note(kBatchNote);
  return figure;
}

int64_t LargestVanillaBatch(const KusumotoPeaks& peaks) {
  return LargestBatch(peaks.vanilla, peaks.constants, peaks.network->batch, kK40Memory);
}

// A network at one batch size, whose strategies are timed.
class TimedNetwork {
 public:
  // `by_paper` has the papers' costs, by which strategies are chosen; `by_device` has times.
  TimedNetwork(const TensorGraph& by_paper, const TensorGraph& by_device)
      : by_paper_(WithBackwardByInput(by_paper)), by_device_(WithBackwardByInput(by_device)) {}

  Cost Vanilla() const { return by_device_.forward_cost() + by_device_.backward_cost(); }

  // Returns nothing if the strategy does not fit into the device's memory.
  Result<std::optional<Cost>> TimeOf(const KusumotoColumn& column) const {
    const Bytes room = kK40Memory - TotalConstants(by_paper_.constants(), Bytes(0));
    Result<Strategy> strategy =
        column.objective == Objective::kTime && &column != &kKusumotoColumns[kChenColumn]
            ? KusumotoStrategy(by_paper_, column, room)
            : KusumotoStrategy(by_paper_, column);
    if (!strategy.ok()) {
      if (strategy.error().code == ErrorCode::kInfeasible) return std::optional<Cost>();
      return std::move(strategy).error();
    }
    const Schedule schedule = CanonicalWithLiveness(by_device_, *strategy);
    const Simulation simulation = Simulator(by_device_).Run(schedule).value();
    if (simulation.peak > room) return std::optional<Cost>();
    return std::optional<Cost>(Vanilla() + simulation.overhead);
  }

 private:
  TensorGraph by_paper_;
  TensorGraph by_device_;
};

Result<TimedNetwork> MakeTimedNetwork(const std::string& models, const KusumotoNetwork& network,
                                      int64_t batch) {
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph by_paper, KusumotoGraph(models, network, batch));
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph by_device,
                          KusumotoGraph(models, network, batch, kK40Cost));
  return TimedNetwork(by_paper, by_device);
}

Figure TimeFigure(const std::string& subject, const char* how, Cost time) {
  Figure figure;
  figure.subject = subject;
  figure.quantity = how;
  figure.unit = FigureUnit::kMilliseconds;
  figure.ours = MillisecondSteps(time);
  return figure;
}

Result<Done> AddTimes(const std::string& models, const KusumotoPeaks& peaks, FigureTable* table) {
  const KusumotoNetwork& network = *peaks.network;
  const int64_t batch = 2 * LargestVanillaBatch(peaks);
  CKPLAN_ASSIGN_OR_RETURN(const TimedNetwork timed, MakeTimedNetwork(models, network, batch));
  const std::string subject = fmt::format("{}, batch {}", network.name, batch);
  table->figures.push_back(TimeFigure(subject, "vanilla", timed.Vanilla()));
  std::array<std::optional<Cost>, kCurves.size()> times;
  for (size_t i = 0; i < kCurves.size(); ++i) {
    const KusumotoColumn& column = kKusumotoColumns[kCurves[i]];
    CKPLAN_ASSIGN_OR_RETURN(times[i], timed.TimeOf(column));
    if (times[i]) table->figures.push_back(TimeFigure(subject, column.name, *times[i]));
  }
  if (!times.front() || !times.back()) return Done{};
  Figure gain;
  gain.subject = subject;
  gain.quantity = "Chen's / ApproxDP + TC";
  gain.unit = FigureUnit::kFactor;
  gain.ours = FactorSteps(*times.back(), *times.front());
  if (network.name == std::string_view("ResNet152")) gain.paper = 116;
  if (gain.NeedsExplanation()) gain.note = table->Note(kTimeNote);
  table->figures.push_back(std::move(gain));
  return Done{};
}

}  // namespace

int64_t LargestBatch(Bytes peak, const ConstantMemory& constants, int64_t batch, Bytes memory) {
  const Bytes fixed = constants.parameters + constants.parameter_gradients;
  const auto room = static_cast<__int128>((memory - fixed).count()) * batch;
  return static_cast<int64_t>(room / (peak - fixed).count());
}

FigureTable KusumotoBatchTable(std::span<const KusumotoPeaks> peaks) {
  FigureTable table;
  table.title = "Section 5.2, the largest batches";
  table.intro =
      "The largest batch whose simulated peak with liveness analysis fits in the 11.4 GB of the "
      "paper's device, including parameters, their gradients and the input, at the budgets of "
      "Table 1. \"For PSPNet, our method was able to increase the maximum possible batch size from "
      "2 to 8\" is the only one in the text.";
  for (const KusumotoPeaks& of : peaks) {
    const bool is_named = of.network->name == std::string_view("PSPNet");
    const auto paper = [&](int64_t batch) {
      return is_named ? std::optional<int64_t>(batch) : std::nullopt;
    };
    table.figures.push_back(
        BatchFigure(*of.network, "vanilla", LargestVanillaBatch(of), paper(2), &table));
    for (const size_t i : kCurves) {
      const int64_t batch =
          LargestBatch(of.columns[i], of.constants, of.network->batch, kK40Memory);
      table.figures.push_back(BatchFigure(*of.network, kKusumotoColumns[i].name, batch,
                                          i == 0 ? paper(8) : std::nullopt, &table));
    }
  }
  return table;
}

Result<FigureTable> KusumotoTimeTable(const std::string& models,
                                      std::span<const KusumotoPeaks> peaks) {
  FigureTable table;
  table.title = "Figure 3, time of a step at twice the largest vanilla batch";
  table.intro =
      "Forward, backward and recomputation, by the cost model of the paper's device (`--cost "
      "flops:k40-12g`); strategies are chosen by the paper's costs of 10 and 1. The time-centric "
      "strategy's B is what parameters, their gradients and the input leave of 11.4 GB; the "
      "memory-centric one has the least B. Vanilla is the time on a device with more memory, the "
      "figure's dotted line. Strategies that don't fit have no row; nor has GoogLeNet, whose model "
      "is for one sample. The text has one number.";
  for (const KusumotoPeaks& of : peaks) {
    if (of.network->has_fixed_batch) continue;
    CKPLAN_RETURN_IF_ERROR(AddTimes(models, of, &table));
  }
  return table;
}

}  // namespace ckplan
