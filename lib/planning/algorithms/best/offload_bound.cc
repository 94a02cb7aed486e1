#include "lib/planning/algorithms/best/offload_bound.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/planning/algorithms/best/certificates.h"
#include "lib/planning/algorithms/best/moment_program.h"
#include "lib/planning/algorithms/best/offload_cut.h"
#include "lib/planning/mip/mip.h"

namespace ckplan {
namespace {

// Programs with new windows that are solved at most.
constexpr int kMostPrograms = 8;

class OffloadBounding {
 public:
  OffloadBounding(const RunProblem& problem, const CopyTimes& times, std::span<const OpId> order,
                  size_t moment, int64_t budget, const OffloadBoundLimits& limits)
      : problem_(problem),
        times_(times),
        order_(order),
        moment_(moment),
        budget_(budget),
        limits_(limits) {}

  Result<OffloadBound> Run() && {
    const int64_t least = LeastPeakWithCopies(problem_, times_.may_move).first;
    RaisePeak(least, PeakProof::kWorkingSet, BoundScope::kAnyOrder);
    OffloadCut cut = CutWithOffload(problem_, times_, order_, moment_, budget_, limits_.cuts);
    if (!cut.is_feasible) {
      RaisePeak(budget_ + cut.missing_bytes, PeakProof::kMoments, BoundScope::kOwnOrder);
    }
    if (bound_.is_infeasible) return std::move(bound_);
    Raise(cut.added_cost, OverheadProof::kOneCut);
    if (cut.added_cost > 0 && limits_.work > 0 && HasMipSolver()) {
      CKPLAN_RETURN_IF_ERROR(SolvePrograms(cut.windows));
    }
    std::reverse(bound_.choices.begin(), bound_.choices.end());
    std::move(cut.choices.begin(), cut.choices.end(), std::back_inserter(bound_.choices));
    return std::move(bound_);
  }

 private:
  void RaisePeak(int64_t bytes, PeakProof proof, BoundScope scope) {
    if (Bytes(bytes) <= bound_.least_peak.bytes) return;
    bound_.least_peak = {Bytes(bytes), proof, scope};
    bound_.is_infeasible = bytes > budget_;
  }

  void Raise(int64_t bound, OverheadProof proof) {
    if (bound <= bound_.lower_bound) return;
    bound_.lower_bound = bound;
    bound_.proof = proof;
  }

  Result<Done> SolvePrograms(const std::vector<CopyWindow>& windows) {
    const auto moment = static_cast<int32_t>(moment_);
    ChargedSteps charged{{moment}, {}, {}};
    for (const CopyWindow& window : windows) charged.windows.push_back({moment, window});
    for (int round = 0; round < kMostPrograms && bound_.work < limits_.work; ++round) {
      ProgramLimits<MomentPlan> limits{limits_.work - bound_.work};
      limits.is_plan_enough = [&](const MomentPlan& plan) {
        bound_.choices.push_back(
            {{order_.begin(), order_.end()}, moment_, plan.kept[0], plan.loaded[0]});
        return false;
      };
      CKPLAN_ASSIGN_OR_RETURN(const MomentOutcome solved,
                              SolveMoments(problem_, order_, charged, budget_, limits, &times_));
      bound_.work += solved.work;
      if (solved.is_infeasible) {
        RaisePeak(budget_ + 1, PeakProof::kMoments, BoundScope::kOwnOrder);
        return Done{};
      }
      Raise(solved.lower_bound, OverheadProof::kMoments);
      if (!solved.plan || !AddNew(solved.plan->exceeded, &charged.windows)) return Done{};
    }
    return Done{};
  }

  // Returns whether any of the windows is new.
  static bool AddNew(const std::vector<ChargedWindow>& found, std::vector<ChargedWindow>* windows) {
    bool is_any_new = false;
    for (const ChargedWindow& window : found) {
      if (std::find(windows->begin(), windows->end(), window) != windows->end()) continue;
      windows->push_back(window);
      is_any_new = true;
    }
    return is_any_new;
  }

  const RunProblem& problem_;
  const CopyTimes& times_;
  const std::span<const OpId> order_;
  const size_t moment_;
  const int64_t budget_;
  const OffloadBoundLimits& limits_;
  OffloadBound bound_;
};

}  // namespace

Result<OffloadBound> ProveOffloadBound(const RunProblem& problem, const CopyTimes& times,
                                       std::span<const OpId> order, size_t moment, int64_t budget,
                                       const OffloadBoundLimits& limits) {
  return OffloadBounding(problem, times, order, moment, budget, limits).Run();
}

}  // namespace ckplan
