#include "lib/planning/algorithms/best/offload_crossing.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// All pairs are tried at positions that part the order into this many, and the best pairs again at
// more of them.
constexpr int kCoarseParts = 8;
constexpr int kFineParts = 64;
constexpr size_t kFinePairs = 3;
constexpr size_t kMostCrossed = 12;

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

  // Takes the choice unless its sequence takes the same as another's.
  void Consider(const OffloadChoice& choice) {
    RunsAndLoads steps = ExpandChoice(problem_, choice);
    const OffloadMeasures measures = MeasureOffload(problem_, limits_, steps);
    const std::pair taken(measures.peak, measures.time);
    if (std::find(measured_.begin(), measured_.end(), taken) != measured_.end()) return;
    measured_.push_back(taken);
    steps_.push_back(std::move(steps));
    if (choices_.size() < kMostCrossed) choices_.push_back(choice);
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
      const int32_t maker = problem_.maker[At(value)];
      if (maker < 0 || position_[At(maker)] < position) continue;
      crossed.kept[At(value)] = second.kept[At(value)];
      crossed.loaded[At(value)] = second.loaded[At(value)];
    }
    return crossed;
  }

  const RunProblem& problem_;
  const OffloadLimits& limits_;
  int64_t work_;
  std::vector<int32_t> position_;  // Where each operation is in the order.
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

}  // namespace ckplan
