#include "cli/ckbench/hong_times.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "cli/ckbench/hong_layers.h"
#include "lib/schedule/simulate.h"

namespace ckplan {
namespace {

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
    "The paper's is measured. The cost model lets every operation reach the peak rate of "
    "arithmetic or of memory, which those of a device do not.";
constexpr const char* kSegmentNote =
    "`torch.utils.checkpoint` runs a segment again to its end, the checkpoint included: all of the "
    "forward pass (the row below). A plan of ours does not run what it has kept.";
constexpr const char* kAlexNetNote =
    "What is added takes about as long as in the paper: 4 to 6 ms at b=128, where the paper has 8, "
    "and 133 to 194 ms at b=4096, where it has 148. But the rest of the paper's step takes twice "
    "as long as by peak rates, so this is a smaller share of it.";
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

}  // namespace

Result<FigureTable> HongModelledTimeTable(const std::string& models) {
  FigureTable table;
  table.title = "Table 3, time of a step by the cost model";
  table.intro =
      "Forward, backward and what is recomputed, by the cost model of the paper's device (`--cost "
      "flops:rtx3090-24g`), for the paper's checkpoints: what PyTorch without checkpoints takes, "
      "and by how much the others are above it. Batches at which PyTorch ran out of memory have "
      "no such ratio in the paper.";
  for (const TimeRow& row : kTimes) {
    if (row.keep_all == kRanOut) continue;
    CKPLAN_RETURN_IF_ERROR(AddModelled(models, row, &table));
  }
  return table;
}

FigureTable HongMeasuredTimeTable() {
  FigureTable table;
  table.title = "Table 3, time of a step, measured";
  table.intro =
      "The paper's are of a GeForce RTX 3090, the mean over an epoch of ImageNet. "
      "Where it ran out of memory, \"OOM\", there is its 24 GiB for a time.";
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

}  // namespace ckplan
