#include "lib/planning/algorithms/best/offload_search.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

namespace {

// All pairs are tried at positions that divide the order into this many parts, and the best pairs
// again at more positions.
constexpr int kCoarseParts = 8;
constexpr int kFineParts = 64;
constexpr size_t kFinePairs = 3;
constexpr size_t kMaxCrossed = 12;

class Crossing {
 public:
  Crossing(const RunProblem& problem, const OffloadLimits& limits,
           const std::vector<OffloadChoice>& choices, int64_t work)
      : problem_(problem), limits_(limits), work_(work), position_(At(problem.op_count), 0) {
    for (const OffloadChoice& choice : choices) Consider(choice);
    if (choices.empty()) return;
    const std::vector<OpId>& order = choices.front().order;
    for (size_t i = 0; i < order.size(); ++i) {
      position_[At(order[i].index())] = static_cast<int32_t>(i);
    }
    moment_ = static_cast<int32_t>(choices.front().moment);
  }

  std::vector<RunsAndLoads> Run() && {
    std::vector<Pair> pairs;
    for (size_t a = 0; a < choices_.size(); ++a) {
      for (size_t b = 0; b < choices_.size(); ++b) {
        if (a == b || work_ <= 0) continue;
        pairs.push_back(BestOf(a, b, kCoarseParts));
      }
    }
    std::sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
      return std::tuple(x.score, x.first, x.second) < std::tuple(y.score, y.first, y.second);
    });
    pairs.resize(std::min(pairs.size(), kFinePairs));
    for (const Pair& pair : pairs) {
      steps_.push_back(pair.steps);
      if (work_ > 0) steps_.push_back(BestOf(pair.first, pair.second, kFineParts).steps);
    }
    return std::move(steps_);
  }

 private:
  struct Pair {
    size_t first = 0;
    size_t second = 0;
    double score = 0;
    RunsAndLoads steps;
  };

  // Takes the choice unless its sequence has the same measures as another one's.
  void Consider(const OffloadChoice& choice) {
    RunsAndLoads steps = ExpandChoice(problem_, choice);
    const OffloadMeasures measures = MeasureOffload(problem_, limits_, steps);
    const std::pair key(measures.peak, measures.time);
    if (std::find(measured_.begin(), measured_.end(), key) != measured_.end()) return;
    measured_.push_back(key);
    steps_.push_back(std::move(steps));
    if (choices_.size() < kMaxCrossed) choices_.push_back(choice);
  }

  Pair BestOf(size_t first, size_t second, int parts) {
    Pair best{first, second};
    for (int part = 1; part < parts; ++part) {
      PollStop();
      RunsAndLoads steps =
          ExpandChoice(problem_, Cross(choices_[first], choices_[second], moment_ * part / parts));
      work_ -= static_cast<int64_t>(steps.size());
      const double score = MeasureOffload(problem_, limits_, steps).score;
      if (!best.steps.empty() && score >= best.score) continue;
      best.score = score;
      best.steps = std::move(steps);
    }
    return best;
  }

  OffloadChoice Cross(const OffloadChoice& first, const OffloadChoice& second,
                      int32_t position) const {
    OffloadChoice crossed = first;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const int32_t producer = problem_.producer[At(value)];
      if (producer < 0 || position_[At(producer)] < position) continue;
      crossed.kept[At(value)] = second.kept[At(value)];
      crossed.loaded[At(value)] = second.loaded[At(value)];
    }
    return crossed;
  }

  const RunProblem& problem_;
  const OffloadLimits& limits_;
  int64_t work_;
  std::vector<int32_t> position_;  // By operation: its position in the order.
  int32_t moment_ = 0;
  std::vector<OffloadChoice> choices_;
  std::vector<std::pair<int64_t, int64_t>> measured_;
  std::vector<RunsAndLoads> steps_;
};

}  // namespace

OffloadMeasures MeasureOffload(const RunProblem& problem, const OffloadLimits& limits,
                               const RunsAndLoads& steps) {
  const CopyTask task = CopyTaskOf(problem, steps);
  const int64_t peak = PeakOf(task);
  CopyScheduler scheduler(limits.link);
  const CopyPlan& plan = scheduler.Run(task, std::max(limits.budget, peak));
  const auto charge = [&](int64_t bytes, int64_t budget) {
    return static_cast<double>(problem.total_cost) *
           static_cast<double>(std::max<int64_t>(bytes - budget, 0)) /
           static_cast<double>(std::max<int64_t>(budget, 1));
  };
  const double excess = charge(peak, limits.budget) +
                        (limits.host_budget ? charge(plan.host_peak, *limits.host_budget) : 0);
  return {peak, plan.end, excess == 0, static_cast<double>(plan.end) + excess};
}

std::vector<RunsAndLoads> CrossChoices(const RunProblem& problem, const OffloadLimits& limits,
                                       const std::vector<OffloadChoice>& choices, int64_t work) {
  return Crossing(problem, limits, choices, work).Run();
}

namespace {

// Temperatures of consecutive chains, relative to the added time.
constexpr std::array kChainTemperatures = {2e-3, 1e-3, 5e-3, 5e-4};
// A start that exceeds the bound by more than this fraction of a step is far from the best plans.
// Its chain starts kFarHeat times hotter, in proportion to that distance.
constexpr double kFarFromBound = 0.05;
constexpr double kFarHeat = 25;
// If no plan known before annealing fits the device, plans that fit are far apart. Chains then
// cross the budget in both directions, and more chains, all hot, follow the first round. If a
// search is still above the bound by more than this part of a step, plans may be far apart as well,
// and the second half of these chains does the same.
constexpr double kHotTemperature = 0.05;
constexpr int kTightRounds = 3;
constexpr double kStillFar = 0.01;
// Chains after the first round start from this many of the best plans.
constexpr size_t kBestPlans = 2;
// The last chain, from the best plan of this search and an earlier one, does this part of the work
// on top.
constexpr int64_t kLastParts = 8;
// In many plans, copies back can have extra time for free. Then they wait less if the link is
// slower than planned. The same holds for values that stay until a slower link has copied them.
constexpr std::array<int64_t, 5> kLeadPercents = {100, 118, 135, 160, 200};
constexpr int64_t kSlowLinkPercent = 85;
constexpr std::array<int64_t, 2> kPlannedLinkPercents = {100, kSlowLinkPercent};
// Work is scaled between these two numbers of operations, and constant outside them.
constexpr int32_t kFewMovedOps = 400;
constexpr int32_t kManyMovedOps = 6'000;

struct PooledPlan {
  RunsAndLoads steps;
  bool fits = false;
  bool fits_device = false;  // Fits the device, if not the host.
  double score = 0;          // Time, with a charge for memory above the budget.
};

RunsAndLoads StepsOf(const RunProblem& problem, const Schedule& schedule) {
  RunsAndLoads steps;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kRun) steps.push_back(step.index);
    if (step.kind == StepKind::kIn) steps.push_back(LoadOf(problem, step.index));
  }
  return steps;
}

class OffloadSearcher {
 public:
  OffloadSearcher(const JointGraph& graph, const JointGraph& strict, const RunProblem& problem,
                  const OffloadLimits& limits, const OffloadSearchOptions& options)
      : graph_(graph),
        problem_(problem),
        limits_(limits),
        options_(options),
        enough_(problem.total_cost + options.enough),
        simulator_(TrainingStep(graph).WithLink(&limits_.link)),
        strict_simulator_(TrainingStep(strict).WithLink(&limits_.link)),
        has_aliases_(std::any_of(graph.values().begin(), graph.values().end(),
                                 [](const Value& value) { return !value.alias_of.is_none(); })) {}

  // After a stop, returns the best so far; always considers the starts.
  OffloadFound Run() && {
    {
      const StopsSuspended no_stops;
      for (const Schedule& start : options_.starts) {
        Add(StepsOf(problem_, start));
        Consider(start);
      }
      for (const Schedule& found : options_.found) Consider(found);
    }
    try {
      Search();
    } catch (const Stopped&) {
      // Offer what was found so far.
    }
    const StopsSuspended no_stops;
    OfferPool();
    return std::move(found_);
  }

 private:
  void Search() {
    const int64_t work = options_.work.crossed_per_op * problem_.op_count;
    for (RunsAndLoads& steps : CrossChoices(problem_, limits_, options_.choices, work)) {
      if (Satisfies(steps)) Add(std::move(steps));
    }
    Anneal();
  }

  void OfferPool() {
    const auto once = static_cast<double>(problem_.total_cost);
    for (const PooledPlan& candidate : pool_) {
      const double added = candidate.score - once;
      if (found_.best && static_cast<double>(found_.best->overhead) < added) break;
      Offer(candidate);
    }
  }

  bool Satisfies(const RunsAndLoads& steps) const {
    if (limits_.rules == nullptr) return true;
    return ckplan::Satisfies(*limits_.rules, RunsIn(problem_, steps));
  }

  // Adds a plan to the pool, which is sorted by score.
  void Add(RunsAndLoads steps) {
    const OffloadMeasures measures = MeasureOffload(problem_, limits_, steps);
    PooledPlan candidate{std::move(steps), measures.fits, measures.peak <= limits_.budget,
                         measures.score};
    const auto is_before = [](const PooledPlan& a, const PooledPlan& b) {
      return std::tuple(a.score, !a.fits, a.steps) < std::tuple(b.score, !b.fits, b.steps);
    };
    const auto at = std::lower_bound(pool_.begin(), pool_.end(), candidate, is_before);
    if (at != pool_.end() && at->steps == candidate.steps) return;
    pool_.insert(at, std::move(candidate));
  }

  bool IsDone() const {
    if (found_.best && found_.best->overhead <= options_.enough) return true;
    return std::any_of(pool_.begin(), pool_.end(), [&](const PooledPlan& candidate) {
      return candidate.fits && candidate.score <= static_cast<double>(enough_);
    });
  }

  void Anneal() {
    OffloadWork work = options_.work;
    if (work.steps_per_op == 0 || pool_.empty()) return;
    is_tight_ = std::none_of(pool_.begin(), pool_.end(),
                             [](const PooledPlan& candidate) { return candidate.fits_device; });
    if (is_tight_ && work.rounds > 0) work.rounds = std::max(work.rounds, kTightRounds);
    const int64_t all =
        work.steps_per_op * std::clamp(problem_.op_count, kFewMovedOps, kManyMovedOps);
    const std::vector<PooledPlan> starts = FirstStarts();
    // Half of the work shows which start is best, and the other half continues from there.
    const int64_t first = work.rounds == 0 ? all : all / 2;
    for (const PooledPlan& start : starts) {
      AnnealFrom(start, FirstTemperature(start.score), is_tight_,
                 first / static_cast<int64_t>(starts.size()));
    }
    for (int round = 0; round < work.rounds; ++round) {
      const bool is_late = round > 0 && 2 * round >= work.rounds;
      AnnealFurther(static_cast<size_t>(round) % kBestPlans, is_late, (all - first) / work.rounds);
    }
    if (options_.found.empty()) return;
    for (const Schedule& found : options_.found) Add(StepsOf(problem_, found));
    AnnealFurther(0, /*is_late=*/true, all / kLastParts);
  }

  // Anneals from one of the best plans so far.
  void AnnealFurther(size_t turn, bool is_late, int64_t work) {
    const PooledPlan start = pool_[std::min(turn, pool_.size() - 1)];
    const double above = pool_.front().score - static_cast<double>(enough_);
    const bool is_far = above > kStillFar * static_cast<double>(problem_.total_cost);
    const bool is_hot = is_tight_ || (is_late && is_far);
    AnnealFrom(start, is_hot ? kHotTemperature : FirstTemperature(start.score), is_hot, work);
  }

  // The best plan that fits, the best that doesn't, then the best of the rest.
  std::vector<PooledPlan> FirstStarts() const {
    std::vector<const PooledPlan*> sorted;
    const auto take_first = [&](bool fits) {
      const auto first = std::find_if(pool_.begin(), pool_.end(), [&](const PooledPlan& candidate) {
        return candidate.fits == fits;
      });
      if (first != pool_.end()) sorted.push_back(&*first);
    };
    take_first(true);
    take_first(false);
    for (const PooledPlan& candidate : pool_) {
      if (std::find(sorted.begin(), sorted.end(), &candidate) == sorted.end()) {
        sorted.push_back(&candidate);
      }
    }
    sorted.resize(std::min(sorted.size(), static_cast<size_t>(options_.work.starts)));
    std::vector<PooledPlan> starts;
    for (const PooledPlan* candidate : sorted) starts.push_back(*candidate);
    return starts;
  }

  // Returns the start temperature of the next chain, relative to the time that its start adds.
  double FirstTemperature(double score) const {
    const double temperature = kChainTemperatures[chains_ % kChainTemperatures.size()];
    const auto once = static_cast<double>(problem_.total_cost);
    const double above = score - static_cast<double>(enough_);
    if (above <= kFarFromBound * once) return temperature;
    return temperature * std::max(1.0, kFarHeat * above / (score - once));
  }

  void AnnealFrom(const PooledPlan& start, double temperature, bool follows_budget, int64_t work) {
    if (IsDone()) return;
    OffloadAnnealOptions options;
    options.work = work;
    options.enough = enough_;
    options.seed = static_cast<uint64_t>(chains_);
    options.start_temperature = temperature;
    options.follows_budget = follows_budget;
    ++chains_;
    Add(AnnealOffload(problem_, limits_, start.steps, options).steps);
  }

  // Schedules the candidate in several ways, and takes the best.
  void Offer(const PooledPlan& candidate) {
    const CopyTask task = CopyTaskOf(problem_, candidate.steps);
    for (const int64_t percent : kPlannedLinkPercents) {
      for (const int64_t lead : kLeadPercents) {
        CopyScheduler scheduler(limits_.link.AtPercent(percent), lead);
        const CopyPlan& copies = scheduler.Run(task, std::max(limits_.budget, PeakOf(task)));
        const Schedule plain = ScheduleWithCopies(problem_, candidate.steps, copies);
        for (const Schedule& schedule : Variants(plain)) Consider(schedule);
      }
    }
  }

  // Takes the schedule if it is the best. Ties go to a schedule whose peak is the same if aliases
  // hold their memory, then to the one that is fastest with a slower link.
  void Consider(const Schedule& schedule) {
    const Simulation measured = simulator_.Run(schedule).value();
    const OffloadPlan plan{schedule, measured.overhead.count(), measured.peak.count()};
    if (!IsWithin(measured)) {
      if (!found_.nearest || plan.peak < found_.nearest->peak) found_.nearest = plan;
      return;
    }
    if (found_.best && found_.best->overhead < plan.overhead) return;
    const std::tuple rank(plan.overhead, ExceedsStrictly(schedule, plan.peak), SlowTime(schedule));
    if (found_.best && best_rank_ <= rank) return;
    best_rank_ = rank;
    found_.best = plan;
  }

  // As it is, a schedule may recompute memory that an alias still holds.
  std::vector<Schedule> Variants(const Schedule& schedule) const {
    if (!has_aliases_) return {schedule};
    return {RerunAliases(graph_, schedule), schedule};
  }

  bool IsWithin(const Simulation& measured) const {
    return measured.peak.count() <= limits_.budget &&
           (!limits_.host_budget || measured.host_peak.count() <= *limits_.host_budget);
  }

  bool ExceedsStrictly(const Schedule& schedule, int64_t peak) {
    return has_aliases_ && strict_simulator_.Run(schedule).value().peak.count() > peak;
  }

  int64_t SlowTime(const Schedule& schedule) const {
    const Link slow = limits_.link.AtPercent(kSlowLinkPercent);
    return TransfersOver(slow, TrainingStep(graph_).WithLink(&limits_.link), schedule)
        .makespan.count();
  }

  const JointGraph& graph_;
  const RunProblem& problem_;
  const OffloadLimits& limits_;
  const OffloadSearchOptions& options_;
  const int64_t enough_;
  Simulator simulator_;
  Simulator strict_simulator_;
  const bool has_aliases_;
  std::vector<PooledPlan> pool_;
  bool is_tight_ = false;  // No plan known before annealing fits the device.
  size_t chains_ = 0;
  OffloadFound found_;
  std::tuple<int64_t, bool, int64_t> best_rank_;  // Lower is better.
};

}  // namespace

OffloadFound SearchOffload(const JointGraph& graph, const JointGraph& strict,
                           const RunProblem& problem, const OffloadLimits& limits,
                           const OffloadSearchOptions& options) {
  return OffloadSearcher(graph, strict, problem, limits, options).Run();
}

}  // namespace ckplan
