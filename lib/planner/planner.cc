#include "lib/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "lib/algorithms/kusumoto/canonical.h"
#include "lib/plan/assemble.h"
#include "lib/plan/check.h"
#include "lib/planner/registry.h"
#include "lib/schedule/lower.h"
#include "lib/schedule/lower_without_liveness.h"
#include "lib/schedule/simulate.h"
#include "lib/schedule/unfold.h"

namespace ckplan {
namespace {

// One setting of the knob, carried through to what the simulator says of it.
struct Candidate {
  int64_t setting = 0;
  SolveOutcome outcome;
  Schedule schedule;
  Simulation simulation;
};

// Less overhead is better, then less memory; of equals the one with the lower setting.
bool IsBetterForTime(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.overhead, a.simulation.peak, a.setting) <
         std::tuple(b.simulation.overhead, b.simulation.peak, b.setting);
}
bool IsBetterForMemory(const Candidate& a, const Candidate& b) {
  return std::tuple(a.simulation.peak, a.simulation.overhead, a.setting) <
         std::tuple(b.simulation.peak, b.simulation.overhead, b.setting);
}

// The graph that plans are judged on, and what the algorithm sees of it.
struct View {
  View(const TensorGraph& judged, const PlannerRequest& request)
      : graph(judged),
        fold(request.granularity == Granularity::kLayer ? std::optional(FoldLayers(judged))
                                                        : std::nullopt),
        problem(fold ? fold->graph : graph, request.objective),
        uses_liveness(request.uses_liveness) {}
  View(const View&) = delete;  // The problem refers to the fold.
  View& operator=(const View&) = delete;

  Strategy OnNodes(Strategy strategy) const { return fold ? Unfold(*fold, strategy) : strategy; }

  Schedule Lower(const Strategy& strategy) const {
    return uses_liveness ? LowerStrategy(graph, strategy) : LowerWithoutLiveness(graph, strategy);
  }

  const TensorGraph& graph;
  const std::optional<LayerFold> fold;
  const Problem problem;
  const bool uses_liveness;
};

// The settings of a knob that have been tried, and the search over them.
//
// Memory and overhead are nearly, but not exactly, monotonic in a knob: liveness frees more than
// the papers' objectives know of. So a grid over the knob's whole range is tried first, and then
// the gaps beside the best setting are halved a few times.
class KnobSearch {
 public:
  KnobSearch(const View& view, PreparedSolver* solver, const SolveLimits& limits)
      : view_(view), solver_(*solver), limits_(limits), simulator_(view.graph) {}

  Result<const Candidate*> Try(int64_t setting) {
    const auto known = tried_.find(setting);
    if (known != tried_.end()) return &known->second;
    CKPLAN_ASSIGN_OR_RETURN(SolveOutcome outcome, solver_.Solve(setting, limits_));
    outcome.strategy = view_.OnNodes(std::move(outcome.strategy));
    Schedule schedule = view_.Lower(outcome.strategy);
    const Simulation simulation = simulator_.Run(schedule).value();
    const auto [it, is_new] = tried_.emplace(
        setting, Candidate{setting, std::move(outcome), std::move(schedule), simulation});
    return &it->second;
  }

  // The plan of least overhead whose peak is at most `budget`; null if none was found.
  Result<const Candidate*> BestWithin(Bytes budget) {
    const auto fits = [&](const Candidate& c) { return c.simulation.peak <= budget; };
    if (solver_.knob().kind == Knob::Kind::kPaperBudget) {
      const Candidate* one_segment = TryOneSegment();
      if (fits(*one_segment)) return one_segment;
      tried_.erase(kOneSegment);  // It is no setting, so nothing may be looked for beside it.
    }
    CKPLAN_RETURN_IF_ERROR(TryAround(budget, fits));
    const auto best = [&]() -> const Candidate* {
      const Candidate* found = nullptr;
      for (const auto& [setting, candidate] : tried_) {
        if (fits(candidate) && (found == nullptr || IsBetterForTime(candidate, *found))) {
          found = &candidate;
        }
      }
      return found;
    };
    for (int i = 0; i < kRefinements && best() != nullptr; ++i) {
      if (best()->simulation.overhead == Cost(0) || !HalveTowardsLessOverhead(*best())) break;
      CKPLAN_RETURN_IF_ERROR(Try(middle_));
    }
    return best();
  }

  // The plan of least peak found anywhere in the range.
  Result<const Candidate*> LeastPeak() {
    CKPLAN_RETURN_IF_ERROR(TryGrid());
    const auto best = [&] {
      return &std::min_element(tried_.begin(), tried_.end(), [](const auto& a, const auto& b) {
                return IsBetterForMemory(a.second, b.second);
              })->second;
    };
    for (int i = 0; i < kRefinements; ++i) {
      const auto at = tried_.find(best()->setting);
      if (std::next(at) != tried_.end() && HalveGap(at->first, std::next(at)->first)) {
        CKPLAN_RETURN_IF_ERROR(Try(middle_));
      }
      if (at != tried_.begin() && HalveGap(std::prev(at)->first, at->first)) {
        CKPLAN_RETURN_IF_ERROR(Try(middle_));
      }
    }
    return best();
  }

 private:
  static constexpr int kRefinements = 4;
  static constexpr int64_t kMostMisfits = 3;  // At 4 grid steps.
  static constexpr int64_t kFarOff = 5;       // A fifth above the budget.

  // From the least setting upwards in equal ratios to the end of the range.
  std::vector<int64_t> Grid() const {
    const Knob knob = solver_.knob();
    std::vector<int64_t> grid = {knob.least};
    while (grid.back() < knob.most) {
      grid.push_back(
          std::min(knob.most, grid.back() + std::max<int64_t>(1, grid.back() / knob.grid_steps)));
    }
    return grid;
  }

  Result<Done> TryGrid() {
    for (const int64_t setting : Grid()) CKPLAN_RETURN_IF_ERROR(Try(setting));
    return Done{};
  }

  // The part of the grid that matters for a budget. Where the knob is a budget on a whole plan, the
  // simulated peak is mostly below it: start there, go up until several in a row do not fit or one
  // is far off, and go down only if none did. Other knobs tell nothing of the peak, and both ends
  // of their range can need the most: all of the grid.
  template <typename Fits>
  Result<Done> TryAround(Bytes budget, Fits fits) {
    const std::vector<int64_t> grid = Grid();
    const bool is_near_peak = solver_.knob().kind == Knob::Kind::kPaperBudget;
    size_t start = 0;
    while (is_near_peak && start + 1 < grid.size() && grid[start] < budget.count()) ++start;
    bool has_fit = false;
    int64_t misfits = 0;
    const int64_t most_misfits = kMostMisfits * solver_.knob().grid_steps / 4;
    for (size_t i = start; i < grid.size() && misfits < most_misfits; ++i) {
      CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, Try(grid[i]));
      misfits = fits(*candidate) || !is_near_peak ? 0 : misfits + 1;
      has_fit |= fits(*candidate);
      const Bytes peak = candidate->simulation.peak;
      if (is_near_peak && (peak - budget).count() > budget.count() / kFarOff) break;
      if (fits(*candidate) && candidate->simulation.overhead == Cost(0)) return Done{};
    }
    for (size_t i = start; i-- > 0 && !has_fit;) {
      CKPLAN_ASSIGN_OR_RETURN(const Candidate* candidate, Try(grid[i]));
      has_fit = fits(*candidate);
    }
    return Done{};
  }

  // The canonical strategy {V}. Its one segment is the last, which is kept, so it recomputes
  // nothing; but Eq. 1 charges it in full, and no setting of a knob for Eq. 1 leads to it.
  const Candidate* TryOneSegment() {
    const VertexGraph& vertices = view_.problem.vertices;
    LowerSetSequence sequence{IdVector<NodeId, int32_t>(vertices.size()), 1};
    const CanonicalFigures figures = EvaluateCanonical(vertices, sequence.segment_of, 1);
    Candidate candidate;
    candidate.setting = kOneSegment;
    candidate.outcome.strategy = view_.OnNodes(std::move(sequence));
    candidate.schedule = view_.Lower(candidate.outcome.strategy);
    candidate.simulation = simulator_.Run(candidate.schedule).value();
    candidate.outcome.paper = {std::nullopt, figures.peak, figures.overhead};
    candidate.outcome.is_optimal = true;
    candidate.outcome.guarantee = "one segment fits the budget: nothing is recomputed";
    return &tried_.insert_or_assign(kOneSegment, std::move(candidate)).first->second;
  }
  static constexpr int64_t kOneSegment = -1;  // Stands before all settings.

  // Sets middle_ to a setting strictly between two others, unless they are as good as neighbours.
  bool HalveGap(int64_t low, int64_t high) {
    middle_ = low + (high - low) / 2;
    return middle_ > low && high - low > low / 1000;
  }

  // The middle between the best setting that fits and its neighbour that keeps more.
  bool HalveTowardsLessOverhead(const Candidate& best) {
    const auto at = tried_.find(best.setting);
    if (solver_.knob().kind == Knob::Kind::kSegmentBudget) {
      return at != tried_.begin() && HalveGap(std::prev(at)->first, best.setting);
    }
    return std::next(at) != tried_.end() && HalveGap(best.setting, std::next(at)->first);
  }

  const View& view_;
  PreparedSolver& solver_;
  const SolveLimits& limits_;
  Simulator simulator_;
  std::map<int64_t, Candidate> tried_;
  int64_t middle_ = 0;
};

std::string DescribeStep(const TensorGraph& graph, const Step& step) {
  if (step.kind == StepKind::kLoss) return "the loss";
  const char* verb = step.kind == StepKind::kForward ? "forward" : "backward";
  return fmt::format("{} of \"{}\"", verb, graph.node(step.node()).name);
}

// In the largest binary unit of which there is one.
std::string Binary(Bytes bytes) {
  constexpr std::array<std::string_view, 3> kUnits = {"KiB", "MiB", "GiB"};
  if (bytes < Bytes(1 << 10)) return fmt::format("{} B", bytes.count());
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes.count() >> (10 * (unit + 2)) > 0) ++unit;
  const auto whole = static_cast<double>(int64_t{1} << (10 * (unit + 1)));
  return fmt::format("{:.2f} {}", static_cast<double>(bytes.count()) / whole, kUnits[unit]);
}

Error Infeasible(const TensorGraph& graph, std::string_view algorithm, Bytes budget,
                 Bytes constants, const Candidate& least) {
  const Step& step = least.schedule.steps[least.simulation.peak_step];
  const Bytes needed = least.simulation.peak + constants;
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("infeasible: {} finds no plan within {} ({} bytes); the least it reaches is {} "
                  "({} bytes, needed at {}); try {} {}",
                  algorithm, Binary(budget + constants), (budget + constants).count(),
                  Binary(needed), needed.count(), DescribeStep(graph, step),
                  constants > Bytes(0) ? "--budget-total" : "--budget", needed.count()));
}

Bytes ConstantsOf(const TensorGraph& graph, Optimizer optimizer) {
  const ConstantMemory& constants = graph.constants();
  return TotalConstants(constants, OptimizerState(optimizer, constants.parameter_gradients));
}

// The budget on the simulated peak alone, in bytes.
Bytes ActivationBudget(const TensorGraph& graph, const PlannerRequest& request, Bytes constants) {
  if (request.budget.kind == BudgetRequest::Kind::kBytes) return request.budget.bytes - constants;
  std::vector<NodeId> order;
  for (const NodeId id : graph.nodes().ids()) order.push_back(id);
  const Bytes baseline = Simulator(graph).Run(KeepAllSchedule(order)).value().peak + constants;
  const double share = static_cast<double>(baseline.count()) * request.budget.percent / 100;
  return Bytes(static_cast<int64_t>(std::floor(share))) - constants;
}

Result<const Candidate*> SolveForPaperBudget(const SolverInfo& info, const Knob& knob,
                                             const PlannerRequest& request, KnobSearch* search) {
  if (knob.kind != Knob::Kind::kPaperBudget && knob.kind != Knob::Kind::kSegmentBudget) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{} has no budget of its own; --paper-budget is for algorithms "
                                 "whose paper has one, such as exact-dp; use --budget",
                                 info.name));
  }
  if (request.paper_budget.kind == BudgetRequest::Kind::kMin) return search->Try(knob.least);
  const Bytes budget = request.paper_budget.bytes;
  if (budget.count() < knob.least) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("infeasible: {} has no plan with --paper-budget {}; the least is "
                                 "{} bytes; try --paper-budget min",
                                 info.name, budget.count(), knob.least));
  }
  return search->Try(budget.count());
}

Result<const Candidate*> SolveForBudget(const TensorGraph& graph, const SolverInfo& info,
                                        const PlannerRequest& request, KnobSearch* search) {
  if (request.budget.kind == BudgetRequest::Kind::kMin) return search->LeastPeak();
  const Bytes constants =
      request.includes_constants ? ConstantsOf(graph, request.optimizer) : Bytes(0);
  const Bytes budget = ActivationBudget(graph, request, constants);
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* best, search->BestWithin(budget));
  if (best != nullptr) return best;
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* least, search->LeastPeak());
  if (least->simulation.peak <= budget) return least;
  return Infeasible(graph, info.name, budget, constants, *least);
}

void FillRequest(const TensorGraph& graph, const PlannerRequest& request, const Candidate& chosen,
                 PlanRequest* told) {
  told->algorithm = FindSolver(request.algorithm).value()->name;
  told->objective = request.objective;
  told->granularity = request.granularity;
  told->optimizer = request.optimizer;
  told->uses_liveness = request.uses_liveness;
  if (request.paper_budget.kind != BudgetRequest::Kind::kNone) {
    told->paper_budget = chosen.outcome.paper.budget;
  }
  switch (request.budget.kind) {
    case BudgetRequest::Kind::kNone:
      return;
    case BudgetRequest::Kind::kMin:
      told->budget = chosen.simulation.peak;
      return;
    case BudgetRequest::Kind::kBytes:
    case BudgetRequest::Kind::kPercent:
      break;
  }
  const Bytes constants =
      request.includes_constants ? ConstantsOf(graph, request.optimizer) : Bytes(0);
  told->budget = ActivationBudget(graph, request, constants);
}

}  // namespace

Result<Plan> MakePlan(const TensorGraph& graph, const PlannerRequest& request,
                      const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(const SolverInfo* info, FindSolver(request.algorithm));
  if (graph.nodes().empty()) {
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("\"{}\" has no node that makes an activation; there is nothing "
                                 "to plan",
                                 graph.name()));
  }
  if (request.objective == Objective::kMemory && !info->takes_objective) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("--objective memory is for exact-dp and approx-dp; {} has no "
                                 "memory-centric form",
                                 info->name));
  }
  const View view(graph, request);
  CKPLAN_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedSolver> solver,
                          info->prepare(view.problem, limits));
  KnobSearch search(view, solver.get(), limits);
  const Knob knob = solver->knob();
  const bool has_paper_budget = request.paper_budget.kind != BudgetRequest::Kind::kNone;
  const bool has_budget = request.budget.kind != BudgetRequest::Kind::kNone;
  if (has_paper_budget && has_budget) {
    return MakeError(ErrorCode::kUsage, "--budget and --paper-budget exclude each other");
  }
  CKPLAN_ASSIGN_OR_RETURN(const Candidate* chosen,
                          has_paper_budget ? SolveForPaperBudget(*info, knob, request, &search)
                          : has_budget     ? SolveForBudget(graph, *info, request, &search)
                                           : search.Try(knob.preset));

  Plan plan = AssemblePlan(graph, chosen->schedule, SegmentsOf(graph, chosen->outcome.strategy));
  FillRequest(graph, request, *chosen, &plan.request);
  plan.figures.paper = chosen->outcome.paper;
  plan.figures.guarantee = chosen->outcome.guarantee;
  // Optimal for the paper's own objective; a search for a simulated peak proves less than that.
  plan.figures.is_optimal =
      chosen->outcome.is_optimal && (!has_budget || chosen->simulation.overhead == Cost(0));
  if (plan.figures.overhead == Cost(0)) plan.figures.lower_bound_cost = Cost(0);
  plan.figures.optimizer_state =
      OptimizerState(request.optimizer, graph.constants().parameter_gradients);
  const std::vector<std::string> faults = CheckPlan(graph, plan);
  CKPLAN_CHECK(faults.empty(), faults.front());
  return plan;
}

}  // namespace ckplan
