// Feng & Huang 2018, Table 1: the theoretical ratios of fifteen networks, the memory of regular
// training, and the ratios that only a GPU can measure.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "cli/ckbench/reproduction.h"
#include "lib/planning/algorithms/feng/two_terminal.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

struct Network {
  const char* model;
  const char* name;
  int64_t ratio;  // "Theoretical ratio", in 0.0001.
  int64_t batch;
  int64_t regular;   // "Regular(MB)"
  int64_t chen;      // "Chen(MB)"
  int64_t forward;   // "Re-forwarding (ours) (MB)"
  int64_t measured;  // "Measured ratio", in 0.0001.
  int64_t side = 0;  // Width and height of the input; 0 keeps the model's own.
  bool has_idle_pooling = false;
  const char* why = "";
};

constexpr const char* kFengVggWhy =
    "A plain chain, whose optimum can be checked by hand. Whether the ends, the adaptive pooling, "
    "dropout or ReLU are counted as "
    "vertices or not, the paper's figure does not come out, while it does for AlexNet; we do not "
    "know what it counts.";
constexpr const char* kInceptionWhy =
    "The exporter has joined the concatenations inside two blocks with the ones around them. With "
    "those (196,608 elements) and the "
    "dropout as tensors the ratio is 0.2399.";

constexpr std::array kFengNetworks = {
    Network{"alexnet", "AlexNet", 5787, 1024, 3550, 3108, 2620, 7380, 0, true},
    Network{"vgg11", "VGG11", 4961, 64, 2976, 2292, 1802, 6055, 0, true, kFengVggWhy},
    Network{"vgg13", "VGG13", 5305, 64, 4152, 2586, 2586, 6228, 0, true, kFengVggWhy},
    Network{"vgg16", "VGG16", 4928, 64, 4470, 2894, 2586, 5785, 0, true, kFengVggWhy},
    Network{"vgg19", "VGG19", 4668, 64, 4788, 2894, 2502, 5226, 0, true, kFengVggWhy},
    Network{"resnet18", "ResNet18", 3720, 256, 5402, 2898, 2898, 5365},
    Network{"resnet34", "ResNet34", 2726, 128, 3900, 1936, 1544, 3959},
    Network{"resnet50", "ResNet50", 2482, 64, 5206, 2332, 1798, 3454},
    Network{"resnet101", "ResNet101", 1887, 32, 3812, 1216, 970, 2545},
    Network{"resnet152", "ResNet152", 1593, 16, 2810, 636, 564, 2007},
    Network{"densenet121", "DenseNet121", 1861, 32, 3984, 1012, 776, 1948},
    Network{"densenet161", "DenseNet161", 1583, 16, 3658, 744, 616, 1684},
    Network{"densenet169", "DenseNet169", 1616, 32, 4826, 998, 848, 1757},
    Network{"densenet201", "DenseNet201", 1432, 16, 3164, 600, 582, 1839},
    Network{"inception_v3", "Inception v3", 2376, 32, 2976, 1026, 910, 3058, 300, false,
            kInceptionWhy},
};

constexpr const char* kIntro =
    "Ours / regular: the least memory by Eq. 1 (`feng-acg`) over the memory of all tensors, the "
    "input and the output of the network "
    "counted in both. Every vertex is a tensor and every edge an operation that is not done in "
    "place; statistics are no tensors, a "
    "sum is one beside what it adds, dropout is done in place. As in the torchvision of 2018, VGG "
    "and AlexNet have no adaptive "
    "pooling, and a DenseNet concatenates step by step. One image of 224 x 224, for Inception v3 "
    "of 300 x 300.";

// Returns the graph in which each sum has its own memory, although `out += identity` adds in place.
TensorGraph WithSeparateSums(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) {
    if (node.op == "Add") node.in_place.clear();
  }
  return TensorGraph::Create(std::move(parts)).value();
}

TensorGraph AsOf2018(const TensorGraph& graph, bool has_idle_pooling) {
  const TensorGraph full = WithSeparateSums(WithoutStatistics(graph));
  const TensorGraph bare = WithoutNodes(full, [&](const Node& node) {
    return node.op == "Dropout" || (has_idle_pooling && IsIdlePooling(full, node));
  });
  return WithChainedConcatenations(bare);
}

Result<int64_t> RatioOf(const TensorGraph& graph) {
  const Problem problem(graph);
  const TwoTerminalGraph view = MakeTwoTerminal(graph, problem.vertices);
  Bytes all = graph.constants().inputs;
  for (const TwoTerminalGraph::Vertex& vertex : view.vertices) all += vertex.memory;
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver("feng-acg"));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(problem, SolveLimits{}));
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome,
                          solver->Solve(solver->knob().preset, SolveLimits{}));
  const Bytes ends = graph.constants().inputs + view.vertices[view.target()].memory;
  return RatioSteps(outcome.paper.peak + ends, all);
}

Result<FigureTable> TheoreticalTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 1, theoretical ratio";
  table.intro = kIntro;
  for (const Network& network : kFengNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(
        const TensorGraph graph,
        LoadPaperModel(models, network.model, 1, Autograd::kMinimal, network.side));
    Figure figure;
    figure.subject = network.name;
    figure.quantity = "ours / regular";
    figure.unit = FigureUnit::kRatio;
    CKPLAN_ASSIGN_OR_RETURN(figure.ours, RatioOf(AsOf2018(graph, network.has_idle_pooling)));
    figure.paper = network.ratio;
    if (*network.why != '\0') figure.note = table.Note(network.why);
    table.figures.push_back(std::move(figure));
  }
  return table;
}

constexpr const char* kRegularNote =
    "The paper's is what two runs, at different batches, differ by: besides tensors, workspaces of "
    "convolutions and the unused parts of the allocator's blocks, as far as they grow with the "
    "batch.";

constexpr const char* kRoundNote =
    "The paper's section 1 says \"around 5000 MB\" of the network and the batch of which its own "
    "Table 1 says 3,812. It does not say what the first includes; parameters, their gradients and "
    "the driver's context are left out of the second.";

std::string FengSubject(const Network& network) {
  return fmt::format("{}, batch {}", network.name, network.batch);
}

// Adds the figure that the paper's introduction gives for the network, before the row of `figure`.
void AddRoundFigure(const Figure& figure, FigureTable* table) {
  Figure round = figure;
  round.quantity = "regular, section 1";
  round.paper = 5000;
  round.note = table->Note(kRoundNote);
  table->figures.push_back(std::move(round));
}

Result<FigureTable> RegularTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 1, regular training";
  table.intro =
      "The simulated peak of keeping everything under `--autograd torch`, with the input. "
      "Parameters and their gradients, which do not grow with the batch, are left out of the "
      "paper's by its way of measuring. Its MB are taken as MiB, which fit nearly all of them; "
      "10^6 bytes fit few.";
  for (const Network& network : kFengNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(
        const TensorGraph graph,
        LoadPaperModel(models, network.model, network.batch, Autograd::kTorch, network.side));
    Figure figure;
    figure.subject = FengSubject(network);
    figure.quantity = "regular";
    figure.unit = FigureUnit::kMebibytes;
    figure.ours = MebibyteSteps(KeepAllPeak(graph) + graph.constants().inputs);
    figure.paper = network.regular;
    if (figure.NeedsExplanation()) figure.note = table.Note(kRegularNote);
    if (network.name == std::string_view("ResNet101")) AddRoundFigure(figure, &table);
    table.figures.push_back(std::move(figure));
  }
  return table;
}

constexpr const char* kFengCommandNote =
    "Empty: only a GPU can fill it in. `ckplan testdata/models/resnet50.onnx -D N=64 --algo "
    "feng-acg --align 256 -o plan.json`, then `ckexec validate testdata/models/resnet50.onnx "
    "--plan plan.json --backend cuda`, whose report has both peaks; Inception v3 needs "
    "`--input-shape x=32,3,300,300` as well. For Chen's it is `--algo chen-search`.";

FigureTable MeasuredTable() {
  FigureTable table;
  table.title = "Table 1, measured ratio";
  table.intro =
      "What Chen's algorithm and re-forwarding need on a device, in MB, taken as MiB as above, and "
      "the memory of re-forwarding over that of regular training.";
  for (const Network& network : kFengNetworks) {
    const auto add = [&](const char* how, FigureUnit unit, int64_t paper) {
      Figure figure;
      figure.subject = FengSubject(network);
      figure.quantity = how;
      figure.unit = unit;
      figure.paper = paper;
      figure.note = table.Note(kFengCommandNote);
      table.figures.push_back(std::move(figure));
    };
    add("Chen's, measured", FigureUnit::kMebibytes, network.chen);
    add("re-forwarding, measured", FigureUnit::kMebibytes, network.forward);
    add("ours / regular, measured", FigureUnit::kRatio, network.measured);
  }
  return table;
}

}  // namespace

Result<Reproduction> ReproduceFeng(const std::string& models) {
  CKPLAN_ASSIGN_OR_RETURN(FigureTable theoretical, TheoreticalTable(models));
  CKPLAN_ASSIGN_OR_RETURN(FigureTable regular, RegularTable(models));
  return Reproduction{"feng",
                      "Feng, Huang: Cutting Down Training Memory by Re-forwarding, 2018",
                      {std::move(theoretical), std::move(regular), MeasuredTable()}};
}

}  // namespace ckplan
