// Feng & Huang 2018, Table 1: the theoretical ratio of fifteen networks.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "cli/ckbench/reproduction.h"
#include "lib/algorithms/feng/two_terminal.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"

namespace ckplan {
namespace {

struct Network {
  const char* model;
  const char* name;
  int64_t ratio;     // As in Table 1, in 0.0001.
  int64_t side = 0;  // Width and height of the input; 0: the model's own.
  bool has_idle_pooling = false;
  const char* why = "";
};

constexpr const char* kVggWhy =
    "A plain chain, whose optimum can be checked by hand. Whether the ends, the adaptive pooling, "
    "dropout or ReLU are counted as "
    "vertices or not, the paper's figure does not come out, while it does for AlexNet; we do not "
    "know what it counts.";
constexpr const char* kInceptionWhy =
    "The exporter has joined the concatenations inside two blocks with the ones around them. With "
    "those (196,608 elements) and the "
    "dropout as tensors the ratio is 0.2399.";

constexpr std::array kNetworks = {
    Network{"alexnet", "AlexNet", 5787, 0, true},
    Network{"vgg11", "VGG11", 4961, 0, true, kVggWhy},
    Network{"vgg13", "VGG13", 5305, 0, true, kVggWhy},
    Network{"vgg16", "VGG16", 4928, 0, true, kVggWhy},
    Network{"vgg19", "VGG19", 4668, 0, true, kVggWhy},
    Network{"resnet18", "ResNet18", 3720},
    Network{"resnet34", "ResNet34", 2726},
    Network{"resnet50", "ResNet50", 2482},
    Network{"resnet101", "ResNet101", 1887},
    Network{"resnet152", "ResNet152", 1593},
    Network{"densenet121", "DenseNet121", 1861},
    Network{"densenet161", "DenseNet161", 1583},
    Network{"densenet169", "DenseNet169", 1616},
    Network{"densenet201", "DenseNet201", 1432},
    Network{"inception_v3", "Inception v3", 2376, 300, false, kInceptionWhy},
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

// The graph with memory of its own for each sum, although `out += identity` adds in place.
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

}  // namespace

Result<Reproduction> ReproduceFeng(const std::string& models) {
  FigureTable table;
  table.title = "Table 1, theoretical ratio";
  table.intro = kIntro;
  for (const Network& network : kNetworks) {
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
  return Reproduction{
      "feng", "Feng, Huang: Cutting Down Training Memory by Re-forwarding, 2018", {table}};
}

}  // namespace ckplan
