// Hong et al. 2024: the checkpoint sets and peaks of Table 2. hong_curves.cc has the paper's
// figures, and hong_times.cc has Table 3.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cli/ckbench/commands.h"
#include "cli/ckbench/hong_curves.h"
#include "cli/ckbench/reproduction.h"
#include "lib/base/result.h"
#include "lib/planning/algorithms/hong/checkpoint_selection.h"
#include "lib/planning/plan/solver.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

// ---- Table 3, the time of a training step ----

constexpr const char* kRtx3090Cost = "flops:rtx3090-24g";

// A row of Table 3, in milliseconds; kRanOut marks cells where the device ran out of memory.
struct TimeRow {
  size_t network;
  int64_t batch;
  int64_t dynamic, selection, acg, sqrt, keep_all;
};

constexpr std::array kTimes = {
    TimeRow{0, 128, 779, 779, 779, 780, 585},
    TimeRow{0, 256, 1541, 1540, 1540, 1541, 1158},
    TimeRow{0, 320, 1921, 1920, 1920, 1922, kRanOut},
    TimeRow{0, 384, 2292, 2289, 2289, kRanOut, kRanOut},
    TimeRow{0, 400, 2849, 2335, 2335, kRanOut, kRanOut},
    TimeRow{1, 128, 46, 46, 46, 46, 38},
    TimeRow{1, 4096, 1206, 1206, 1206, 1216, 1058},
};

constexpr const char* kPeakRateNote =
    "The paper's is measured. In the cost model every operation reaches the device's peak rate of "
    "arithmetic or memory, unlike on a real device.";
constexpr const char* kSegmentNote =
    "`torch.utils.checkpoint` runs each whole segment again, including its checkpoint, and so the "
    "whole forward pass (the row below). Our plans don't recompute kept results.";
constexpr const char* kAlexNetNote =
    "The added time is about that of the paper: 4 to 6 ms at b=128 (paper: 8), and 133 to 194 ms "
    "at b=4096 (paper: 148). It is a smaller share in the paper, whose step takes twice as long as "
    "at peak rates.";
constexpr const char* kHongCommandNote =
    "Empty: only a GPU can fill it in. For each algorithm `ckplan testdata/models/vgg19.onnx -D "
    "N=128 --granularity layer --algo hong-linear --align 256 -o plan.json`, then `ckexec validate "
    "testdata/models/vgg19.onnx --plan plan.json --backend cuda`, which also times a step that "
    "keeps everything.";

std::string HongSubject(const TimeRow& row) {
  return fmt::format("{}, b={}", HongNetworks()[row.network].name, row.batch);
}

// Returns by how much `time` is above `base`, in 0.1 percent.
int64_t AboveSteps(int64_t time, int64_t base) { return ReductionSteps(Bytes(time), Bytes(base)); }

Result<Done> AddModelled(const std::string& models, const TimeRow& row, FigureTable* table) {
  const HongNetwork& network = HongNetworks()[row.network];
  CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers,
                          LoadHongLayers(models, network, row.batch, kRtx3090Cost));
  const char* const why = row.network == 0 ? kSegmentNote : kAlexNetNote;
  const Cost forward = layers.graph.forward_cost();
  const Cost step = forward + layers.graph.backward_cost();
  const auto add = [&](const char* how, FigureUnit unit, int64_t ours, int64_t paper,
                       const char* note) {
    Figure figure;
    figure.subject = HongSubject(row);
    figure.quantity = how;
    figure.unit = unit;
    figure.ours = ours;
    figure.paper = paper;
    if (figure.NeedsExplanation()) figure.note = table->Note(note);
    table->figures.push_back(std::move(figure));
  };
  add("PyTorch", FigureUnit::kMilliseconds, MillisecondSteps(step), row.keep_all, kPeakRateNote);
  const auto add_above = [&](const char* how, Cost overhead, int64_t paper, const char* note) {
    add(how, FigureUnit::kPercent, AboveSteps((step + overhead).count(), step.count()),
        AboveSteps(paper, row.keep_all), note);
  };
  const auto overhead_of = [&](const LayerPositions& set) {
    const Schedule schedule = CheckpointedStep(layers, WithInput(set));
    return Simulator(layers.graph).Run(schedule).value().overhead;
  };
  add_above("Algorithm 6, above PyTorch", overhead_of(network.dynamic), row.dynamic, why);
  add_above("Algorithm 3, above PyTorch", overhead_of(network.selection), row.selection, why);
  add_above("ACG solver, above PyTorch", overhead_of(network.acg), row.acg, why);
  add_above("O(sqrt(n)), above PyTorch", overhead_of(network.sqrt), row.sqrt, why);
  add_above("forward twice, above PyTorch", forward, row.selection, why);
  return Done{};
}

constexpr const char* kUnexplainedNote =
    "At b=400 Algorithm 6 takes 22 % longer than Algorithm 3, which the paper does not explain: "
    "\"we will investigate its reason in the future\".";
constexpr const char* kGrowthNote =
    "In the cost model, the time of a step is proportional to the batch: it grows by 4.2 % from "
    "b=384 to b=400. The paper measured 2.0 %.";

// Batches too large for PyTorch: how much longer a step takes than at b=256.
Result<Done> AddGrowth(const std::string& models, FigureTable* table) {
  const auto is_base = [](const TimeRow& row) { return row.network == 0 && row.batch == 256; };
  const TimeRow& base = *std::find_if(kTimes.begin(), kTimes.end(), is_base);
  const HongNetwork& network = HongNetworks()[0];
  const auto time_of = [](const HongLayers& layers, const LayerPositions& set) {
    const Schedule schedule = CheckpointedStep(layers, WithInput(set));
    return layers.graph.forward_cost() + layers.graph.backward_cost() +
           Simulator(layers.graph).Run(schedule).value().overhead;
  };
  CKPLAN_ASSIGN_OR_RETURN(const HongLayers at_base,
                          LoadHongLayers(models, network, base.batch, kRtx3090Cost));
  for (const TimeRow& row : kTimes) {
    if (row.keep_all != kRanOut) continue;
    CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers,
                            LoadHongLayers(models, network, row.batch, kRtx3090Cost));
    const auto add = [&](const char* how, const LayerPositions& set, int64_t paper,
                         int64_t paper_base) {
      if (paper == kRanOut) return;
      Figure figure;
      figure.subject = HongSubject(row);
      figure.quantity = fmt::format("{}, above b=256", how);
      figure.unit = FigureUnit::kPercent;
      figure.ours = AboveSteps(time_of(layers, set).count(), time_of(at_base, set).count());
      figure.paper = AboveSteps(paper, paper_base);
      const bool is_dynamic = &set == &network.dynamic;
      if (figure.NeedsExplanation()) {
        figure.note = table->Note(is_dynamic ? kUnexplainedNote : kGrowthNote);
      }
      table->figures.push_back(std::move(figure));
    };
    add("Algorithm 6", network.dynamic, row.dynamic, base.dynamic);
    add("Algorithm 3", network.selection, row.selection, base.selection);
    add("ACG solver", network.acg, row.acg, base.acg);
    add("O(sqrt(n))", network.sqrt, row.sqrt, base.sqrt);
  }
  return Done{};
}

// Computes the table by the cost model of the paper's device.
Result<FigureTable> HongModelledTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 3, time of a step by the cost model";
  table.intro =
      "Forward, backward and recomputation with the paper's checkpoints, by the cost model of its "
      "device (`--cost flops:rtx3090-24g`): the time of PyTorch without checkpoints, and how much "
      "more the others take. At batches where PyTorch ran out of memory, the rows show how much "
      "longer each step takes than its own at b=256.";
  for (const TimeRow& row : kTimes) {
    if (row.keep_all == kRanOut) continue;
    CKPLAN_RETURN_IF_ERROR(AddModelled(models, row, &table));
  }
  CKPLAN_RETURN_IF_ERROR(AddGrowth(models, &table));
  return table;
}

// Returns the rows that only a GPU can fill in.
FigureTable HongMeasuredTimeTable() {
  FigureTable table;
  table.title = "Table 3, time of a step, measured";
  table.intro =
      "The paper's times are averages over one epoch of ImageNet on a GeForce RTX 3090. Where that "
      "card ran out of memory (\"OOM\"), the table shows its 24 GiB instead of a time.";
  for (const TimeRow& row : kTimes) {
    const auto add = [&](const char* how, int64_t paper) {
      Figure figure;
      figure.subject = HongSubject(row);
      figure.quantity = how;
      figure.unit = FigureUnit::kMilliseconds;
      figure.paper = paper;
      if (paper == kRanOut) {
        figure.unit = FigureUnit::kMebibytes;
        figure.paper = kRtx3090Memory;
        figure.paper_ran_out = true;
      }
      figure.note = table.Note(kHongCommandNote);
      table.figures.push_back(std::move(figure));
    };
    add("Algorithm 6", row.dynamic);
    add("Algorithm 3", row.selection);
    add("ACG solver", row.acg);
    add("O(sqrt(n))", row.sqrt);
    add("PyTorch", row.keep_all);
  }
  return table;
}

// ---- The other tables ----

constexpr const char* kHongPaper =
    "Hong, Tsai, Wang, Liu, Wu: GPU Memory Usage Optimization for Backward Propagation in Deep "
    "Network Training, 2024";

// A row of Table 2, in MiB.
struct PeakRow {
  size_t network;
  int64_t batch;
  int64_t dynamic, selection, acg, sqrt, keep_all;
};

constexpr std::array kPeaks = {
    PeakRow{0, 128, 6444, 6835, 6836, 8404, 11262},
    PeakRow{0, 256, 11220, 12004, 12004, 15139, 20850},
    PeakRow{0, 320, 13609, 14592, 14592, 18511, kRanOut},
    PeakRow{0, 384, 15997, 17177, 17177, kRanOut, kRanOut},
    PeakRow{0, 400, 16594, 17824, 17824, kRanOut, kRanOut},
    PeakRow{1, 128, 1002, 1003, 1003, 1106, 1174},
    PeakRow{1, 4096, 9866, 9866, 9866, 13182, 15275},
};

// Returns the plan that an algorithm makes for the folded chain without a budget, as the positions
// in the list that it keeps.
Result<LayerPositions> SolveBy(std::string_view algorithm, const HongLayers& layers) {
  const Problem problem(layers.fold.graph);
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* const info, FindSolver(algorithm));
  CKPLAN_ASSIGN_OR_RETURN(const auto solver, info->prepare(problem, SolveLimits{}));
  CKPLAN_ASSIGN_OR_RETURN(const SolveOutcome outcome,
                          solver->Solve(solver->knob().preset, SolveLimits{}));
  const IdVector<NodeId, int32_t> segment_of = SegmentsOf(layers.fold.graph, outcome.strategy);
  LayerPositions positions = {0};
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
  LayerPositions dynamic, selection, acg, sqrt;
};

Result<Choices> Choose(const HongLayers& layers) {
  Choices choices;
  choices.dynamic = SelectDynamicLinear(layers.list).positions;
  CKPLAN_ASSIGN_OR_RETURN(const Checkpoints selected, SelectStatic(layers.list, {}));
  choices.selection = selected.positions;
  CKPLAN_ASSIGN_OR_RETURN(choices.acg, SolveBy("feng-acg", layers));
  CKPLAN_ASSIGN_OR_RETURN(choices.sqrt, SolveBy("chen-count", layers));
  return choices;
}

// For sets chosen by a rule, which minimises nothing: only sets of equal size count as ties.
Bytes NoObjective(const LayerList&, const LayerPositions& checkpoints) {
  return Bytes(static_cast<int64_t>(checkpoints.size()));
}

Result<FigureTable> SetTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 2, checkpoint sets";
  table.intro =
      "Layers are numbered as in Fig. 3 and 4: a convolution or linear layer and its ReLU form one "
      "layer, a pooling another. VGG-19 is without AdaptiveAvgPool, Flatten and Dropout; AlexNet "
      "has them. The sets do not depend on the batch. A tie has the same objective as the paper's "
      "set: Eq. 12 for Algorithm 6, Eq. 6 for Algorithm 3 and the ACG solver.";
  for (const HongNetwork& network : HongNetworks()) {
    CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers, LoadHongLayers(models, network, 128));
    CKPLAN_ASSIGN_OR_RETURN(const Choices ours, Choose(layers));
    const std::string& name = network.name;
    table.figures.push_back(HongSetFigure(name, "Algorithm 6 (hong-linear)", layers.list,
                                          ours.dynamic, WithInput(network.dynamic),
                                          DynamicObjective));
    table.figures.push_back(HongSetFigure(name, "Algorithm 3 (hong-selection)", layers.list,
                                          ours.selection, WithInput(network.selection),
                                          StaticObjective));
    table.figures.push_back(HongSetFigure(name, "ACG solver (feng-acg)", layers.list, ours.acg,
                                          WithInput(network.acg), StaticObjective));
    table.figures.push_back(HongSetFigure(name, "every ceil(sqrt(N))-th layer (chen-count)",
                                          layers.list, ours.sqrt, WithInput(network.sqrt),
                                          NoObjective));
  }
  return table;
}

constexpr const char* kRtx3090Note =
    "Eq. 12 counts only tensors. The device also holds the driver's context, convolution "
    "workspaces and the unused parts of the allocator's blocks: 18,511 MiB of tensors (b=320) "
    "still fit, these did not.";

void AddPeak(const std::string& subject, const char* how, Bytes ours, int64_t paper,
             const char* note, FigureTable* table) {
  Figure figure;
  figure.subject = subject;
  figure.quantity = how;
  figure.unit = FigureUnit::kMebibytes;
  figure.ours = MebibyteSteps(ours);
  figure.paper_ran_out = paper == kRanOut;
  figure.paper = figure.paper_ran_out ? kRtx3090Memory : paper;
  if (figure.NeedsExplanation()) {
    figure.note = table->Note(figure.paper_ran_out ? kRtx3090Note : note);
  }
  table->figures.push_back(std::move(figure));
}

constexpr const char* kIndicesNote =
    "The list contains only the layers' results. PyTorch also saves the indices of poolings, 8 "
    "bytes per element, and the first pooling is in the segment with the peak.";
constexpr const char* kPhaseNote =
    "Dropout masks take 4 bytes per element with `--autograd torch`, as in PyTorch on a CPU. On a "
    "GPU they take one byte, which would save 156 MiB here. And the paper reads memory at the end "
    "of each phase, the simulator at every moment.";

constexpr const char* kGainNote =
    "The text rounds to \"2 GiB\"; the paper's own table gives 1,960 MiB, as ours does.";

// A gain that section 5.5 states: MiB, and steps of kReduction.
struct PublishedGain {
  int64_t mebibytes, reduction;
};

// Adds by how much the peak of Algorithm 6 is below another column's.
void AddGain(const std::string& subject, const char* other, Bytes peak, Bytes least,
             const PublishedGain& paper, FigureTable* table) {
  Figure gain;
  gain.subject = subject;
  gain.quantity = fmt::format("gain of Algorithm 6 over {}", other);
  gain.unit = FigureUnit::kMebibytes;
  gain.ours = MebibyteSteps(peak - least);
  gain.paper = paper.mebibytes;
  if (gain.NeedsExplanation()) gain.note = table->Note(kGainNote);
  Figure change = gain;
  change.quantity = fmt::format("Algorithm 6 against {}", other);
  change.unit = FigureUnit::kReduction;
  change.ours = ReductionSteps(least, peak);
  change.paper = paper.reduction;
  change.note = 0;
  table->figures.push_back(std::move(gain));
  table->figures.push_back(std::move(change));
}

Result<FigureTable> PeakTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 2, peak memory";
  table.intro =
      "The prediction of Eq. 12 for the paper's checkpoints, including parameters, their gradients "
      "and momentum; for PyTorch without checkpoints, the simulated peak with `--autograd torch`. "
      "The paper's are measured. Where its device ran out of memory (\"OOM\"), its figure is the "
      "device's 24 GiB.";
  for (const PeakRow& row : kPeaks) {
    const HongNetwork& network = HongNetworks()[row.network];
    CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers, LoadHongLayers(models, network, row.batch));
    const Bytes constants = HongConstants(layers.graph);
    const std::string subject = fmt::format("{}, b={}", network.name, row.batch);
    const auto predict = [&](const LayerPositions& checkpoints) {
      return DynamicObjective(layers.list, WithInput(checkpoints)) + constants;
    };
    AddPeak(subject, "Algorithm 6", predict(network.dynamic), row.dynamic, kIndicesNote, &table);
    AddPeak(subject, "Algorithm 3", predict(network.selection), row.selection, kIndicesNote,
            &table);
    AddPeak(subject, "ACG solver", predict(network.acg), row.acg, kIndicesNote, &table);
    AddPeak(subject, "O(sqrt(n))", predict(network.sqrt), row.sqrt, kIndicesNote, &table);
    AddPeak(subject, "PyTorch", layers.keep_all + constants, row.keep_all, kPhaseNote, &table);
    if (row.network != 0 || row.batch != 128) continue;
    const Bytes least = predict(network.dynamic);
    AddGain(subject, "O(sqrt(n))", predict(network.sqrt), least, {2048, -230}, &table);
    AddGain(subject, "ACG solver", predict(network.acg), least, {392, -57}, &table);
  }
  return table;
}

constexpr const char* kPythonNote =
    "CPU time of one thread on this machine, the mean of many runs. The paper's program is written "
    "in Python and ran on an Intel Xeon Gold 6226R.";

}  // namespace

Result<FigureTable> HongSolverTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Section 5.7, time of the algorithms";
  table.intro =
      "\"Algorithm 3 and algorithm 6 respectively take 20 milliseconds and 1.1 milliseconds to "
      "find the checkpoint subset for VGG-19.\"";
  CKPLAN_ASSIGN_OR_RETURN(const HongLayers layers, LoadHongLayers(models, HongNetworks()[0], 128));
  const auto add = [&](const char* how, int64_t paper, const auto& solve) {
    constexpr int kRuns = 1000;
    const double begin = CpuSeconds();
    for (int i = 0; i < kRuns; ++i) solve();
    const double seconds = (CpuSeconds() - begin) / kRuns;
    Figure figure;
    figure.subject = "VGG-19";
    figure.quantity = how;
    figure.unit = FigureUnit::kMicroseconds;
    figure.ours = static_cast<int64_t>(std::lround(seconds * 1'000'000));
    figure.paper = paper;
    figure.note = table.Note(kPythonNote);
    table.figures.push_back(std::move(figure));
  };
  add("Algorithm 3", 20'000, [&] { return SelectStatic(layers.list, {}).ok(); });
  add("Algorithm 6", 1'100, [&] { return SelectDynamicLinear(layers.list).positions.size(); });
  return table;
}

Result<Reproduction> ReproduceHong(const std::string& models) {
  Reproduction reproduction{"hong", kHongPaper, {}};
  for (const auto make_table : {SetTable, PeakTable, HongPredictionTable, HongComparisonTable,
                                HongPlainTable, HongModelledTimeTable}) {
    CKPLAN_ASSIGN_OR_RETURN(FigureTable table, make_table(models));
    reproduction.tables.push_back(std::move(table));
  }
  reproduction.tables.push_back(HongMeasuredTimeTable());
  return reproduction;
}

}  // namespace ckplan
