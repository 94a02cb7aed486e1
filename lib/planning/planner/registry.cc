#include "lib/planning/planner/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/base/text.h"
#include "lib/planning/algorithms/baselines/baselines.h"
#include "lib/planning/algorithms/checkmate/checkmate.h"
#include "lib/planning/algorithms/chen/chen_drop.h"
#include "lib/planning/algorithms/chen/chen_frontier.h"
#include "lib/planning/algorithms/chen/chen_greedy.h"
#include "lib/planning/algorithms/chen/chen_recursive.h"
#include "lib/planning/algorithms/chen/chen_sqrt.h"
#include "lib/planning/algorithms/dtr/dtr.h"
#include "lib/planning/algorithms/feng/feng.h"
#include "lib/planning/algorithms/given/given.h"
#include "lib/planning/algorithms/hong/hong.h"
#include "lib/planning/algorithms/kusumoto/kusumoto.h"
#include "lib/planning/algorithms/offload/greedy_offload.h"
#include "lib/planning/algorithms/rotor/rotor.h"
#include "lib/planning/algorithms/torch/torch_budget.h"
#include "lib/planning/plan/request.h"

namespace ckplan {
namespace {

using Kind = Knob::Kind;

constexpr std::string_view kChenPaper =
    "Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost, 2016";
constexpr std::string_view kHongPaper =
    "Hong, Tsai, Wang, Liu, Wu: GPU Memory Usage Optimization for Backward Propagation in Deep "
    "Network Training, 2024";
constexpr std::string_view kFengPaper =
    "Feng, Huang: Cutting Down Training Memory by Re-forwarding, 2018";
constexpr std::string_view kBeaumontPaper =
    "Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for "
    "heterogeneous chains: how to train deep neural networks with limited memory, 2019";
constexpr std::string_view kJainPaper =
    "Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez: Checkmate: Breaking the "
    "Memory Wall with Optimal Tensor Rematerialization, MLSys 2020";
constexpr std::string_view kKirisamePaper =
    "Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock: Dynamic Tensor "
    "Rematerialization, ICLR 2021";
constexpr std::string_view kKusumotoPaper =
    "Kusumoto, Inoue, Watanabe, Akiba, Koyama: A Graph Theoretic Framework of Recomputation "
    "Algorithms for Memory-Efficient Backpropagation, NeurIPS 2019";
constexpr std::string_view kHePaper =
    "activation_memory_budget of PyTorch, pull request 126320; He, Yu: Transcending Runtime-Memory "
    "Tradeoffs in Checkpointing by being Fusion Aware, MLSys 2023";

// `ckplan algos`, --algo, the shared tests and the docs are all generated from this list.
constexpr std::array kSolvers = {
    SolverInfo{"approx-dp", "dynamic program over the closures of single nodes", kKusumotoPaper,
               Guarantee::kHeuristic, GraphClass::kAnyDag, true, Kind::kPaperBudget,
               PrepareApproxDp},
    SolverInfo{"checkmate", "integer program over time stages, for small graphs", kJainPaper,
               Guarantee::kOptimalInClass, GraphClass::kAnyDag, false, Kind::kPeakLimit,
               PrepareOnExpansion<PrepareCheckmateRuns>, PrepareCheckmateRuns},
    SolverInfo{"chen-count", "about sqrt(n) segments with equal numbers of layers", kChenPaper,
               Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kSegmentCount, PrepareChenCount},
    SolverInfo{"chen-drop-bn-relu", "drop only the results of normalisations and activations",
               kChenPaper, Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kNone,
               PrepareChenDropBnRelu},
    SolverInfo{"chen-drop-cheap", "keep convolutions and matrix products, drop bn and relu",
               kChenPaper, Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kNone,
               PrepareChenDropCheap},
    SolverInfo{"chen-frontier", "equal segments cut where few bytes cross, as between time steps",
               kChenPaper, Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kSegmentCount,
               PrepareChenFrontier},
    SolverInfo{"chen-greedy", "segments closed once they exceed a budget", kChenPaper,
               Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kSegmentBudget, PrepareChenGreedy},
    SolverInfo{"chen-keep-costly", "segments over a budget, plus as much for costly results",
               kChenPaper, Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kSegmentBudget, PrepareChenKeepCostly},
    SolverInfo{"chen-recursive", "keep k results per level, solve segments recursively", kChenPaper,
               Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kResultsPerLevel, PrepareChenRecursive},
    SolverInfo{"chen-search", "the best of a grid of segment budgets, costed exactly", kChenPaper,
               Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kGridPoint, PrepareChenSearch},
    SolverInfo{"chen-sqrt", "about sqrt(n) segments of equal memory", kChenPaper,
               Guarantee::kHeuristic, GraphClass::kChainOfSplittingVertices, false,
               Kind::kSegmentCount, PrepareChenSqrt},
    SolverInfo{"dtr", "greedy eviction by size, staleness and cost, planned ahead", kKirisamePaper,
               Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kPeakLimit,
               PrepareOnExpansion<PrepareDtrRuns>, PrepareDtrRuns},
    SolverInfo{"exact-dp", "dynamic program over all lower sets", kKusumotoPaper,
               Guarantee::kOptimalInClass, GraphClass::kAnyDag, true, Kind::kPaperBudget,
               PrepareExactDp},
    SolverInfo{"feng-acg", "kept tensors plus largest segment, over the division tree", kFengPaper,
               Guarantee::kOptimalInClass, GraphClass::kAnyDag, false, Kind::kLargestSegment,
               PrepareFengAcg},
    SolverInfo{"feng-linear", "kept tensors plus largest segment, along the chain", kFengPaper,
               Guarantee::kOptimalInClass, GraphClass::kChainOfSplittingVertices, false,
               Kind::kLargestSegment, PrepareFengLinear},
    SolverInfo{"hong-dynamic", "checkpoints for memory as PyTorch frees it, in O(n^2)", kHongPaper,
               Guarantee::kOptimalInClass, GraphClass::kChainOfSplittingVertices, false,
               Kind::kNone, PrepareHongDynamic},
    SolverInfo{"hong-linear", "checkpoints for memory as PyTorch frees it, in O(n)", kHongPaper,
               Guarantee::kOptimalInClass, GraphClass::kChainOfSplittingVertices, false,
               Kind::kNone, PrepareHongLinear},
    SolverInfo{"hong-selection", "smallest sum of checkpoints and largest segment", kHongPaper,
               Guarantee::kOptimalInClass, GraphClass::kChainOfSplittingVertices, false,
               Kind::kNone, PrepareHongSelection},
    SolverInfo{"keep-all", "keep every activation: ordinary training", "none", Guarantee::kBaseline,
               GraphClass::kAnyDag, false, Kind::kNone, PrepareKeepAll, PrepareKeepAllRuns},
    SolverInfo{"kusumoto-exhaustive", "every sequence of lower sets, depth first", kKusumotoPaper,
               Guarantee::kOptimalInClass, GraphClass::kAnyDag, true, Kind::kPaperBudget,
               PrepareKusumotoExhaustive},
    SolverInfo{"recompute-all", "keep nothing but the inputs, run forward twice", "none",
               Guarantee::kBaseline, GraphClass::kAnyDag, false, Kind::kNone, PrepareRecomputeAll},
    SolverInfo{"rotor", "dynamic program over persistent schedules of the chain", kBeaumontPaper,
               Guarantee::kOptimalInClass, GraphClass::kChainOfSplittingVertices, false,
               Kind::kPaperBudget, PrepareRotor},
    SolverInfo{"torch-budget", "minimum cut and knapsack over saved values, as torch.compile does",
               kHePaper, Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kSavedShare,
               PrepareOnExpansion<PrepareTorchBudgetRuns>, PrepareTorchBudgetRuns},
};

// These algorithms need a link to the host.
constexpr std::array kOffloadSolvers = {
    SolverInfo{"offload-costliest", "offload the values that take longest per byte to compute",
               "none", Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kPeakLimit, nullptr,
               nullptr, PrepareOffloadCostliest},
    SolverInfo{"offload-earliest", "offload the values computed first", "none",
               Guarantee::kHeuristic, GraphClass::kAnyDag, false, Kind::kPeakLimit, nullptr,
               nullptr, PrepareOffloadEarliest},
    SolverInfo{"offload-largest", "offload the largest values", "none", Guarantee::kHeuristic,
               GraphClass::kAnyDag, false, Kind::kPeakLimit, nullptr, nullptr,
               PrepareOffloadLargest},
};

constexpr SolverInfo kAuto = {kAutoAlgorithm,
                              "the best plan of all papers' algorithms for the budget",
                              "none",
                              Guarantee::kHeuristic,
                              GraphClass::kAnyDag,
                              true,
                              Kind::kNone,
                              nullptr};

constexpr SolverInfo kBest = {kBestAlgorithm,
                              "the fastest plan known, with a proven bound",
                              "none",
                              Guarantee::kOptimalInClass,
                              GraphClass::kAnyDag,
                              false,
                              Kind::kNone,
                              nullptr};

constexpr SolverInfo kGiven = {kGivenAlgorithm,
                               "your own decisions, from --decisions FILE",
                               "none",
                               Guarantee::kNone,
                               GraphClass::kAnyDag,
                               false,
                               Kind::kNone,
                               PrepareGiven};

struct Alias {
  std::string_view alias;
  std::string_view name;
};

// Names that people use in papers, issues and other tools, in alphabetical order.
constexpr std::array kAliases = {
    Alias{"acg", "feng-acg"},
    Alias{"approx", "approx-dp"},
    Alias{"canonical", "exact-dp"},
    Alias{"chen", "chen-sqrt"},
    Alias{"drop-bn-relu", "chen-drop-bn-relu"},
    Alias{"drop-cheap", "chen-drop-cheap"},
    Alias{"exact", "exact-dp"},
    Alias{"exhaustive", "kusumoto-exhaustive"},
    Alias{"feng", "feng-acg"},
    Alias{"greedy", "chen-greedy"},
    Alias{"hong", "hong-linear"},
    Alias{"kusumoto", "exact-dp"},
    Alias{"kusumoto-approx", "approx-dp"},
    Alias{"kusumoto-exact", "exact-dp"},
    Alias{"keep-costly", "chen-keep-costly"},
    Alias{"lcg", "feng-linear"},
    Alias{"none", "keep-all"},
    Alias{"over-time", "chen-frontier"},
    Alias{"recursive", "chen-recursive"},
    Alias{"sqrt", "chen-sqrt"},
    Alias{"sublinear", "chen-search"},
    Alias{"vanilla", "keep-all"},
};

struct Containment {
  std::string_view larger;
  std::string_view smaller;
};

constexpr std::array kContainments = {
    // chen-search has seven of chen-greedy's settings.
    Containment{"chen-greedy", "chen-search"},
    // Closures are lower sets.
    Containment{"exact-dp", "approx-dp"},
    // The nodes between two splitting vertices form a closed set.
    Containment{"feng-acg", "feng-linear"},
    Containment{"kusumoto-exhaustive", "approx-dp"},
};

}  // namespace

std::span<const SolverInfo> AllSolvers() { return kSolvers; }
std::span<const SolverInfo> OffloadSolvers() { return kOffloadSolvers; }

bool PlansRuns(const SolverInfo& info) {
  return info.prepare_runs != nullptr || info.prepare_offload != nullptr ||
         info.name == kBestAlgorithm || info.name == kGivenAlgorithm;
}

bool RunsBackwardByNode(const SolverInfo& info) {
  const bool is_of_runs = info.prepare_runs != nullptr || info.prepare_offload != nullptr;
  return info.name == kBestAlgorithm || info.prepare == PrepareRotor ||
         (is_of_runs && info.guarantee != Guarantee::kBaseline);
}

bool CanPlan(const SolverInfo& info, const TrainingStep& step) {
  return step.has_forward() || PlansRuns(info) || info.name == kAutoAlgorithm;
}

bool NeedsLink(const SolverInfo& info) {
  return info.prepare_offload != nullptr && info.prepare_runs == nullptr;
}

bool IsSlow(const SolverInfo& info) {
  return info.takes_objective || info.prepare_runs == PrepareCheckmateRuns;
}

std::vector<const SolverInfo*> ListedAlgorithms() {
  std::vector<const SolverInfo*> listed = {&kAuto, &kBest, &kGiven};
  for (const SolverInfo& info : kSolvers) listed.push_back(&info);
  for (const SolverInfo& info : kOffloadSolvers) listed.push_back(&info);
  std::sort(listed.begin(), listed.end(),
            [](const SolverInfo* a, const SolverInfo* b) { return a->name < b->name; });
  return listed;
}

Result<const SolverInfo*> FindSolver(std::string_view name) {
  std::string_view wanted = name;
  std::vector<std::string_view> names;
  for (const Alias& row : kAliases) {
    if (row.alias == name) wanted = row.name;
    names.push_back(row.alias);
  }
  for (const SolverInfo* info : ListedAlgorithms()) {
    if (info->name == wanted) return info;
    names.push_back(info->name);
  }
  const std::string meant = DidYouMean(name, names);
  return MakeError(ErrorCode::kUsage,
                   fmt::format("unknown algorithm \"{}\"{} run `ckplan algos` for the list", name,
                               meant.empty() ? ";" : meant));
}

std::vector<std::string_view> AliasesOf(std::string_view name) {
  std::vector<std::string_view> aliases;
  for (const Alias& row : kAliases) {
    if (row.name == name) aliases.push_back(row.alias);
  }
  return aliases;
}

std::vector<const SolverInfo*> ContainedIn(std::string_view algorithm) {
  std::vector<const SolverInfo*> contained;
  for (const Containment& row : kContainments) {
    if (row.larger == algorithm) contained.push_back(FindSolver(row.smaller).value());
  }
  return contained;
}

}  // namespace ckplan
