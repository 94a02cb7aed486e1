#include "lib/problem/runs/runs_and_loads.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

class ChoiceExpansion {
 public:
  ChoiceExpansion(const RunProblem& problem, const OffloadChoice& choice)
      : problem_(problem), choice_(choice), is_available_(At(problem.value_count), false) {}

  RunsAndLoads Run() && {
    for (size_t i = 0; i < choice_.order.size(); ++i) {
      if (i == choice_.moment) DropUnkept();
      Add(choice_.order[i].index());
    }
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (!problem_.is_result[At(value)] || problem_.producer[At(value)] < 0) continue;
      if (!is_available_[At(value)]) Add(problem_.producer[At(value)]);
    }
    return std::move(steps_);
  }

 private:
  struct Frame {
    int32_t op;
    size_t reads_done = 0;
  };

  // Drops the values that are not kept across the moment.
  void DropUnkept() {
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (!is_available_[At(value)]) continue;
      const bool has_way_back =
          choice_.loaded[At(value)] || problem_.may_repeat[At(problem_.producer[At(value)])];
      is_available_[At(value)] = choice_.kept[At(value)] || !has_way_back;
    }
    is_after_ = true;
  }

  bool CanLoad(int32_t value) const { return is_after_ && choice_.loaded[At(value)]; }

  // Runs the operation, after loading or computing its reads.
  void Add(int32_t op) {
    // Depth-first without recursion: a chain may have 100,000 operations.
    std::vector<Frame> stack = {{op}};
    while (!stack.empty()) {
      PollStop();
      Frame& frame = stack.back();
      const std::span<const int32_t> reads = problem_.reads[frame.op];
      if (frame.reads_done < reads.size()) {
        const int32_t read = reads[frame.reads_done++];
        const bool is_made_now = !is_available_[At(read)] && !CanLoad(read);
        if (is_made_now) stack.push_back({problem_.producer[At(read)]});
        continue;
      }
      for (const int32_t read : reads) Load(read);
      for (const int32_t write : problem_.writes[frame.op]) is_available_[At(write)] = true;
      steps_.push_back(frame.op);
      stack.pop_back();
    }
  }

  void Load(int32_t value) {
    if (is_available_[At(value)]) return;
    steps_.push_back(LoadOf(problem_, value));
    is_available_[At(value)] = true;
  }

  const RunProblem& problem_;
  const OffloadChoice& choice_;
  std::vector<bool> is_available_;
  bool is_after_ = false;
  RunsAndLoads steps_;
};

// The versions of the values in a sequence, with their lifetimes.
class Lifetimes {
 public:
  Lifetimes(const RunProblem& problem, const RunsAndLoads& steps)
      : problem_(problem), versions_(At(problem.value_count)) {
    int32_t run = 0;
    for (const int32_t step : steps) {
      if (IsLoad(problem, step)) {
        versions_[At(LoadedBy(problem, step))].push_back({run, kUnread, true});
        continue;
      }
      for (const int32_t read : problem.reads[step]) {
        Version& version = versions_[At(read)].back();
        if (version.last_read == kUnread) version.first_read = run;
        version.last_read = run;
      }
      for (const int32_t write : problem.writes[step]) {
        versions_[At(write)].push_back({run, kUnread, false});
      }
      runs_.push_back(step);
      ++run;
    }
  }

  CopyTask Task() const {
    CopyTask task;
    std::vector<int64_t> change(runs_.size() + 1, 0);
    for (size_t i = 0; i < runs_.size(); ++i) {
      task.cost.push_back(problem_.cost[At(runs_[i])]);
      change[i] += problem_.workspace[At(runs_[i])];
      change[i + 1] -= problem_.workspace[At(runs_[i])];
    }
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const std::vector<Version>& versions = versions_[At(value)];
      for (size_t k = 0; k < versions.size(); ++k) {
        if (versions[k].is_loaded && versions[k].last_read == kUnread) continue;
        const size_t begin = At(versions[k].is_loaded ? versions[k].first_read : versions[k].made);
        change[begin] += problem_.bytes[At(value)];
        change[At(EndOf(value, k))] -= problem_.bytes[At(value)];
        if (versions[k].is_loaded) task.absences.push_back(AbsenceOf(value, k));
      }
    }
    int64_t live = 0;
    for (size_t i = 0; i < runs_.size(); ++i) task.bytes.push_back(live += change[i]);
    std::sort(task.absences.begin(), task.absences.end(), [](const Absence& a, const Absence& b) {
      return std::pair(a.first_read, a.value) < std::pair(b.first_read, b.value);
    });
    return task;
  }

 private:
  static constexpr int32_t kUnread = -1;

  struct Version {
    int32_t made = 0;  // For a load: the first run after it.
    int32_t last_read = kUnread;
    bool is_loaded = false;
    int32_t first_read = kUnread;
  };

  // Returns the end of the runs [made, end) during which the version is in memory.
  int32_t EndOf(int32_t value, size_t k) const {
    const std::vector<Version>& versions = versions_[At(value)];
    const bool is_last = k + 1 == versions.size();
    if (is_last && problem_.is_result[At(value)]) return static_cast<int32_t>(runs_.size());
    const Version& version = versions[k];
    if (version.last_read == kUnread) return version.made + 1;
    // The first version of a loaded value is in memory until it is copied.
    const bool is_copied = k == 0 && std::any_of(versions.begin(), versions.end(),
                                                 [](const Version& v) { return v.is_loaded; });
    const std::span<const int32_t> overwritten = problem_.taken_over[runs_[At(version.last_read)]];
    const bool is_taken =
        !is_copied && std::binary_search(overwritten.begin(), overwritten.end(), value);
    return version.last_read + (is_taken ? 0 : 1);
  }

  Absence AbsenceOf(int32_t value, size_t k) const {
    const std::vector<Version>& versions = versions_[At(value)];
    const auto last_read = [](const Version& version) {
      return version.last_read == kUnread ? version.made : version.last_read;
    };
    Absence absence;
    absence.value = value;
    absence.bytes = problem_.bytes[At(value)];
    absence.made = versions.front().made;
    absence.last_read = last_read(versions.front());
    absence.back_after = last_read(versions[k - 1]);
    absence.first_read = versions[k].first_read;
    absence.gone_by = k == 1 ? absence.first_read : versions[1].made;
    return absence;
  }

  const RunProblem& problem_;
  std::vector<std::vector<Version>> versions_;
  std::vector<int32_t> runs_;
};

Step StepOf(const CopyStep& copy) {
  const ValueId value(copy.value);
  if (copy.kind == CopyStepKind::kOut) return Step::Out(value);
  return copy.kind == CopyStepKind::kDrop ? Step::Drop(value) : Step::In(value);
}

}  // namespace

Runs RunsIn(const RunProblem& problem, const RunsAndLoads& steps) {
  Runs runs;
  for (const int32_t step : steps) {
    if (!IsLoad(problem, step)) runs.emplace_back(step);
  }
  return runs;
}

RunsAndLoads ExpandChoice(const RunProblem& problem, const OffloadChoice& choice) {
  return ChoiceExpansion(problem, choice).Run();
}

CopyTask CopyTaskOf(const RunProblem& problem, const RunsAndLoads& steps) {
  return Lifetimes(problem, steps).Task();
}

int64_t PeakOf(const CopyTask& task) {
  return *std::max_element(task.bytes.begin(), task.bytes.end());
}

Schedule ScheduleWithCopies(const RunProblem& problem, const RunsAndLoads& steps,
                            const CopyPlan& copies) {
  Schedule schedule;
  size_t next = 0;
  int32_t run = 0;
  for (const int32_t step : steps) {
    if (IsLoad(problem, step)) continue;
    for (; next < copies.steps.size() && copies.steps[next].before_run == run; ++next) {
      schedule.steps.push_back(StepOf(copies.steps[next]));
    }
    schedule.steps.push_back(Step::Run(OpId(step)));
    ++run;
  }
  return schedule;
}

}  // namespace ckplan
