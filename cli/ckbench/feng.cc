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
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/lower.h"
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
  // The times of a step in milliseconds that the paper of 2021 measured.
  int64_t regular_ms;
  int64_t forward_ms;
  int64_t side = 0;  // Width and height of the input; 0 keeps the model's own.
  bool has_idle_pooling = false;
  const char* why = "";
};

constexpr const char* kInceptionWhy =
    "The exporter merged the concatenations inside two blocks with those around them. If these "
    "(196,608 elements) and the dropout are counted as tensors, the ratio is 0.2399.";

constexpr std::array kFengNetworks = {
    Network{"alexnet", "AlexNet", 5787, 1024, 3550, 3108, 2620, 7380, 388, 519, 0, true},
    Network{"vgg11", "VGG11", 4961, 64, 2976, 2292, 1802, 6055, 266, 356, 0, true},
    Network{"vgg13", "VGG13", 5305, 64, 4152, 2586, 2586, 6228, 418, 558, 0, true},
    Network{"vgg16", "VGG16", 4928, 64, 4470, 2894, 2586, 5785, 503, 666, 0, true},
    Network{"vgg19", "VGG19", 4668, 64, 4788, 2894, 2502, 5226, 581, 774, 0, true},
    Network{"resnet18", "ResNet18", 3720, 256, 5402, 2898, 2898, 5365, 422, 548},
    Network{"resnet34", "ResNet34", 2726, 128, 3900, 1936, 1544, 3959, 364, 493},
    Network{"resnet50", "ResNet50", 2482, 64, 5206, 2332, 1798, 3454, 394, 516},
    Network{"resnet101", "ResNet101", 1887, 32, 3812, 1216, 970, 2545, 356, 482},
    Network{"resnet152", "ResNet152", 1593, 16, 2810, 636, 564, 2007, 241, 331},
    Network{"densenet121", "DenseNet121", 1861, 32, 3984, 1012, 776, 1948, 218, 292},
    Network{"densenet161", "DenseNet161", 1583, 16, 3658, 744, 616, 1684, 252, 341},
    Network{"densenet169", "DenseNet169", 1616, 32, 4826, 998, 848, 1757, 270, 357},
    Network{"densenet201", "DenseNet201", 1432, 16, 3164, 600, 582, 1839, 200, 306},
    Network{"inception_v3", "Inception v3", 2376, 32, 2976, 1026, 910, 3058, 291, 374, 300, false,
            kInceptionWhy},
};

constexpr const char* kIntro =
    "Ours / regular: the least memory by Eq. 1 (`feng-acg`) divided by the memory of all tensors; "
    "both include the network's input and output. Every vertex is a tensor, and every edge an "
    "operation that does not run in place. Statistics don't count as tensors, the result of a sum "
    "does, and dropout runs in place. As in torchvision of 2018, VGG and AlexNet have no adaptive "
    "pooling, and DenseNets concatenate step by step. One image of 224 x 224 (Inception v3: 300 x "
    "300). AlexNet, the ResNets and the DenseNets agree. The VGGs, although plain chains, do not; "
    "their notes show the calculation. The paper's four figures don't result from leaving out the "
    "input and output, counting the flattened tensor or the ReLUs of the linear layers, or leaving "
    "out the linear layers either.";

// What Eq. 1 gives, in bytes.
struct Ratio {
  Bytes best;   // The optimum, without the input and the output of the network.
  Bytes inner;  // All tensors but these two.
  Bytes ends;   // These two.

  int64_t steps() const { return RatioSteps(best + ends, inner + ends); }
  int64_t steps_without_ends() const { return RatioSteps(best, inner); }
};

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

Result<SolveOutcome> PlanByFeng(const Problem& problem) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver("feng-acg"));
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(problem, SolveLimits{}));
  return solver->Solve(solver->knob().preset, SolveLimits{});
}

Result<Ratio> RatioOf(const TensorGraph& graph) {
  const Problem problem(graph);
  const TwoTerminalGraph view = MakeTwoTerminal(graph, problem.vertices);
  Ratio ratio;
  for (const TwoTerminalGraph::Vertex& vertex : view.vertices) ratio.inner += vertex.memory;
  const Bytes output = view.vertices[view.target()].memory;
  ratio.inner -= output;
  ratio.ends = graph.constants().inputs + output;
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome, PlanByFeng(problem));
  ratio.best = outcome.paper.peak;
  return ratio;
}

// Writes 4415488 as "4,415,488".
std::string Grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t left = text.size(); left > 3;) {
    left -= 3;
    text.insert(left, ",");
  }
  return text;
}

// Writes the ratio as numbers of elements: "(4,415,488 + 151,528) / (8,964,608 + 151,528)".
std::string Derivation(const Ratio& ratio) {
  constexpr int64_t kElement = 4;
  const auto elements = [](Bytes bytes) { return Grouped(bytes.count() / kElement); };
  return fmt::format(
      "({0} + {2}) / ({1} + {2}) elements: the optimum of Eq. 1 over all tensors, both with the "
      "input and output; 0.{3:04d} without them.",
      elements(ratio.best), elements(ratio.inner), elements(ratio.ends),
      ratio.steps_without_ends());
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
    CKPLAN_ASSIGN_OR_RETURN(const Ratio ratio, RatioOf(AsOf2018(graph, network.has_idle_pooling)));
    figure.ours = ratio.steps();
    figure.paper = network.ratio;
    if (std::string_view(network.name).starts_with("VGG")) {
      figure.note = table.Note(Derivation(ratio));
    } else if (*network.why != '\0') {
      figure.note = table.Note(network.why);
    }
    table.figures.push_back(std::move(figure));
  }
  return table;
}

constexpr const char* kRegularNote =
    "The paper's is the difference of two runs with different batches. Besides tensors, it "
    "includes what grows with the batch of convolution workspaces and of the unused parts of the "
    "allocator's blocks.";

constexpr const char* kRoundNote =
    "For the same network and batch, the paper's section 1 says \"around 5000 MB\" and its Table 1 "
    "says 3,812. It does not say what the first includes; the second excludes parameters, their "
    "gradients and the driver's context.";

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

// Returns r1 for this batch.
Result<Bytes> RegularNeed(const std::string& models, const Network& network, int64_t batch) {
  CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, LoadPaperModel(models, network.model, batch,
                                                                  Autograd::kTorch, network.side));
  return KeepAllPeak(graph) + TotalConstants(graph.constants(), Bytes(0));
}

Result<FigureTable> RegularTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 1, regular training";
  table.intro =
      "As in the paper, r2 - r1: how much more memory twice the batch needs. Ours is the simulated "
      "keep-all peak with `--autograd torch` and the input; parameters and their gradients cancel "
      "out. We read the paper's MB as MiB, which match nearly all of its figures; 10^6 bytes match "
      "few.";
  for (const Network& network : kFengNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(const Bytes once, RegularNeed(models, network, network.batch));
    CKPLAN_ASSIGN_OR_RETURN(const Bytes twice, RegularNeed(models, network, 2 * network.batch));
    Figure figure;
    figure.subject = FengSubject(network);
    figure.quantity = "regular";
    figure.unit = FigureUnit::kMebibytes;
    figure.ours = MebibyteSteps(twice - once);
    figure.paper = network.regular;
    if (figure.NeedsExplanation()) figure.note = table.Note(kRegularNote);
    if (network.name == std::string_view("ResNet101")) AddRoundFigure(figure, &table);
    table.figures.push_back(std::move(figure));
  }
  return table;
}

constexpr const char* kFengTimeNote =
    "Our plans recompute neither kept results nor the last segment; `torch.utils.checkpoint` runs "
    "every whole segment again (the row \"forward twice\").";
constexpr const char* kFengForwardNote =
    "The paper's is measured. In the cost model every operation reaches the device's peak rate of "
    "arithmetic or memory, so forward takes at least half as long as backward. The paper has 53 % "
    "for DenseNet201, but 32 to 36 % for its other DenseNets.";

// Computes by how much longer a step with the plan of feng-acg takes.
Result<FigureTable> FengTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Time added to a step, modelled";
  table.intro =
      "The versions of 2018 and 2019 have no times. The later one (CVPR 2021; see the table in "
      "github.com/lordfjw/OptimalGradCheckpointing) has times of regular and checkpointed training "
      "at the same batches, on an unnamed GPU. Ours are predictions for a GeForce RTX 2080 Ti "
      "(`--cost flops:rtx2080ti-11g`), for the plan of `feng-acg` and for running the whole "
      "forward pass twice.";
  for (const Network& network : kFengNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(const TensorGraph loaded,
                            LoadPaperModel(models, network.model, network.batch, Autograd::kMinimal,
                                           network.side, "flops:rtx2080ti-11g"));
    const TensorGraph graph = AsOf2018(loaded, network.has_idle_pooling);
    CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome, PlanByFeng(Problem(graph)));
    const Schedule schedule = LowerStrategy(graph, outcome.strategy);
    const Cost step = graph.forward_cost() + graph.backward_cost();
    const auto add = [&](const char* how, Cost added, const char* why) {
      Figure figure;
      figure.subject = FengSubject(network);
      figure.quantity = how;
      figure.unit = FigureUnit::kPercent;
      figure.ours = FactorSteps(10 * added, step);
      figure.paper = ReductionSteps(Bytes(network.forward_ms), Bytes(network.regular_ms));
      if (figure.NeedsExplanation()) figure.note = table.Note(why);
      table.figures.push_back(std::move(figure));
    };
    add("forward twice, modelled", graph.forward_cost(), kFengForwardNote);
    add("feng-acg, modelled", Simulator(graph).Run(schedule).value().overhead, kFengTimeNote);
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
      "Memory of Chen's algorithm and of re-forwarding on a device, in MB, which we read as MiB, "
      "and re-forwarding's share of the memory of regular training.";
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
  CKPLAN_ASSIGN_OR_RETURN(FigureTable times, FengTimeTable(models));
  return Reproduction{
      "feng",
      "Feng, Huang: Cutting Down Training Memory by Re-forwarding, 2018",
      {std::move(theoretical), std::move(regular), std::move(times), MeasuredTable()}};
}

}  // namespace ckplan
