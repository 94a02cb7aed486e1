#include "lib/planning/algorithms/kusumoto/kusumoto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/kusumoto/lower_set_dp.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"
#include "lib/problem/schedule/canonical_strategy.h"

namespace ckplan {

namespace {

constexpr int64_t kMaxRoundedNodes = 10 * kMaxDpTime;

std::optional<LowerSetFamily> RoundFamily(const LowerSetFamily& family, const VertexGraph& vertices,
                                          int64_t unit) {
  if (unit == 1) return std::nullopt;
  return family.WithTimes(RoundTimes(vertices, unit));
}

double PercentOff(Cost overhead, Cost bound) {
  const auto a = static_cast<double>(overhead.count());
  const auto b = static_cast<double>(bound.count());
  return 100 * std::abs(a - b) / std::max(1.0, std::min(a, b));
}

}  // namespace

int64_t DpTimeUnit(const VertexGraph& vertices) {
  const int64_t total = vertices.total_time().count();
  if (total <= kMaxExactTime || static_cast<int64_t>(vertices.size()) > kMaxRoundedNodes) return 1;
  return (total + kMaxDpTime - 1) / kMaxDpTime;
}

VertexGraph RoundTimes(const VertexGraph& vertices, int64_t unit) {
  IdVector<NodeId, Cost> times;
  for (const NodeId v : vertices.ids()) {
    const int64_t time = vertices.time(v).count();
    const int64_t rounded = (time + unit / 2) / unit;
    times.push_back(Cost(time == 0 ? 0 : std::max<int64_t>(1, rounded)));
  }
  return vertices.WithTimes(std::move(times));
}

Result<std::unique_ptr<PreparedSolver>> CanonicalSolver::Prepare(const Problem& problem,
                                                                 LowerSetFamily family,
                                                                 Options options,
                                                                 const SolveLimits& limits) {
  std::unique_ptr<CanonicalSolver> solver(
      new CanonicalSolver(problem, std::move(family), std::move(options)));
  CKPLAN_ASSIGN_OR_RETURN(solver->min_budget_,
                          solver->dp_.MinBudget(solver->options_.known_budget,
                                                {limits.stop, solver->options_.max_transitions}));
  return std::unique_ptr<PreparedSolver>(std::move(solver));
}

CanonicalSolver::CanonicalSolver(const Problem& problem, LowerSetFamily family, Options options)
    : problem_(problem),
      options_(std::move(options)),
      time_unit_(DpTimeUnit(problem.vertices)),
      family_(std::move(family)),
      dp_(family_, RoundFamily(family_, problem.vertices, time_unit_), options_.state_limits) {}

Knob CanonicalSolver::knob() const {
  // With B = 2 M(V) every sequence is feasible, so this reaches the least overhead.
  const int64_t max_budget = std::max(min_budget_, 2 * problem_.vertices.total_memory()).count();
  // A call's time grows with the square of the number of sets.
  const int64_t grid_steps = family_.size() <= 300 ? 32 : 4;
  return {Knob::Kind::kPaperBudget, min_budget_.count(), max_budget, min_budget_.count(),
          grid_steps};
}

std::string CanonicalSolver::DescribeOptimum() const {
  return fmt::format("{} for Eq. 1 under Eq. 2 among {}",
                     options_.is_exact ? "optimal" : "heuristic: best", options_.class_name);
}

std::string CanonicalSolver::DescribeGap(Cost overhead, Cost bound) const {
  if (overhead == bound) return DescribeOptimum();
  return fmt::format(
      "{}for Eq. 1 under Eq. 2 within {:.2g}% of the best among {}: {}, which is at "
      "{} {}",
      options_.is_exact ? "" : "heuristic: ", PercentOff(overhead, bound), options_.class_name,
      overhead.count(), overhead > bound ? "least" : "most", bound.count());
}

Result<SolveOutcome> CanonicalSolver::Solve(int64_t setting, const SolveLimits& limits) {
  const Effort effort = limits.is_probe ? Effort::kFirst : Effort::kRefined;
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<LowerSetPath> path,
                          dp_.Solve(Bytes(setting), goal(), LimitsOf(limits), effort));
  if (!path) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no sequence of lower sets has a peak of {} bytes by Eq. 2; the "
                                 "minimum is {} bytes",
                                 setting, min_budget_.count()));
  }
  LowerSetSequence sequence;
  sequence.segment_of = SegmentsOfPath(family_, problem_.vertices, path->sets);
  sequence.segment_count = static_cast<int32_t>(path->sets.size());
  const CanonicalFigures figures =
      EvaluateCanonical(problem_.vertices, sequence.segment_of, sequence.segment_count);
  SolveOutcome outcome;
  outcome.strategy = std::move(sequence);
  outcome.paper = {Bytes(setting), figures.peak, figures.overhead};
  outcome.is_optimal = options_.is_exact && path->overhead == path->bound;
  outcome.guarantee = DescribeGap(path->overhead, path->bound);
  outcome.is_rough = time_unit_ > 1 && limits.is_probe;
  if (outcome.is_rough) {
    outcome.guarantee =
        fmt::format("{}; costs rounded to multiples of {}", DescribeOptimum(), time_unit_);
  }
  if (limits.stop.stop_requested() && path->overhead != path->bound) {
    outcome.guarantee.insert(0, kStoppedEarly);
  }
  return outcome;
}

Result<std::unique_ptr<PreparedSolver>> PrepareExactDp(const Problem& problem,
                                                       const SolveLimits& limits) {
  const VertexGraph& vertices = problem.vertices;
  const auto bytes_per_set = static_cast<int64_t>((vertices.size() + 63) / 64 * 8);
  const int64_t max_sets =
      std::min(kMaxLowerSets, kMaxLowerSetBytes / std::max<int64_t>(1, bytes_per_set));
  auto family = LowerSetFamily::All(vertices, max_sets, {limits.stop});
  if (!family.ok() && family.error().code == ErrorCode::kTimeout) return std::move(family).error();
  if (!family.ok()) {
    Error error = std::move(family).error();
    error.message = fmt::format("exact-dp: {}, its limit", error.message);
    error.remedy = {"use", {{"algorithm", "approx-dp"}}};
    return error;
  }
  CanonicalSolver::Options options;
  options.class_name = "canonical strategies over all lower sets";
  options.is_exact = true;
  options.max_transitions = kMaxTransitions;
  // Closures are lower sets, so their lowest budget is an upper bound of the one here.
  CKPLAN_ASSIGN_OR_RETURN(const LowerSetFamily closures,
                          LowerSetFamily::Closures(vertices, kMaxClosures, {limits.stop}));
  CKPLAN_ASSIGN_OR_RETURN(options.known_budget, LowerSetDp(closures).MinBudget({}, {limits.stop}));
  return CanonicalSolver::Prepare(problem, std::move(*family), std::move(options), limits);
}

namespace {

// Takes a tenth of a second; a proof for such a small class is not worth more.
constexpr int64_t kMaxRefinementSteps = 1'000'000;

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareApproxDp(const Problem& problem,
                                                        const SolveLimits& limits) {
  CKPLAN_ASSIGN_OR_RETURN(LowerSetFamily closures,
                          LowerSetFamily::Closures(problem.vertices, kMaxClosures, {limits.stop}));
  CanonicalSolver::Options options;
  options.class_name =
      closures.stride() == 1
          ? "canonical strategies over the closures of single nodes"
          : fmt::format("canonical strategies over the closures of one node in every {}",
                        closures.stride());
  options.state_limits.max_steps = kMaxRefinementSteps;
  return CanonicalSolver::Prepare(problem, std::move(closures), std::move(options), limits);
}

namespace {

class Exhaustive : public PreparedSolver {
 public:
  Exhaustive(const Problem& problem, LowerSetFamily family)
      : problem_(problem), family_(std::move(family)), last_(family_.size() - 1) {}

  // A search without a budget finds the lowest peak of any sequence, which is the lowest feasible
  // budget.
  Result<Done> FindMinBudget(const SolveLimits& limits) {
    Search search{Bytes::Max(), true, {}, {}, {}, Bytes::Max()};
    CKPLAN_RETURN_IF_ERROR(Extend(0, Bytes(0), Cost(0), Bytes(0), limits, &search));
    min_budget_ = search.min_peak;
    return Done{};
  }

  Knob knob() const override {
    const int64_t max_budget = std::max(min_budget_, 2 * problem_.vertices.total_memory()).count();
    return {Knob::Kind::kPaperBudget, min_budget_.count(), max_budget, min_budget_.count()};
  }

  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) override {
    Search search{Bytes(setting), problem_.objective == Objective::kTime, {}, {}, {}, Bytes::Max()};
    CKPLAN_RETURN_IF_ERROR(Extend(0, Bytes(0), Cost(0), Bytes(0), limits, &search));
    if (search.best.empty()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no sequence of lower sets has a peak of {} bytes by Eq. 2; the "
                                   "minimum is {} bytes",
                                   setting, min_budget_.count()));
    }
    LowerSetSequence sequence;
    sequence.segment_of = SegmentsOfPath(family_, problem_.vertices, search.best);
    sequence.segment_count = static_cast<int32_t>(search.best.size());
    const CanonicalFigures figures =
        EvaluateCanonical(problem_.vertices, sequence.segment_of, sequence.segment_count);
    SolveOutcome outcome;
    outcome.strategy = std::move(sequence);
    outcome.paper = {Bytes(setting), figures.peak, figures.overhead};
    outcome.is_optimal = true;
    outcome.guarantee =
        "optimal for Eq. 1 under Eq. 2 among canonical strategies over all lower sets";
    return outcome;
  }

 private:
  // Lower is better. Ties are broken as in exact-dp (lower_set_dp.h): the sequence that caches
  // less, then the one whose sets have lower numbers, last set first.
  struct Rank {
    int64_t key = 0;  // The overhead; negated when maximising.
    Bytes cached;
    auto operator<=>(const Rank&) const = default;
  };
  struct Search {
    Bytes budget;
    bool wants_min;
    std::vector<int32_t> sequence;  // The current branch.
    std::vector<int32_t> best;      // Empty at first.
    Rank best_rank;
    Bytes min_peak;
  };

  static bool IsBetter(const Search& search, const Rank& rank) {
    if (search.best.empty() || rank != search.best_rank) {
      return search.best.empty() || rank < search.best_rank;
    }
    return std::lexicographical_compare(search.sequence.rbegin(), search.sequence.rend(),
                                        search.best.rbegin(), search.best.rend());
  }

  // Tries every lower set that can follow `top`.
  Result<Done> Extend(int32_t top, Bytes cached, Cost overhead, Bytes peak,
                      const SolveLimits& limits, Search* search) {
    PollStop(last_ - top + 1);
    if (limits.stop.stop_requested()) return MakeError(ErrorCode::kTimeout, "stopped");
    if (top == last_) {
      search->min_peak = std::min(search->min_peak, peak);
      const Rank rank{search->wants_min ? overhead.count() : -overhead.count(), cached};
      if (IsBetter(*search, rank)) {
        search->best = search->sequence;
        search->best_rank = rank;
      }
      return Done{};
    }
    for (int32_t next = top + 1; next <= last_; ++next) {
      if (!IsSubset(top, next)) continue;
      const LowerSetFamily::Facts& from = family_.facts(top);
      const LowerSetFamily::Facts& to = family_.facts(next);
      const Bytes needed = cached + 2 * (to.memory - from.memory) + to.neighbours;
      if (needed > search->budget) continue;
      const LowerSetFamily::Overlap shared = family_.BoundaryWithin(next, top);
      search->sequence.push_back(next);
      CKPLAN_RETURN_IF_ERROR(
          Extend(next, cached + to.boundary_memory - shared.memory,
                 overhead + to.time - from.time - (to.boundary_time - shared.time),
                 std::max(peak, needed), limits, search));
      search->sequence.pop_back();
    }
    return Done{};
  }

  bool IsSubset(int32_t smaller, int32_t larger) const {
    bool is_subset = true;
    family_.ForEachMember(smaller, [&](NodeId v) { is_subset &= family_.contains(larger, v); });
    return is_subset;
  }

  const Problem& problem_;
  LowerSetFamily family_;
  const int32_t last_;
  Bytes min_budget_;
};

}  // namespace

Result<std::unique_ptr<PreparedSolver>> PrepareKusumotoExhaustive(const Problem& problem,
                                                                  const SolveLimits& limits) {
  auto family = LowerSetFamily::All(problem.vertices, kMaxExhaustiveLowerSets, {limits.stop});
  if (!family.ok() && family.error().code == ErrorCode::kTimeout) return std::move(family).error();
  if (!family.ok()) {
    Error error = std::move(family).error();
    error.message =
        fmt::format("kusumoto-exhaustive: {}; exact-dp finds the same optimum", error.message);
    return error;
  }
  auto solver = std::make_unique<Exhaustive>(problem, std::move(*family));
  CKPLAN_RETURN_IF_ERROR(solver->FindMinBudget(limits));
  return std::unique_ptr<PreparedSolver>(std::move(solver));
}

}  // namespace ckplan
