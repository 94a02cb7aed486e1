#include "lib/planning/explain/what_if.h"

#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

constexpr int32_t kNoRun = -1;

class Freeing {
 public:
  Freeing(const TracedPlan& traced, int32_t version, int32_t step)
      : traced_(traced),
        graph_(traced.graph),
        after_(step),
        freed_(graph_.ProducerOf(traced.version(version).tensor)),
        newest_(graph_.tensor_count(), kNoRun),
        is_gone_(graph_.tensor_count()),
        is_rerun_(graph_.tensor_count()) {
    const Version& freed = traced.version(version);
    for (const int32_t other : traced.versions_in[graph_.StorageOf(freed.tensor)]) {
      const Version& tenant = traced.version(other);
      if (tenant.buffer == freed.buffer && tenant.made_at <= step) is_gone_[tenant.tensor] = true;
    }
  }

  std::optional<Schedule> Run() && {
    const std::vector<Step>& steps = traced_.steps();
    for (size_t k = 0; k < steps.size(); ++k) {
      PollStop();
      step_ = static_cast<int32_t>(k);
      if (step_ > after_) {
        for (const TensorId read : graph_.ReadsOf(steps[k])) {
          if (is_gone_[read] && !RunAgain(graph_.ProducerOf(read))) return std::nullopt;
        }
      }
      schedule_.steps.push_back(steps[k]);
      NoteVersions();
      if (step_ <= after_) continue;
      for (const TensorId made : graph_.MakesOf(steps[k])) is_gone_[made] = false;
    }
    return std::move(schedule_);
  }

 private:
  struct Frame {
    NodeId node;
    size_t reads_done = 0;
  };

  void NoteVersions() {
    const std::vector<Version>& versions = traced_.timeline.versions;
    for (; next_ < versions.size() && versions[next_].made_at == step_; ++next_) {
      newest_[versions[next_].tensor] = static_cast<int32_t>(next_);
    }
  }

  // True if the plan itself has the tensor in memory when the step begins.
  bool IsInMemory(TensorId tensor) const {
    if (is_gone_[tensor]) return false;
    if (is_rerun_[tensor] || newest_[tensor] == kNoRun) return true;
    return traced_.until[static_cast<size_t>(newest_[tensor])] >= step_;
  }

  // Depth-first without recursion, because a chain may have 100,000 nodes.
  bool RunAgain(NodeId node) {
    std::vector<Frame> stack = {{node}};
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const Step run = graph_.RunOf(frame.node);
      const std::vector<TensorId>& reads = graph_.ReadsOf(run);
      const bool may_run =
          frame.node == freed_ ? graph_.CanRerun(freed_) : traced_.CanRerun(frame.node);
      if (!may_run) return false;
      if (frame.reads_done < reads.size()) {
        const TensorId read = reads[frame.reads_done++];
        if (!IsInMemory(read)) stack.push_back({graph_.ProducerOf(read)});
        continue;
      }
      for (const TensorId made : graph_.MakesOf(run)) {
        is_gone_[made] = false;
        is_rerun_[made] = true;
      }
      schedule_.steps.push_back(run);
      stack.pop_back();
    }
    return true;
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  const int32_t after_;
  const NodeId freed_;
  IdVector<TensorId, int32_t> newest_;  // Index of the plan's newest version.
  IdVector<TensorId, bool> is_gone_;    // Freed and not recomputed since.
  IdVector<TensorId, bool> is_rerun_;   // Recomputed for a reader.
  Schedule schedule_;
  int32_t step_ = 0;
  size_t next_ = 0;
};

}  // namespace

std::optional<Schedule> ReleaseAfter(const TracedPlan& traced, int32_t version, int32_t step) {
  return Freeing(traced, version, step).Run();
}

Schedule MoveBetween(const TracedPlan& traced, TensorId value, size_t made, size_t gone,
                     size_t back) {
  Schedule schedule;
  for (size_t k = 0; k < traced.steps().size(); ++k) {
    if (k == gone) schedule.steps.push_back(Step::Drop(value));
    if (k == back) schedule.steps.push_back(Step::In(value));
    schedule.steps.push_back(traced.steps()[k]);
    if (k == made) schedule.steps.push_back(Step::Out(value));
  }
  return schedule;
}

Schedule LeaveOnDevice(const TracedPlan& traced, TensorId value) {
  Schedule schedule = traced.plan.schedule;
  std::erase_if(schedule.steps,
                [&](const Step& step) { return step.is_transfer() && step.tensor() == value; });
  return schedule;
}

Schedule KeepInstead(const TracedPlan& traced, int32_t version) {
  Schedule schedule = traced.plan.schedule;
  schedule.steps.erase(schedule.steps.begin() + traced.version(version).made_at);
  return RemoveUnreadRuns(traced.graph, schedule);
}

}  // namespace ckplan
