#include "lib/planning/explain/explain_tensor.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/planning/explain/what_if.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

class TensorExplainer {
 public:
  TensorExplainer(const TracedPlan& traced, TensorId tensor, int64_t* work)
      : traced_(traced), graph_(traced.graph), work_(*work) {
    found_.tensor = graph_.StorageOf(tensor);
  }

  TensorExplanation Explain() && {
    ListStays();
    found_.reason = ReasonOf();
    return std::move(found_);
  }

 private:
  NodeId producer() const { return graph_.ProducerOf(found_.tensor); }
  int32_t peak_step() const { return static_cast<int32_t>(traced_.timeline.peak_step); }

  // Lists one stay per version of the storage itself; versions of its aliases extend it.
  void ListStays() {
    for (const int32_t v : traced_.versions_in[found_.tensor]) {
      const Version& version = traced_.version(v);
      const auto index = static_cast<size_t>(v);
      if (version.tensor == found_.tensor) {
        found_.stays.push_back(
            {traced_.kinds[index], version.made_at, traced_.until[index], {}, false, v});
      }
      // An alias may outlive the next version of its base.
      const auto stay = std::find_if(
          found_.stays.rbegin(), found_.stays.rend(),
          [&](const Stay& s) { return traced_.version(s.version).buffer == version.buffer; });
      if (stay == found_.stays.rend()) continue;
      const std::vector<int32_t>& reads = traced_.reads[index];
      stay->reads.insert(stay->reads.end(), reads.begin(), reads.end());
      stay->until = std::max(stay->until, traced_.until[index]);
    }
    for (Stay& stay : found_.stays) {
      std::sort(stay.reads.begin(), stay.reads.end());
      stay.reads.erase(std::unique(stay.reads.begin(), stay.reads.end()), stay.reads.end());
      stay.is_at_peak = stay.since <= peak_step() && peak_step() <= stay.until;
    }
  }

  void FindGap() {
    for (size_t i = 0; i < found_.stays.size(); ++i) {
      int32_t last = found_.stays[i].since;
      for (const int32_t read : found_.stays[i].reads) {
        const TensorExplanation::Gap gap{i, last, read, last < peak_step() && peak_step() < read};
        last = read;
        if (gap.to - gap.from > 1 && IsBetter(gap)) found_.gap = gap;
      }
    }
  }

  bool IsBetter(const TensorExplanation::Gap& gap) const {
    if (!found_.gap) return true;
    if (gap.is_at_peak != found_.gap->is_at_peak) return gap.is_at_peak;
    return gap.to - gap.from > found_.gap->to - found_.gap->from;
  }

  // Returns nullopt if the change breaks a rule of transfers.
  std::optional<Simulation> Measure(const Schedule& schedule) {
    work_ -= static_cast<int64_t>(schedule.steps.size());
    const Result<Simulation> measured = Simulator(graph_).Run(schedule);
    if (!measured.ok() && HasTransfers(traced_.plan.schedule)) return std::nullopt;
    CKPLAN_CHECK(measured.ok(), "a plan with one changed decision is valid");
    return *measured;
  }

  void ListCopies() {
    if (!HasTransfers(traced_.plan.schedule)) return;
    for (const LinkCopy& copy : TransfersOf(graph_, traced_.plan.schedule).copies) {
      if (copy.value == found_.tensor) found_.copies.push_back(copy);
    }
  }

  Reason ReasonToMove() {
    for (const LinkCopy& copy : found_.copies) {
      if (copy.way == CopyWay::kIn && !found_.again_at) found_.again_at = copy.step;
    }
    found_.if_kept = Measure(LeaveOnDevice(traced_, found_.tensor));
    return Reason::kMoved;
  }

  Reason ReasonOf() {
    if (!graph_.CountsInPeak(found_.tensor)) return Reason::kGiven;
    if (found_.stays.empty()) return Reason::kNeverMade;
    if (graph_.BytesOf(found_.tensor) == Bytes(0)) return Reason::kEmpty;
    FindGap();
    if (traced_.plan.schedule.frees != FreePolicy::kLiveness || work_ <= 0) {
      return Reason::kNotMeasured;
    }
    PollStop();
    ListCopies();
    if (!found_.copies.empty()) return ReasonToMove();
    if (found_.stays.size() > 1) {
      const Stay& return_stay = found_.stays[1];
      found_.again_at = return_stay.since;
      found_.if_kept = Measure(KeepInstead(traced_, return_stay.version));
    }
    bool may_be_freed = true;
    if (found_.gap) {
      const Stay& stay = found_.stays[found_.gap->stay];
      const auto schedule = ReleaseAfter(traced_, stay.version, found_.gap->from);
      may_be_freed = schedule.has_value();
      if (schedule) found_.if_freed = Measure(*schedule);
    }
    if (found_.if_kept) return ReasonToRecompute();
    if (found_.again_at || (may_be_freed && found_.gap && !found_.if_freed)) {
      return Reason::kNotMeasured;
    }
    if (!found_.gap) return Reason::kUsedAtOnce;
    if (traced_.constraints && traced_.constraints->is_kept[producer()]) return Reason::kToBeKept;
    if (traced_.constraints && traced_.constraints->runs_once[producer()])
      return Reason::kToRunOnce;
    return may_be_freed ? ReasonToKeep() : Reason::kMustNotRepeat;
  }

  Reason ReasonToRecompute() const {
    if (traced_.constraints && traced_.constraints->is_recomputed[producer()]) {
      return Reason::kToBeRecomputed;
    }
    const std::optional<Bytes> budget = traced_.plan.request.budget.in_bytes();
    const Bytes allowed = budget.value_or(traced_.plan.figures.peak);
    if (found_.if_kept->peak <= allowed) return Reason::kAffordable;
    return budget ? Reason::kOverBudget : Reason::kHigherPeak;
  }

  Reason ReasonToKeep() const {
    const Bytes peak = traced_.plan.figures.peak;
    if (found_.if_freed->peak == peak) return Reason::kElsewhere;
    if (found_.if_freed->peak > peak) return Reason::kRaisesPeak;
    return traced_.plan.request.budget.in_bytes() ? Reason::kInBudget : Reason::kTraded;
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  int64_t& work_;
  TensorExplanation found_;
};

}  // namespace

std::string_view NameOf(Reason reason) {
  switch (reason) {
    case Reason::kGiven:
      return "given";
    case Reason::kEmpty:
      return "empty";
    case Reason::kNeverMade:
      return "never-made";
    case Reason::kUsedAtOnce:
      return "used-at-once";
    case Reason::kMustNotRepeat:
      return "must-not-repeat";
    case Reason::kToBeKept:
      return "to-be-kept";
    case Reason::kToRunOnce:
      return "to-run-once";
    case Reason::kToBeRecomputed:
      return "to-be-recomputed";
    case Reason::kNotMeasured:
      return "not-measured";
    case Reason::kElsewhere:
      return "peak-elsewhere";
    case Reason::kRaisesPeak:
      return "raises-peak";
    case Reason::kInBudget:
      return "within-budget";
    case Reason::kTraded:
      return "saves-time";
    case Reason::kOverBudget:
      return "over-budget";
    case Reason::kHigherPeak:
      return "higher-peak";
    case Reason::kAffordable:
      return "affordable";
    case Reason::kMoved:
      return "moved";
  }
  CKPLAN_CHECK(false, "every reason has a name");
}

TensorExplanation ExplainTensor(const TracedPlan& traced, TensorId tensor, int64_t* work) {
  return TensorExplainer(traced, tensor, work).Explain();
}

}  // namespace ckplan
