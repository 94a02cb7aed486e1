// Kusumoto et al. 2019: #V and peak memory with liveness analysis (Table 1), and without it (Table
// 2). kusumoto_networks.cc has Fig. 3.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/ckbench/chainer_run.h"
#include "cli/ckbench/commands.h"
#include "cli/ckbench/kusumoto_networks.h"
#include "cli/ckbench/reproduction.h"
#include "lib/problem/graph/vertex_graph.h"
#include "lib/problem/schedule/canonical_strategy.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr const char* kKusumotoPaper =
    "Kusumoto, Inoue, Watanabe, Akiba, Koyama: A Graph Theoretic Framework of Recomputation "
    "Algorithms for Memory-Efficient "
    "Backpropagation, NeurIPS 2019";

// Why rows on the authors' graphs differ.
constexpr const char* kVanillaNote =
    "Ours counts tensors and what Chainer's functions hold. The paper measured how much CuPy's "
    "pool "
    "held.";
constexpr const char* kOtherPlanNote =
    "The authors' program chooses another plan at this B. Its schedule needs 2.80 GB on PSPNet and "
    "5.30 GB on U-Net (mksch/DP.cpp; the paper's 2.8 and 5.3) and 1.68 GB on DenseNet161 "
    "(mksch/DP2.cpp; the paper's 1.6). `--schedule` runs it, as docs/reproduction.md shows.";
constexpr const char* kNoBudgetNote =
    "The schedules of the authors' program (mksch/DP2.cpp) need 4.62 and 5.69 GB at this B. At "
    "none "
    "of the multiples of 100 MB up to 7.2 GB do they need the paper's 5.0 and 6.7 GB, and 6.8 GB "
    "in "
    "Table 2.";

const char* AuthorsNote(const KusumotoNetwork& network, size_t column) {
  const bool is_approximate = kKusumotoColumns[column].algorithm == std::string_view("approx-dp");
  return is_approximate && network.name == std::string_view("U-Net") ? kNoBudgetNote
                                                                     : kOtherPlanNote;
}

constexpr const char* kK40Note = "This run did not fit in the paper's 11.4 GB, where ours does.";

constexpr const char* kPrintedNote =
    "The percentage as printed in the paper, which contradicts its gigabytes; the row above is "
    "computed from these.";

// Returns the paper's reduction: the printed percentage, a whole number, if it is consistent with
// the gigabytes, which have one decimal. Otherwise returns the reduction that the gigabytes give.
int64_t PaperReduction(int64_t peak, int64_t vanilla, int64_t percent) {
  // With both gigabytes rounded, 1 - peak / vanilla lies between 1 - (2 peak + 1) / (2 vanilla - 1)
  // and 1 - (2 peak - 1) / (2 vanilla + 1). The printed percentage is exact to half a percent.
  const bool is_low_enough = (2 * percent - 1) * (2 * vanilla + 1) <= 400 * (vanilla - peak + 1);
  const bool is_high_enough = (2 * percent + 1) * (2 * vanilla - 1) >= 400 * (vanilla - peak - 1);
  if (is_low_enough && is_high_enough) return -10 * percent;
  return ReductionSteps(Bytes(peak), Bytes(vanilla));
}

// The columns of one network in one of the paper's tables.
struct PaperColumns {
  const KusumotoNetwork& network;
  const KusumotoRow& peaks;
  const KusumotoRow& percents;
  FigureTable* table;
  bool is_authors = false;  // The graph is the authors'.
};

void AddReduction(const PaperColumns& paper, size_t column, Bytes peak, Bytes vanilla) {
  const KusumotoNetwork& network = paper.network;
  Figure figure;
  figure.subject = network.name;
  figure.quantity = kKusumotoColumns[column].name;
  figure.unit = FigureUnit::kReduction;
  figure.ours = ReductionSteps(peak, vanilla);
  figure.paper_ran_out = paper.peaks[column] == kRanOutOfMemory;
  figure.paper = figure.paper_ran_out
                     ? ReductionSteps(Bytes(kKusumotoDeviceMemory), Bytes(network.vanilla))
                     : PaperReduction(paper.peaks[column], network.vanilla, paper.percents[column]);
  if (figure.NeedsExplanation()) {
    figure.note = paper.table->Note(figure.paper_ran_out ? kK40Note
                                    : paper.is_authors   ? AuthorsNote(network, column)
                                                         : network.why);
  }
  Figure printed = figure;
  paper.table->figures.push_back(std::move(figure));
  if (printed.paper_ran_out || paper.is_authors) return;  // The other page has these rows.
  const int64_t percent = paper.percents[column];
  if (printed.paper == -10 * percent) return;
  printed.quantity += ", as printed";
  printed.paper = -10 * percent;
  printed.note = paper.table->Note(kPrintedNote);
  paper.table->figures.push_back(std::move(printed));
}

void AddVanilla(const PaperColumns& paper, const TensorGraph& graph, Bytes peak) {
  const KusumotoNetwork& network = paper.network;
  FigureTable* const table = paper.table;
  Figure vertices;
  vertices.subject = network.name;
  vertices.quantity = "#V";
  vertices.unit = FigureUnit::kCount;
  vertices.ours = static_cast<int64_t>(VertexGraph(graph).size());
  vertices.paper = network.vertices;
  if (vertices.ours != vertices.paper) vertices.note = table->Note(network.vertices_why);
  table->figures.push_back(std::move(vertices));
  Figure vanilla;
  vanilla.subject = network.name;
  vanilla.quantity = "vanilla, peak";
  vanilla.unit = FigureUnit::kGigabytes;
  vanilla.ours = GigabyteSteps(peak);
  vanilla.paper = network.vanilla;
  if (vanilla.NeedsExplanation()) {
    vanilla.note = table->Note(paper.is_authors ? kVanillaNote : network.why);
  }
  table->figures.push_back(std::move(vanilla));
}

// The peaks of a strategy, including parameters, their gradients and the input.
struct StrategyPeaks {
  Bytes with_liveness;
  Bytes without_liveness;
};

// Runs the strategy on our own export. Backward steps are by input.
StrategyPeaks OwnPeaks(const TensorGraph& graph, const Strategy& strategy) {
  Simulator simulator(graph);
  const Bytes constants = TotalConstants(graph.constants(), Bytes(0));
  return {simulator.Run(CanonicalWithLiveness(graph, strategy)).value().peak + constants,
          simulator.Run(LowerWithoutLiveness(graph, strategy)).value().peak + constants};
}

// Runs the strategy on the authors' graph as they did.
StrategyPeaks AuthorsPeaks(const ChainerNetwork& network, const TensorGraph& graph,
                           const Strategy& strategy) {
  const auto& sequence = std::get<LowerSetSequence>(strategy);
  std::vector<int32_t> segment_of(network.functions.size());
  for (const NodeId id : graph.nodes().ids()) {
    segment_of[static_cast<size_t>(graph.node(id).file_id)] = sequence.segment_of[id];
  }
  const auto peak = [&](bool has_liveness) {
    return ChainerPeak(network, segment_of, sequence.segment_count, has_liveness);
  };
  return {peak(/*has_liveness=*/true), peak(/*has_liveness=*/false)};
}

// Adds the network's rows to both tables. `authors` is absent for our own export. Chainer goes
// backward by node, the authors' program by input.
Result<KusumotoPeaks> AddNetwork(const KusumotoNetwork& network, const TensorGraph& by_node,
                                 const ChainerNetwork* authors, FigureTable* with,
                                 FigureTable* without, int64_t step_mb = kBudgetStepMb) {
  const bool is_authors = authors != nullptr;
  const TensorGraph graph = WithBackwardByInput(by_node);
  const PaperColumns with_columns{network, network.with_liveness, network.with_percent, with,
                                  is_authors};
  const PaperColumns without_columns{network, network.without_liveness, network.without_percent,
                                     without, is_authors};
  const TensorGraph ordinary = is_authors ? WithChainerReads(WithChainerBuffers(by_node)) : by_node;
  const Bytes vanilla = Simulator(ordinary).Run(VanillaSchedule(ordinary)).value().peak +
                        TotalConstants(graph.constants(), Bytes(0));
  KusumotoPeaks peaks{&network, graph.constants(), vanilla, {}};
  constexpr int64_t kStep = 100'000'000;
  const Bytes baseline = is_authors ? Bytes(network.vanilla * kStep) : vanilla;
  AddVanilla(with_columns, graph, vanilla);
  CKPLAN_ASSIGN_OR_RETURN(const Bytes budget, KusumotoBudget(graph, network, step_mb));
  for (size_t i = 0; i < kKusumotoColumns.size(); ++i) {
    CKPLAN_ASSIGN_OR_RETURN(const Strategy strategy,
                            KusumotoStrategy(graph, kKusumotoColumns[i], budget));
    const StrategyPeaks of =
        is_authors ? AuthorsPeaks(*authors, graph, strategy) : OwnPeaks(graph, strategy);
    peaks.columns[i] = of.with_liveness;
    AddReduction(with_columns, i, of.with_liveness, baseline);
    AddReduction(without_columns, i, of.without_liveness, baseline);
  }
  return peaks;
}

FigureTable WithLivenessTable() {
  FigureTable table;
  table.title = "Table 1, graphs and peak memory with liveness analysis";
  table.intro =
      "#V counts the vertices of the graph that the algorithms see. Peaks include parameters, "
      "their gradients and the input, and are changes relative to ordinary training in Chainer, "
      "where what backward reads stays until the end of the step. The paper says that B is the "
      "smallest feasible budget of Eq. 2. Its figures come out where B is the least multiple of "
      "100 MB, at the batch of the authors' files, at which the approximate dynamic program finds "
      "a plan; the exact one has the same. MC is memory-centric, TC time-centric. A convolution "
      "costs "
      "10 and everything else 1, at most 2,006 in total (DenseNet161). Chen's has no budget: it is "
      "`chen-sqrt` with floor(sqrt(c)) segments, where c counts the lower sets with a one-vertex "
      "boundary, including the empty set and V, as in the authors' program. Backward steps are by "
      "input (`--backward by-input`), as in that program. A segment is recomputed all at once, and "
      "liveness frees what it can. The paper's percentages are as printed if they agree with its "
      "gigabytes, and are computed from the gigabytes otherwise. No cost on this page is rounded. "
      "Where a graph's total cost exceeds 100,000 units, as it does in nanoseconds, the dynamic "
      "programs first plan with rounded costs, then refine with exact ones until the plan is "
      "proven or a limit is reached, which the plan reports (docs/algorithms.md).";
  return table;
}

FigureTable WithoutLivenessTable() {
  FigureTable table;
  table.title = "Table 2, peak memory without liveness analysis";
  table.intro =
      "The same strategies, freeing a segment at a time (`--no-liveness`): Eq. 2, plus the results "
      "that operations after a cut read of their own. Where the paper's run ran out of memory "
      "(\">= 11.4 GB\"), its figure compares 11.4 GB with its vanilla run. Of the percentages "
      "printed in this table of the paper, only GoogLeNet's follow from its gigabytes (VGG19: 5.5 "
      "of 7.0 GB, printed as -34 %). Ours compares with percentages computed from the gigabytes, "
      "except in the rows \"as printed\".";
  return table;
}

constexpr const char* kTimedNote =
    "CPU seconds of one thread on this machine, for the least budget and the plan; the paper's are "
    "from another. Their program (mksch/DP.cpp) takes 25 s (PSPNet) and 71 s (GoogLeNet) for the "
    "plan alone on the machine that made this page.";

// Times the dynamic programs on the authors' graphs.
Result<FigureTable> TimedSolverTable(const std::string& graphs) {
  FigureTable table;
  table.title = "Section 5.1, time of the algorithms, on the authors' graphs";
  table.intro =
      "\"The exact DP algorithm required more than 80 secs to complete for GoogLeNet and PSPNet, "
      "while the approximate DP completed within 1 sec for all networks.\"";
  for (const KusumotoNetwork& network : KusumotoNetworks()) {
    CKPLAN_ASSIGN_OR_RETURN(const ChainerNetwork file, ReadAuthorsNetwork(graphs, network));
    CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, GraphOf(file, network.graph));
    const bool is_slow =
        network.name == std::string_view("GoogLeNet") || network.name == std::string_view("PSPNet");
    for (const bool is_exact : {true, false}) {
      const double begin = CpuSeconds();
      CKPLAN_RETURN_IF_ERROR(KusumotoStrategy(graph, kKusumotoColumns[is_exact ? 3 : 1]));
      const double seconds = CpuSeconds() - begin;
      Figure figure;
      figure.subject = network.name;
      figure.quantity = !is_exact ? "ApproxDP" : is_slow ? "ExactDP, more than" : "ExactDP";
      figure.unit = FigureUnit::kMilliseconds;
      figure.ours = static_cast<int64_t>(std::lround(seconds * 1000));
      if (is_slow && is_exact) figure.paper = 80'000;
      if (!is_exact) figure.paper = 1'000;
      figure.paper_is_limit = !is_exact;
      if (is_exact) figure.note = table.Note(kTimedNote);
      table.figures.push_back(std::move(figure));
    }
  }
  return table;
}

}  // namespace

Result<Reproduction> ReproduceKusumotoOn(const std::string& graphs, int64_t step_mb) {
  FigureTable with = WithLivenessTable();
  FigureTable without = WithoutLivenessTable();
  for (FigureTable* table : {&with, &without}) {
    table->title += ", on the authors' graphs";
    table->intro +=
        " Here reductions are relative to the paper's own vanilla run, in its gigabytes. "
        "Strategies "
        "run as by the authors' scripts on Chainer 9f243e66: a function's object stays until it "
        "runs again, and with it the result and the scale of local response normalisation, the "
        "mask of dropout and the probabilities of softmax cross entropy; GetItem, Reshape and the "
        "gradients of sums and concatenations are views, which hold what they are views of; "
        "gradients of parameters are made in backward. Our vanilla run does not keep the inputs of "
        "sums and concatenations: the authors' files list them as read by backward, but Chainer's "
        "functions do not retain them.";
  }
  for (const KusumotoNetwork& network : KusumotoNetworks()) {
    CKPLAN_ASSIGN_OR_RETURN(const ChainerNetwork file, ReadAuthorsNetwork(graphs, network));
    const ChainerNetwork authors = WithBatch(file, network.batch, network.graph_batch);
    CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, GraphOf(authors, network.graph));
    CKPLAN_RETURN_IF_ERROR(AddNetwork(network, graph, &authors, &with, &without, step_mb));
  }
  CKPLAN_ASSIGN_OR_RETURN(FigureTable times, TimedSolverTable(graphs));
  return Reproduction{
      "kusumoto", kKusumotoPaper, {std::move(with), std::move(without), std::move(times)}};
}

Result<Reproduction> ReproduceKusumoto(const std::string& models) {
  FigureTable with = WithLivenessTable();
  FigureTable without = WithoutLivenessTable();
  std::vector<KusumotoPeaks> peaks;
  for (const KusumotoNetwork& network : KusumotoNetworks()) {
    CKPLAN_ASSIGN_OR_RETURN(const TensorGraph graph, KusumotoGraph(models, network, network.batch));
    CKPLAN_ASSIGN_OR_RETURN(peaks.emplace_back(),
                            AddNetwork(network, graph, /*authors=*/nullptr, &with, &without));
  }
  FigureTable batches = KusumotoBatchTable(peaks);
  CKPLAN_ASSIGN_OR_RETURN(FigureTable times, KusumotoTimeTable(models, peaks));
  return Reproduction{"kusumoto",
                      kKusumotoPaper,
                      {std::move(with), std::move(without), std::move(batches), std::move(times)}};
}

}  // namespace ckplan
