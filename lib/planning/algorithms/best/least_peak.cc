#include "lib/planning/algorithms/best/least_peak.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lib/planning/algorithms/best/curve/trade_off_curve.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr int kMaxTrials = 11;

// Where plans may add no more than one part in so many of a step, programs over moments are quick,
// and the curve, with few reruns to choose from, leaves larger gaps.
constexpr int64_t kLittleParts = 20;

// LowerPeakWithin ends after so many searches, or at one part in so many of the largest peak.
constexpr int kMaxLowerings = 4;
constexpr int64_t kNearPeaks = 256;

// Returns the work of the programs in all trials. A tiny graph is mostly settled in a few
// milliseconds, but otherwise each trial would use all of its work.
int64_t WorkOfAllPrograms(const BestWork& work, int32_t op_count) {
  const int64_t ops = std::min<int64_t>(op_count, work.full_ops);
  return std::max(work.programs, kMaxTrials * work.programs / work.full_ops * ops);
}

}  // namespace

Result<LeastPeak> FindLeastPeak(BestProblem* problem, BestOptions options, int64_t reached) {
  Simulator simulator(problem->graph());
  LeastPeak least;
  least.bound.bytes = Bytes(problem->certificates().least_peak_any_plan);
  options.enough = std::numeric_limits<int64_t>::max() / 2;  // Any plan that fits is good enough.
  int64_t left = WorkOfAllPrograms(options.work, problem->flat().op_count);
  int64_t refused = least.bound.bytes.count() - 1;
  for (int trial = 0; trial < kMaxTrials && refused + 1 < reached; ++trial) {
    options.budget = trial == 0 ? refused + 1 : refused + (reached - refused) / 2;
    options.work.programs = std::clamp<int64_t>(left, 0, options.work.programs);
    CKPLAN_ASSIGN_OR_RETURN(BestOutcome tried, SolveBest(problem, options));
    left -= tried.program_work;
    if (tried.runs) {
      reached = simulator.Run(*tried.runs).value().peak.count();
      least.runs = std::move(tried.runs);
      options.starts = {*least.runs};
    } else {
      // The proof holds for all plans that the search looks for.
      refused = std::max(options.budget, tried.least_peak.bytes.count() - 1);
    }
    if (tried.least_peak.bytes > least.bound.bytes) least.bound = tried.least_peak;
  }
  return least;
}

Result<Done> LowerPeakWithin(int64_t most_added, BestProblem* problem) {
  const RunProblem& flat = problem->flat();
  const bool is_little = most_added <= flat.total_cost / kLittleParts;
  if (flat.op_count > (is_little ? kMaxProgramOps : kFewProgramOps)) return Done{};
  TradeOffCurve* const curve = problem->curve();
  BestOptions options;
  options.work = kGlanceWork;
  options.is_order_free = false;
  options.enough = std::max(most_added, curve->Fastest().overhead);
  int64_t refused = curve->LeastPeakWithin(*options.enough) - 1;
  for (int trial = 0; trial < kMaxLowerings; ++trial) {
    const int64_t reached = curve->LeastWithin(*options.enough).peak;
    if (reached - refused <= std::max<int64_t>(curve->Fastest().peak / kNearPeaks, 1)) break;
    options.budget = refused + (reached - refused) / 2;
    CKPLAN_ASSIGN_OR_RETURN(const BestOutcome tried, SolveBest(problem, options));
    if (tried.runs && tried.overhead <= *options.enough) continue;
    refused = std::max(options.budget, tried.least_peak.bytes.count() - 1);
  }
  return Done{};
}

}  // namespace ckplan
