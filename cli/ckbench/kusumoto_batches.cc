#include "cli/ckbench/kusumoto_batches.h"

#include <fmt/format.h>

#include <utility>

#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr Bytes kK40Memory(kKusumotoDeviceMemory * 100'000'000);
constexpr const char* kK40Cost = "flops:k40-12g";

// The curves of Fig. 3 as positions in kKusumotoColumns, the time-centric curve first.
constexpr std::array<size_t, 3> kCurves = {1, 0, 4};

constexpr const char* kBatchNote =
    "Ours is where the simulated peak, of tensors alone, reaches 11.4 GB. The authors' ends where "
    "a device has no room left for workspaces of convolutions and for blocks that are in part "
    "empty, or at the largest batch that they tried, which Fig. 3 does not tell apart.";
constexpr const char* kTimeNote =
    "The paper's is measured. The cost model lets every operation reach the peak rate of "
    "arithmetic or of memory; on a device they reach different shares of it.";

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
  TimedNetwork(TensorGraph by_paper, TensorGraph by_device)
      : by_paper_(std::move(by_paper)), by_device_(std::move(by_device)) {}

  Cost Vanilla() const { return by_device_.forward_cost() + by_device_.backward_cost(); }

  // Returns nothing if the strategy does not fit into the device's memory.
  Result<std::optional<Cost>> TimeOf(const KusumotoColumn& column) const {
    const Bytes room = kK40Memory - TotalConstants(by_paper_.constants(), Bytes(0));
    Result<Strategy> strategy =
        column.objective == Objective::kTime && column.algorithm != std::string_view("chen-greedy")
            ? KusumotoStrategy(by_paper_, column, [&](Bytes) { return room; })
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
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph by_paper, KusumotoGraph(models, network, batch));
  CKPLAN_ASSIGN_OR_RETURN(TensorGraph by_device, KusumotoGraph(models, network, batch, kK40Cost));
  return TimedNetwork(std::move(by_paper), std::move(by_device));
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
      "The largest batch whose simulated peak with liveness analysis, parameters, their gradients "
      "and the input included, is within the 11.4 GB of the paper's device, at the least budget "
      "of Eq. 2. \"For PSPNet, our method was able to increase the maximum possible batch size "
      "from 2 to 8\"; the text names no other.";
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
      "Forward, backward and what is recomputed, by the cost model of the paper's device "
      "(`--cost flops:k40-12g`); strategies are chosen by the paper's costs of 10 and 1. B of the "
      "time-centric strategy is what 11.4 GB leave beside parameters, their gradients and the "
      "input; the memory-centric one has the least. Vanilla is what it would take with more "
      "memory, the figure's dotted line. Where a strategy has no room there is no row; GoogLeNet "
      "has none, since its model is for one sample. The text names one number.";
  for (const KusumotoPeaks& of : peaks) {
    if (of.network->has_fixed_batch) continue;
    CKPLAN_RETURN_IF_ERROR(AddTimes(models, of, &table));
  }
  return table;
}

}  // namespace ckplan
