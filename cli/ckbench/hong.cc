// Hong et al. 2024: the checkpoint sets and peaks of Table 2, and the prediction of Fig. 5.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "cli/ckbench/paper_graph.h"
#include "cli/ckbench/reproduction.h"
#include "lib/algorithms/hong/checkpoint_selection.h"
#include "lib/algorithms/hong/training_phases.h"
#include "lib/graph/layer_fold.h"
#include "lib/plan/solver.h"
#include "lib/planner/registry.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/simulate.h"
#include "lib/schedule/timeline.h"
#include "lib/schedule/unfold.h"

namespace ckplan {
namespace {

using Positions = std::vector<size_t>;

constexpr const char* kPaper =
    "Hong, Tsai, Wang, Liu, Wu: GPU Memory Usage Optimization for Backward Propagation in Deep "
    "Network Training, 2024";

// A network with the columns of Table 2. Sets are without the input, which is always in memory.
struct Network {
  std::string model;
  std::string name;
  bool keeps_small_layers;  // AdaptiveAvgPool, Flatten and Dropout are layers.
  Positions dynamic;        // Algorithm 6
  Positions selection;      // Algorithm 3
  Positions acg;            // Feng & Huang's solver
  Positions sqrt;           // O(sqrt(n))
};

const std::array kNetworks = {
    Network{"vgg19",
            "VGG-19",
            false,
            {2, 4, 6, 9, 11, 14, 16, 19, 21, 23, 24},
            {3, 6, 24},
            {3, 6, 24},
            {5, 10, 15, 20, 24}},
    Network{"alexnet",
            "AlexNet",
            true,
            {2, 4, 6, 8, 12, 14, 15},
            {2, 4, 12, 15},
            {2, 4, 12, 15},
            {4, 8, 12, 15}},
};

// A row of Table 2, in MiB; 0 where the device's memory ran out.
struct PeakRow {
  size_t network;
  int64_t batch;
  int64_t dynamic, selection, acg, sqrt, keep_all;
};

constexpr std::array kPeaks = {
    PeakRow{0, 128, 6444, 6835, 6836, 8404, 11262},
    PeakRow{0, 256, 11220, 12004, 12004, 15139, 20850},
    PeakRow{0, 320, 13609, 14592, 14592, 18511, 0},
    PeakRow{0, 384, 15997, 17177, 17177, 0, 0},
    PeakRow{0, 400, 16594, 17824, 17824, 0, 0},
    PeakRow{1, 128, 1002, 1003, 1003, 1106, 1174},
    PeakRow{1, 4096, 9866, 9866, 9866, 13182, 15275},
};

// A network as the paper has it: the nodes, the layers, and the list d_0, ..., d_N.
struct Layers {
  TensorGraph graph;
  LayerFold fold;
  LayerList list;
  Bytes keep_all;  // Simulated peak, the input included.
};

Schedule KeepAll(const TensorGraph& graph) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  return KeepAllSchedule(order);
}

// The paper's AlexNet has a layer for Flatten, as large as what it reads, although PyTorch runs no
// operation for it; and its Dropout is not done in place.
TensorGraph WithFlatten(const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Node& node : parts.nodes) {
    if (node.op == "Dropout") node.in_place.clear();
  }
  int64_t file_id = 0;
  for (const Tensor& tensor : parts.tensors) file_id = std::max(file_id, tensor.file_id + 1);
  for (const NodeId id : graph.nodes().ids()) {
    if (graph.node(id).op != "AveragePool") continue;
    const TensorId pooled = graph.node(id).outputs[0];
    Node flatten;
    flatten.file_id = static_cast<int64_t>(parts.nodes.size());
    for (const Node& node : parts.nodes) {
      flatten.file_id = std::max(flatten.file_id, node.file_id + 1);
    }
    flatten.name = flatten.op = "Flatten";
    flatten.inputs = {pooled};
    Tensor flat = graph.tensor(pooled);
    flat.file_id = file_id;
    flat.name = "flat";
    flatten.outputs = {parts.tensors.push_back(std::move(flat))};
    for (const NodeId reader : graph.tensor(pooled).consumers) {
      Node& node = parts.nodes[reader];
      std::replace(node.inputs.begin(), node.inputs.end(), pooled, flatten.outputs[0]);
      std::replace(node.backward_reads.begin(), node.backward_reads.end(), pooled,
                   flatten.outputs[0]);
      for (InPlacePair& pair : node.in_place) {
        if (pair.input == pooled) pair.input = flatten.outputs[0];
      }
    }
    parts.nodes.push_back(std::move(flatten));
    break;
  }
  return TensorGraph::Create(std::move(parts)).value();
}

Result<Layers> LayersOf(const std::string& models, const Network& network, int64_t batch) {
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph,
                          LoadPaperModel(models, network.model, batch, Autograd::kTorch));
  if (!network.keeps_small_layers) {
    graph = WithoutNodes(graph, [&](const Node& node) {
      return node.op == "Dropout" || IsIdlePooling(graph, node);
    });
  }
  const Simulation keep_all = Simulator(graph).Run(KeepAll(graph)).value();
  const Bytes keep_all_peak = keep_all.peak + graph.constants().inputs;
  if (network.keeps_small_layers) graph = WithFlatten(graph);
  LayerFold fold = FoldLayers(graph);
  LayerList list = ListLayers(fold.graph, VertexGraph(fold.graph));
  return Layers{std::move(graph), std::move(fold), std::move(list), keep_all_peak};
}

std::vector<int64_t> Shown(const Positions& positions) {
  std::vector<int64_t> shown;
  for (const size_t position : positions) {
    if (position > 0) shown.push_back(static_cast<int64_t>(position));
  }
  return shown;
}

Positions WithInput(Positions positions) {
  positions.insert(positions.begin(), 0);
  return positions;
}

// The plan that an algorithm makes for the folded chain without a budget: what it keeps, by
// position in the list.
Result<Positions> SolveBy(std::string_view algorithm, const Layers& layers) {
  const Problem problem(layers.fold.graph);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const auto solver, info->prepare(problem, SolveLimits{}));
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome,
                          solver->Solve(solver->knob().preset, SolveLimits{}));
  const IdVector<NodeId, int32_t> segment_of = SegmentsOf(layers.fold.graph, outcome.strategy);
  Positions positions = {0};
  const size_t last = layers.list.sizes.size() - 1;
  for (size_t i = 1; i < last; ++i) {
    if (segment_of[layers.list.nodes[i]] != segment_of[layers.list.nodes[i + 1]]) {
      positions.push_back(i);
    }
  }
  positions.push_back(last);
  return positions;
}

struct Choices {
  Positions dynamic, selection, acg, sqrt;
};

Result<Choices> Choose(const Layers& layers) {
  Choices choices;
  choices.dynamic = SelectDynamicLinear(layers.list).positions;
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints selected, SelectStatic(layers.list, {}));
  choices.selection = selected.positions;
  CKPLAN_ASSIGN_OR_RETURN(choices.acg, SolveBy("feng-acg", layers));
  CKPLAN_ASSIGN_OR_RETURN(choices.sqrt, SolveBy("chen-count", layers));
  return choices;
}

using Objective6 = Bytes (*)(const LayerList& list, const Positions& checkpoints);

Figure SetFigure(const std::string& name, const std::string& how, const Layers& layers,
                 const Positions& ours, const Positions& paper, Objective6 objective) {
  Figure figure;
  figure.subject = name;
  figure.quantity = how;
  figure.unit = FigureUnit::kCheckpoints;
  figure.our_set = Shown(ours);
  figure.paper_set = Shown(paper);
  const bool is_tie = objective(layers.list, ours) == objective(layers.list, WithInput(paper));
  figure.match = figure.our_set == figure.paper_set ? SetMatch::kSame
                 : is_tie                           ? SetMatch::kTie
                                                    : SetMatch::kDiffers;
  return figure;
}

// For a set that a rule gives: no objective was minimised.
Bytes NoObjective(const LayerList&, const Positions& checkpoints) {
  return Bytes(static_cast<int64_t>(checkpoints.size()));
}

Result<FigureTable> SetTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 2, checkpoint sets";
  table.intro =
      "Layers as in Fig. 3 and 4, by number: a convolution or a linear layer with its ReLU is one, "
      "a pooling is its own; "
      "AdaptiveAvgPool, Flatten and Dropout are left out for VGG-19 and kept for AlexNet. The sets "
      "do not depend on the batch. "
      "A tie has the same objective as the paper's set: Eq. 12 for Algorithm 6, Eq. 6 for "
      "Algorithm 3 and the ACG solver.";
  for (const Network& network : kNetworks) {
    CKPLAN_ASSIGN_OR_RETURN(const Layers layers, LayersOf(models, network, 128));
    CKPLAN_ASSIGN_OR_RETURN(const Choices ours, Choose(layers));
    const std::string& name = network.name;
    table.figures.push_back(SetFigure(name, "Algorithm 6 (hong-linear)", layers, ours.dynamic,
                                      network.dynamic, DynamicObjective));
    table.figures.push_back(SetFigure(name, "Algorithm 3 (hong-selection)", layers, ours.selection,
                                      network.selection, StaticObjective));
    table.figures.push_back(
        SetFigure(name, "ACG solver (feng-acg)", layers, ours.acg, network.acg, StaticObjective));
    table.figures.push_back(SetFigure(name, "every ceil(sqrt(N))-th layer (chen-count)", layers,
                                      ours.sqrt, network.sqrt, NoObjective));
  }
  return table;
}

// What a training step holds beside activations: parameters, gradients, momentum.
Bytes Constants(const TensorGraph& graph) {
  return graph.constants().parameters + graph.constants().parameter_gradients +
         OptimizerState(Optimizer::kMomentum, graph.constants().parameter_gradients);
}

void AddPeak(const std::string& subject, const char* how, Bytes ours, int64_t paper,
             const char* note, FigureTable* table) {
  if (paper == 0) return;
  Figure figure;
  figure.subject = subject;
  figure.quantity = how;
  figure.unit = FigureUnit::kMebibytes;
  figure.ours = MebibyteSteps(ours);
  figure.paper = paper;
  if (figure.NeedsExplanation()) figure.note = table->Note(note);
  table->figures.push_back(std::move(figure));
}

constexpr const char* kIndicesNote =
    "The list holds the layers' results alone. PyTorch also saves the indices of a pooling, 8 "
    "bytes an element; here the first "
    "pooling lies inside the segment that decides the peak.";
constexpr const char* kPhaseNote =
    "`--autograd torch` has dropout masks of 4 bytes an element, as PyTorch on a CPU; on a GPU "
    "they take one byte, which is 156 MiB "
    "less here. And the paper looks at memory at the end of every phase, the simulator at every "
    "moment.";

Result<FigureTable> PeakTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 2, peak memory";
  table.intro =
      "The prediction of Eq. 12 for the paper's checkpoints, with parameters, their gradients and "
      "momentum; for PyTorch without "
      "checkpoints the simulated peak under `--autograd torch`. The paper's are measured. Where "
      "its device ran out of memory there "
      "is no row.";
  for (const PeakRow& row : kPeaks) {
    const Network& network = kNetworks[row.network];
    CKPLAN_ASSIGN_OR_RETURN(const Layers layers, LayersOf(models, network, row.batch));
    const Bytes constants = Constants(layers.graph);
    const std::string subject = fmt::format("{}, b={}", network.name, row.batch);
    const auto predict = [&](const Positions& checkpoints) {
      return DynamicObjective(layers.list, WithInput(checkpoints)) + constants;
    };
    AddPeak(subject, "Algorithm 6", predict(network.dynamic), row.dynamic, kIndicesNote, &table);
    AddPeak(subject, "Algorithm 3", predict(network.selection), row.selection, kIndicesNote,
            &table);
    AddPeak(subject, "ACG solver", predict(network.acg), row.acg, kIndicesNote, &table);
    AddPeak(subject, "O(sqrt(n))", predict(network.sqrt), row.sqrt, kIndicesNote, &table);
    AddPeak(subject, "PyTorch", layers.keep_all + constants, row.keep_all, kPhaseNote, &table);
  }
  return table;
}

// What still lives when the step is over; workspaces never do.
Bytes LiveAfter(const Timeline& timeline, size_t step) {
  const auto at = static_cast<int32_t>(step);
  Bytes live;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.first_step <= at && buffer.last_step > at) live += buffer.bytes;
  }
  return live;
}

// What the simulator computes for each phase, in the order of PredictTrainingPhases: for forward
// what lives at its end, for backward the maximum that lives during it.
std::vector<Bytes> SimulateTrainingPhases(const Layers& layers, const Positions& checkpoints) {
  // PyTorch recomputes the last segment, too, so only checkpoints are kept.
  KeptSet kept{IdVector<NodeId, bool>(layers.fold.graph.nodes().size())};
  for (const size_t i : checkpoints) {
    if (i > 0) kept.is_kept[layers.list.nodes[i]] = true;
  }
  const Schedule schedule = LowerStrategy(layers.graph, Unfold(layers.fold, kept));
  const Timeline timeline = BuildTimeline(layers.graph, schedule);
  const size_t last = layers.list.sizes.size() - 1;
  const Bytes input = layers.list.sizes[0];
  IdVector<NodeId, size_t> position_of(layers.fold.graph.nodes().size());
  for (size_t i = 1; i <= last; ++i) position_of[layers.list.nodes[i]] = i;
  std::vector<Bytes> phases(2 * last + 2, input);
  for (size_t step = 0; step < schedule.steps.size(); ++step) {
    const Step& what = schedule.steps[step];
    if (what.kind == StepKind::kLoss ||
        (what.kind == StepKind::kForward && step > timeline.loss_step)) {
      continue;
    }
    const size_t i = position_of[layers.fold.layer_of[what.node()]];
    const size_t phase = what.kind == StepKind::kForward ? i : 2 * last + 1 - i;
    if (what.kind == StepKind::kForward) {
      phases[phase] = LiveAfter(timeline, step) + input;
    } else {
      phases[phase] = std::max(phases[phase], timeline.step_bytes[step] + input);
    }
  }
  return phases;
}

Result<FigureTable> PredictionTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 5, the prediction over the training phase index";
  table.intro =
      "VGG-19, b=128, checkpoints {3,11,24}: the mean difference between the prediction (Eq. 9 and "
      "10) and the memory of every phase, "
      "as a share of the latter, with parameters, gradients and momentum in both. The paper's is "
      "against what PyTorch reports, "
      "ours against the simulator: in forward what lives at the end of a phase, in backward the "
      "most that lives during it.";
  CKPLAN_ASSIGN_OR_RETURN(Layers layers, LayersOf(models, kNetworks[0], 128));
  layers.graph = WithoutStatistics(layers.graph);
  const Positions checkpoints = {0, 3, 11, 24};
  const std::vector<Bytes> predicted = PredictTrainingPhases(layers.list, checkpoints);
  const std::vector<Bytes> simulated = SimulateTrainingPhases(layers, checkpoints);
  const Bytes constants = Constants(layers.graph);
  int64_t error = 0;  // In 10^-6, summed.
  for (size_t i = 0; i < predicted.size(); ++i) {
    const int64_t away = std::abs((predicted[i] - simulated[i]).count());
    error += static_cast<int64_t>(static_cast<__int128>(away) * 1'000'000 /
                                  (simulated[i] + constants).count());
  }
  Figure figure;
  figure.subject = "VGG-19, b=128";
  figure.quantity = "mean error of the prediction";
  figure.unit = FigureUnit::kPercent;
  figure.ours = (error / static_cast<int64_t>(predicted.size()) + 500) / 1000;
  figure.paper = 28;
  if (figure.NeedsExplanation()) {
    figure.note = table.Note(
        "The model holds a gradient buffer as large as the segment's largest tensor to the end of "
        "the segment; the simulator "
        "holds the gradient that is there.");
  }
  table.figures.push_back(std::move(figure));
  return table;
}

}  // namespace

Result<Reproduction> ReproduceHong(const std::string& models) {
  CKPLAN_ASSIGN_OR_RETURN(FigureTable sets, SetTable(models));
  CKPLAN_ASSIGN_OR_RETURN(FigureTable peaks, PeakTable(models));
  CKPLAN_ASSIGN_OR_RETURN(FigureTable prediction, PredictionTable(models));
  return Reproduction{"hong", kPaper, {std::move(sets), std::move(peaks), std::move(prediction)}};
}

}  // namespace ckplan
