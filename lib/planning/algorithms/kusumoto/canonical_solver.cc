#include "lib/planning/algorithms/kusumoto/canonical_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/problem/schedule/canonical_figures.h"

namespace ckplan {
namespace {

constexpr int64_t kMaxRoundedNodes = 10 * kMaxDpTime;

std::optional<LowerSetFamily> Rounded(const LowerSetFamily& family, const VertexGraph& vertices,
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
      dp_(family_, Rounded(family_, problem.vertices, time_unit_), options_.state_limits) {}

Knob CanonicalSolver::knob() const {
  // With B = 2 M(V) every sequence is feasible, so the least overhead is reached.
  const int64_t max_budget = std::max(min_budget_, 2 * problem_.vertices.total_memory()).count();
  // The time of a call grows with the square of the number of sets.
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
                                 "least is {} bytes",
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

}  // namespace ckplan
