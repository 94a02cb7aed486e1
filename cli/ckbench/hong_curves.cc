#include "cli/ckbench/hong_curves.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/ckbench/paper_graph.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/algorithms/hong/step_prediction.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {

namespace {

const std::array kHongNetworks = {
    HongNetwork{"vgg19",
                "VGG-19",
                false,
                {2, 4, 6, 9, 11, 14, 16, 19, 21, 23, 24},
                {3, 6, 24},
                {3, 6, 24},
                {5, 10, 15, 20, 24}},
    HongNetwork{"alexnet",
                "AlexNet",
                true,
                {2, 4, 6, 8, 12, 14, 15},
                {2, 4, 12, 15},
                {2, 4, 12, 15},
                {4, 8, 12, 15}},
};

// The paper's AlexNet has a layer for Flatten, as large as its input, although PyTorch runs no
// operation for Flatten. Its Dropout is not done in place.
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

std::vector<int64_t> Shown(const LayerPositions& positions) {
  std::vector<int64_t> shown;
  for (const size_t position : positions) {
    if (position > 0) shown.push_back(static_cast<int64_t>(position));
  }
  return shown;
}

}  // namespace

std::span<const HongNetwork> HongNetworks() { return kHongNetworks; }

Result<HongLayers> LoadHongLayers(const std::string& models, const HongNetwork& network,
                                  int64_t batch, std::string_view cost) {
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph graph,
                          LoadPaperModel(models, network.model, batch, Autograd::kTorch, 0, cost));
  if (!network.keeps_small_layers) {
    graph = WithoutNodes(graph, [&](const Node& node) {
      return node.op == "Dropout" || IsIdlePooling(graph, node);
    });
  }
  const Simulation keep_all = Simulator(graph).Run(KeepAllInOwnOrder(graph)).value();
  const Bytes keep_all_peak = keep_all.peak + graph.constants().inputs;
  if (network.keeps_small_layers) graph = WithFlatten(graph);
  LayerFold fold = FoldLayers(graph);
  LayerList list = ListLayers(fold.graph, VertexGraph(fold.graph));
  return HongLayers{std::move(graph), std::move(fold), std::move(list), keep_all_peak};
}

LayerPositions WithInput(LayerPositions positions) {
  positions.insert(positions.begin(), 0);
  return positions;
}

Schedule CheckpointedStep(const HongLayers& layers, const LayerPositions& checkpoints) {
  KeptSet kept{IdVector<NodeId, bool>(layers.fold.graph.nodes().size())};
  for (const size_t i : checkpoints) {
    if (i > 0) kept.is_kept[layers.list.nodes[i]] = true;
  }
  return LowerStrategy(layers.graph, Unfold(layers.fold, kept));
}

Figure HongSetFigure(const std::string& name, const std::string& how, const LayerList& list,
                     const LayerPositions& ours, const LayerPositions& paper,
                     CheckpointObjective objective) {
  Figure figure;
  figure.subject = name;
  figure.quantity = how;
  figure.unit = FigureUnit::kCheckpoints;
  figure.our_set = Shown(ours);
  figure.paper_set = Shown(paper);
  figure.match = figure.our_set == figure.paper_set                ? SetMatch::kSame
                 : objective(list, ours) == objective(list, paper) ? SetMatch::kTie
                                                                   : SetMatch::kDiffers;
  return figure;
}

Bytes HongConstants(const TensorGraph& graph) {
  // The momentum is as large as the gradients.
  return graph.constants().parameters + 2 * graph.constants().parameter_gradients;
}

namespace {

const LayerPositions kFigureSet = {3, 11, 24};  // "Our algorithm" in Fig. 5 to 7.

constexpr const char* kSetNote =
    "Section 5.2 says that the algorithm returns {3,11,24}. By Eq. 12 this set needs more than "
    "Algorithm 6's in Table 2, and as much as {3,6,24} there.";

constexpr const char* kPlainNote =
    "The paper does not say which sizes it uses. Eq. 12 has better sets than the paper's if the "
    "size of a layer is that of its pooling's result, of its convolution's result, or of both.";
constexpr const char* kPlainGainNote =
    "The paper's is a measured, rounded number. With 12 layers Eq. 12 would not count the results "
    "of convolutions, so ours uses 15 layers for both sets.";

constexpr const char* kFirstLayerNote =
    "The paper's 103 and 26 MiB do not follow from its network: 128 images of 64 channels take "
    "94.5 MiB at 55 x 55 and 22.8 MiB at 27 x 27, at 4 bytes per element. It does not say what "
    "else it counts.";

Figure MebibyteFigure(const char* how, int64_t steps, std::optional<int64_t> paper = {}) {
  Figure figure;
  figure.subject = "VGG-19, b=128";
  figure.quantity = how;
  figure.unit = FigureUnit::kMebibytes;
  figure.ours = steps;
  figure.paper = paper;
  return figure;
}

// Returns the bytes that still live after the step; workspaces never do.
Bytes LiveAfter(const Timeline& timeline, size_t step) {
  const auto at = static_cast<int32_t>(step);
  Bytes live;
  for (const Buffer& buffer : timeline.buffers) {
    if (buffer.first_step <= at && buffer.last_step > at) live += buffer.bytes;
  }
  return live;
}

// Returns the simulator's memory for each phase, in the order of PredictTrainingPhases: the bytes
// alive at the end of a forward phase, and the maximum of live bytes during a backward phase.
std::vector<Bytes> SimulateTrainingPhases(const HongLayers& layers,
                                          const LayerPositions& checkpoints) {
  const Schedule schedule = CheckpointedStep(layers, checkpoints);
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

// Returns by how much the first curve is above the second one, averaged over phases [first, last].
Bytes MeanGap(const std::vector<Bytes>& above, const std::vector<Bytes>& below, size_t first,
              size_t last) {
  Bytes sum;
  for (size_t phase = first; phase <= last; ++phase) sum += above[phase] - below[phase];
  return Bytes(sum.count() / static_cast<int64_t>(last - first + 1));
}

// The layers of AlexNet that are convolutions with a pooling after them.
const LayerPositions kPooled = {1, 3, 7};

}  // namespace

Result<FigureTable> HongPredictionTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 5, the prediction over the training phase index";
  table.intro =
      "VGG-19, b=128, checkpoints {3,11,24}: the mean difference between the prediction (Eq. 9 and "
      "10) and the memory of each phase, as a share of that memory; both include parameters, "
      "gradients and momentum. The paper compares with what PyTorch reports, we compare with the "
      "simulator: the memory at the end of a forward phase, and the most during a backward phase. "
      "Eq. 12 excludes parameters, gradients and momentum.";
  CKPLAN_ASSIGN_OR_RETURN(HongLayers layers, LoadHongLayers(models, HongNetworks()[0], 128));
  layers.graph = WithoutStatistics(layers.graph);
  const LayerPositions checkpoints = WithInput(kFigureSet);
  const std::vector<Bytes> predicted = PredictTrainingPhases(layers.list, checkpoints);
  const std::vector<Bytes> simulated = SimulateTrainingPhases(layers, checkpoints);
  const Bytes constants = HongConstants(layers.graph);
  int64_t error = 0;  // The sum of relative errors, in 10^-6.
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
        "The model holds a gradient buffer of the size of the segment's largest tensor until the "
        "segment ends; the simulator holds only the gradients that exist.");
  }
  table.figures.push_back(std::move(figure));
  const auto objective = [&](const LayerPositions& set) {
    return MebibyteSteps(DynamicObjective(layers.list, WithInput(set)));
  };
  table.figures.push_back(MebibyteFigure("{3,11,24} by Eq. 12", objective(kFigureSet)));
  table.figures.back().note = table.Note(kSetNote);
  table.figures.push_back(
      MebibyteFigure("Table 2's set by Eq. 12", objective(HongNetworks()[0].dynamic)));
  table.figures.back().note = table.Note(kSetNote);
  return table;
}

Result<FigureTable> HongComparisonTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 7, the set of Fig. 5 beside the ACG solver's";
  table.intro =
      "VGG-19, b=128, {3,11,24} and {3,6,24}: the peaks by Eq. 12, with parameters, gradients and "
      "momentum, and how far one curve of Eq. 9 and 10 is above the other. \"Both algorithms have "
      "the same peak\"; one needs \"around 2 GiB more\" in more than the first half of the first "
      "segment, the other in the rest.";
  CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers, LoadHongLayers(models, HongNetworks()[0], 128));
  const LayerPositions ours = WithInput(kFigureSet);
  const LayerPositions acg = WithInput(HongNetworks()[0].acg);
  const Bytes constants = HongConstants(layers.graph);
  const Bytes our_peak = DynamicObjective(layers.list, ours) + constants;
  const Bytes acg_peak = DynamicObjective(layers.list, acg) + constants;
  table.figures.push_back(MebibyteFigure("peak of {3,11,24}", MebibyteSteps(our_peak)));
  table.figures.push_back(MebibyteFigure("peak of {3,6,24}", MebibyteSteps(acg_peak)));
  Figure equal = MebibyteFigure("peak of {3,11,24} / of {3,6,24}", 0, 100);
  equal.unit = FigureUnit::kFactor;
  equal.ours = FactorSteps(our_peak, acg_peak);
  table.figures.push_back(std::move(equal));
  const std::vector<Bytes> our_curve = PredictTrainingPhases(layers.list, ours);
  const std::vector<Bytes> acg_curve = PredictTrainingPhases(layers.list, acg);
  constexpr int64_t kTwoGib = 2048;
  // Phase 49 - i is layer i's backward: 26 to 37 are layers 23 to 12, 38 to 42 layers 11 to 7.
  for (Figure gap :
       {MebibyteFigure("{3,6,24} above {3,11,24}, phases 26 to 37",
                       MebibyteSteps(MeanGap(acg_curve, our_curve, 26, 37)), kTwoGib),
        MebibyteFigure("{3,11,24} above {3,6,24}, phases 38 to 42",
                       MebibyteSteps(MeanGap(our_curve, acg_curve, 38, 42)), kTwoGib)}) {
    if (gap.NeedsExplanation()) gap.note = table.Note("The paper only says \"around 2 GiB\".");
    table.figures.push_back(std::move(gap));
  }
  return table;
}

Result<FigureTable> HongPlainTable(const std::string& models) {
  FigureTable table;
  table.title = "Figure 8, AlexNet with poolings merged into convolutions";
  table.intro =
      "b=128, 12 layers: a convolution before a pooling belongs to the pooling's layer, so its "
      "result cannot be a checkpoint. Peaks are those of Eq. 12, with parameters, gradients and "
      "momentum. \"Reducing the peak memory usage by 100 MiB compared to the plain AlexNet model\" "
      "compares Fig. 9's set, that of Table 2, with this one.";
  const HongNetwork& alexnet = HongNetworks()[1];
  CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers, LoadHongLayers(models, alexnet, 128));
  const LayerList plain = WithinNextLayer(layers.list, kPooled);
  const LayerPositions paper = WithInput({3, 4, 5, 9, 11, 12});
  const LayerPositions ours = SelectDynamicLinear(plain).positions;
  Figure set = HongSetFigure("AlexNet, 12 layers", "Algorithm 6 (hong-linear)", plain, ours, paper,
                             DynamicObjective);
  if (set.NeedsExplanation()) set.note = table.Note(kPlainNote);
  table.figures.push_back(std::move(set));
  const Bytes constants = HongConstants(layers.graph);
  const auto add = [&](const char* subject, const char* how, Bytes bytes,
                       std::optional<int64_t> published = {}) {
    Figure figure = MebibyteFigure(how, MebibyteSteps(bytes), published);
    figure.subject = subject;
    if (figure.NeedsExplanation()) figure.note = table.Note(kPlainGainNote);
    table.figures.push_back(std::move(figure));
  };
  add("AlexNet, 12 layers", "our set by Eq. 12", DynamicObjective(plain, ours) + constants);
  add("AlexNet, 12 layers", "the paper's set by Eq. 12",
      DynamicObjective(plain, paper) + constants);
  // Fig. 9 numbers these checkpoints so.
  const Bytes paper_peak = DynamicObjective(layers.list, WithInput({5, 6, 8, 12, 14, 15}));
  const Bytes extended_peak = DynamicObjective(layers.list, WithInput(alexnet.dynamic));
  add("AlexNet, 15 layers", "the same set by Eq. 12", paper_peak + constants);
  add("AlexNet, 15 layers", "Table 2's set by Eq. 12", extended_peak + constants);
  add("AlexNet, 15 layers", "saved by separate pooling layers", paper_peak - extended_peak, 100);
  const auto add_result = [&](const char* how, size_t layer, int64_t published) {
    add("AlexNet, 15 layers", how, layers.list.sizes[layer], published);
    table.figures.back().note = table.Note(kFirstLayerNote);
  };
  add_result("result of the first convolution", 1, 103);
  add_result("result of the first pooling", 2, 26);
  return table;
}

LayerList WithinNextLayer(const LayerList& list, const LayerPositions& positions) {
  LayerList folded;
  for (size_t i = 0; i < list.sizes.size(); ++i) {
    if (std::binary_search(positions.begin(), positions.end(), i)) continue;
    if (std::binary_search(list.candidates.begin(), list.candidates.end(), i)) {
      folded.candidates.push_back(folded.sizes.size());
    }
    folded.sizes.push_back(list.sizes[i]);
    folded.nodes.push_back(list.nodes[i]);
  }
  return folded;
}

}  // namespace ckplan
