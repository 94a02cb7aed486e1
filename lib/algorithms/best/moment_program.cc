#include "lib/algorithms/best/moment_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/algorithms/best/program_units.h"
#include "lib/base/stop.h"
#include "lib/joint/lazy_runs.h"
#include "lib/mip/mip.h"

namespace ckplan {
namespace {

constexpr int kNoColumn = -1;

// Builds the program, and reads its solution.
class Program {
 public:
  Program(const RunProblem& problem, std::span<const OpId> order, const ChargedSteps& charged,
          int64_t budget)
      : problem_(problem),
        order_(order),
        moments_(charged.moments),
        budget_(budget),
        units_(problem, budget) {
    position_.resize(static_cast<size_t>(problem.op_count));
    for (size_t i = 0; i < order.size(); ++i) {
      position_[static_cast<size_t>(order[i].index())] = static_cast<int32_t>(i);
    }
    for (size_t j = 0; j < moments_.size(); ++j) AddColumns(j);
    for (size_t j = 0; j < moments_.size(); ++j) AddRows(j);
    for (const ChargedRerun& rerun : charged.reruns) ChargeRerun(rerun);
  }

  const MipModel& model() const { return model_; }
  const ProgramUnits& units() const { return units_; }
  // Whether some moment has no room for its own operation.
  bool is_hopeless() const { return is_hopeless_; }

  MomentPlan Read(const std::vector<double>& values) const {
    MomentPlan plan;
    for (const std::vector<int>& columns : kept_) {
      std::vector<bool>& kept = plan.kept.emplace_back(columns.size());
      for (size_t u = 0; u < columns.size(); ++u) {
        kept[u] = columns[u] != kNoColumn && values[static_cast<size_t>(columns[u])] > 0.5;
      }
    }
    return plan;
  }

  // The solution that a plan in the order means.
  std::vector<double> SolutionOf(const Runs& runs) const {
    std::vector<double> values(model_.columns().size());
    const std::vector<int64_t> moment_steps = StepsOfMoments(runs);
    std::vector<int64_t> made(static_cast<size_t>(problem_.value_count), -1);
    const auto hold = [&](int32_t value, int64_t until) {
      const int64_t since = made[static_cast<size_t>(value)];
      auto moment = std::upper_bound(moment_steps.begin(), moment_steps.end(), since);
      for (; moment != moment_steps.end() && *moment <= until; ++moment) {
        const auto j = static_cast<size_t>(moment - moment_steps.begin());
        Set(kept_[j][static_cast<size_t>(value)], 1, &values);
      }
    };
    std::vector<bool> has_run(static_cast<size_t>(problem_.op_count));
    size_t next = 0;
    for (size_t k = 0; k < runs.size(); ++k) {
      const int32_t op = runs[k].index();
      const auto step = static_cast<int64_t>(k);
      for (const int32_t read : problem_.reads[op]) hold(read, step);
      for (const int32_t write : problem_.writes[op]) made[static_cast<size_t>(write)] = step;
      while (next < moment_steps.size() && moment_steps[next] <= step) ++next;
      if (has_run[static_cast<size_t>(op)] && next > 0) Set(RerunOf(next - 1, op), 1, &values);
      has_run[static_cast<size_t>(op)] = true;
    }
    for (int32_t u = 0; u < problem_.value_count; ++u) {
      if (problem_.is_result[static_cast<size_t>(u)]) hold(u, static_cast<int64_t>(runs.size()));
    }
    for (const Through& through : through_columns_) {
      const double found = through.next == kNoColumn ? 1 : ValueOf(through.next, values);
      Set(through.column, std::max(0.0, found - ValueOf(through.rerun, values)), &values);
    }
    return values;
  }

 private:
  // A column of what is in memory throughout an interval: no less than whether the next moment, or
  // else the end, finds it, less whether it is made again in the interval.
  struct Through {
    int column;
    int next;   // kNoColumn: the end, where results must be.
    int rerun;  // kNoColumn: it must not repeat.
  };
  struct ValueThrough {
    int32_t value;
    int column;
  };

  static void Set(int column, double value, std::vector<double>* values) {
    if (column != kNoColumn) (*values)[static_cast<size_t>(column)] = value;
  }
  static double ValueOf(int column, const std::vector<double>& values) {
    return column == kNoColumn ? 0 : values[static_cast<size_t>(column)];
  }

  // The steps at which the moments' operations run first.
  std::vector<int64_t> StepsOfMoments(const Runs& runs) const {
    std::vector<int64_t> steps;
    for (size_t k = 0; k < runs.size() && steps.size() < moments_.size(); ++k) {
      const auto moment = static_cast<size_t>(moments_[steps.size()]);
      if (runs[k] == order_[moment]) steps.push_back(static_cast<int64_t>(k));
    }
    return steps;
  }

  int32_t FirstRun(int32_t op) const { return position_[static_cast<size_t>(op)]; }
  int32_t MadeAt(int32_t value) const {
    return FirstRun(problem_.maker[static_cast<size_t>(value)]);
  }
  int32_t EndOf(size_t j) const {
    return j + 1 < moments_.size() ? moments_[j + 1] : static_cast<int32_t>(order_.size());
  }

  // The values made before the moment that something at or behind it may need: what first runs
  // there reads them, they are results, or they are needed to make such values again.
  std::vector<bool> NeededAt(int32_t moment) const {
    std::vector<bool> is_needed(static_cast<size_t>(problem_.value_count));
    std::vector<int32_t> found;
    const auto add = [&](int32_t value) {
      if (is_needed[static_cast<size_t>(value)] || MadeAt(value) >= moment) return;
      is_needed[static_cast<size_t>(value)] = true;
      found.push_back(value);
    };
    for (size_t i = static_cast<size_t>(moment); i < order_.size(); ++i) {
      for (const int32_t read : problem_.reads[order_[i].index()]) add(read);
    }
    for (int32_t u = 0; u < problem_.value_count; ++u) {
      const auto at = static_cast<size_t>(u);
      if (problem_.is_result[at] && problem_.maker[at] >= 0) add(u);
    }
    while (!found.empty()) {
      const int32_t maker = problem_.maker[static_cast<size_t>(found.back())];
      found.pop_back();
      if (!problem_.may_repeat[static_cast<size_t>(maker)]) continue;
      for (const int32_t read : problem_.reads[maker]) add(read);
    }
    return is_needed;
  }

  void AddColumns(size_t j) {
    PollStop();
    const std::vector<bool> is_needed = NeededAt(moments_[j]);
    std::vector<int>& kept = kept_.emplace_back(is_needed.size(), kNoColumn);
    std::vector<int>& reruns =
        reruns_.emplace_back(static_cast<size_t>(problem_.op_count), kNoColumn);
    for (size_t u = 0; u < is_needed.size(); ++u) {
      if (!is_needed[u]) continue;
      kept[u] = model_.AddColumn({.upper = 1, .is_integer = true});
      const auto maker = static_cast<size_t>(problem_.maker[u]);
      if (!problem_.may_repeat[maker] || reruns[maker] != kNoColumn) continue;
      reruns[maker] = AddRerun(maker);
    }
  }

  int AddRerun(size_t op) {
    const auto cost = static_cast<double>(problem_.cost[op] / units_.cost);
    return model_.AddColumn({.cost = cost, .upper = 1, .is_integer = true});
  }

  // kept + rerun >= bound, where the value was made before moment j.
  void AddAvailability(size_t j, int32_t value, double bound, std::vector<MipEntry> entries) {
    entries.push_back({kept_[j][static_cast<size_t>(value)], 1});
    const int rerun = RerunOf(j, problem_.maker[static_cast<size_t>(value)]);
    if (rerun != kNoColumn) entries.push_back({rerun, 1});
    model_.AddRow(bound, kMipInfinity, std::move(entries));
  }

  int RerunOf(size_t j, int32_t op) const { return reruns_[j][static_cast<size_t>(op)]; }

  void AddRows(size_t j) {
    AddCapacity(j);
    // (1)
    std::vector<bool> is_done(static_cast<size_t>(problem_.value_count));
    for (int32_t i = moments_[j]; i < EndOf(j); ++i) {
      for (const int32_t read : problem_.reads[order_[static_cast<size_t>(i)].index()]) {
        if (MadeAt(read) >= moments_[j] || is_done[static_cast<size_t>(read)]) continue;
        is_done[static_cast<size_t>(read)] = true;
        AddAvailability(j, read, 1, {});
      }
    }
    // (2)
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      if (RerunOf(j, op) == kNoColumn) continue;
      for (const int32_t read : problem_.reads[op]) {
        AddAvailability(j, read, 0, {{RerunOf(j, op), -1}});
      }
    }
    AddPersistence(j);
  }

  // (3)
  void AddPersistence(size_t j) {
    const bool is_last = j + 1 == moments_.size();
    for (int32_t u = 0; u < problem_.value_count; ++u) {
      const auto at = static_cast<size_t>(u);
      if (kept_[j][at] == kNoColumn) continue;
      if (is_last && problem_.is_result[at]) AddAvailability(j, u, 1, {});
      if (!is_last && kept_[j + 1][at] != kNoColumn) {
        AddAvailability(j, u, 0, {{kept_[j + 1][at], -1}});
      }
    }
  }

  // (4)
  void AddCapacity(size_t j) {
    const OpId op = order_[static_cast<size_t>(moments_[j])];
    const auto at = static_cast<size_t>(op.index());
    const int64_t room =
        budget_ - problem_.written_bytes[at] - problem_.workspace[at] + problem_.in_place_bytes[at];
    if (room < 0) is_hopeless_ = true;
    std::vector<MipEntry> entries;
    for (size_t u = 0; u < kept_[j].size(); ++u) {
      // Rounded down, so that what fits is never refused.
      const int64_t units = problem_.bytes[u] / units_.bytes;
      if (kept_[j][u] == kNoColumn || units == 0) continue;
      entries.push_back({kept_[j][u], static_cast<double>(units)});
    }
    model_.AddRow(-kMipInfinity, static_cast<double>(std::max<int64_t>(room, 0) / units_.bytes),
                  std::move(entries));
    for (const int32_t read : problem_.reads[op.index()]) {
      model_.AddRow(1, 1, {{kept_[j][static_cast<size_t>(read)], 1}});
    }
  }

  // (5)
  void ChargeRerun(const ChargedRerun& charged) {
    const auto moment = std::lower_bound(moments_.begin(), moments_.end(), charged.moment);
    const auto j = static_cast<size_t>(moment - moments_.begin());
    const int32_t op = charged.op.index();
    const int rerun = RerunOf(j, op);
    if (rerun == kNoColumn) return;
    const std::span<const int32_t> reads = problem_.reads[op];
    std::vector<MipEntry> entries = {{rerun, Units(WorkingSet(op))}};
    for (const ValueThrough& through : ThroughInterval(j)) {
      const int32_t u = through.value;
      if (problem_.maker[static_cast<size_t>(u)] == op) continue;
      if (std::binary_search(reads.begin(), reads.end(), u)) continue;
      entries.push_back({through.column, Units(problem_.bytes[static_cast<size_t>(u)])});
    }
    model_.AddRow(-kMipInfinity, Units(budget_), std::move(entries));
  }

  // Rounded down, so that what fits is never refused.
  double Units(int64_t bytes) const { return static_cast<double>(bytes / units_.bytes); }

  int64_t WorkingSet(int32_t op) const {
    const auto at = static_cast<size_t>(op);
    int64_t bytes =
        problem_.written_bytes[at] + problem_.workspace[at] - problem_.in_place_bytes[at];
    for (const int32_t read : problem_.reads[op])
      bytes += problem_.bytes[static_cast<size_t>(read)];
    return bytes;
  }

  const std::vector<ValueThrough>& ThroughInterval(size_t j) {
    const auto [entry, is_new] = through_.try_emplace(j);
    if (!is_new) return entry->second;
    const OpId first = order_[static_cast<size_t>(moments_[j])];
    if (problem_.may_repeat[static_cast<size_t>(first.index())]) {
      // What the moment itself writes is in memory throughout the interval unless it runs twice.
      reruns_[j][static_cast<size_t>(first.index())] = AddRerun(static_cast<size_t>(first.index()));
    }
    for (int32_t u = 0; u < problem_.value_count; ++u) {
      const auto at = static_cast<size_t>(u);
      const bool is_made = problem_.maker[at] >= 0 && MadeAt(u) <= moments_[j];
      if (!is_made || problem_.bytes[at] < units_.bytes) continue;
      const int column = AddThrough(j, u);
      if (column != kNoColumn) entry->second.push_back({u, column});
    }
    return entry->second;
  }

  // kNoColumn if nobody needs the value behind the interval.
  int AddThrough(size_t j, int32_t value) {
    const auto at = static_cast<size_t>(value);
    const bool is_last = j + 1 == moments_.size();
    const int next = is_last ? kNoColumn : kept_[j + 1][at];
    if (is_last ? !problem_.is_result[at] : next == kNoColumn) return kNoColumn;
    const int rerun = RerunOf(j, problem_.maker[at]);
    if (rerun == kNoColumn && !is_last) return next;
    const int column = model_.AddColumn({.upper = 1});
    std::vector<MipEntry> entries = {{column, 1}};
    if (rerun != kNoColumn) entries.push_back({rerun, 1});
    if (!is_last) entries.push_back({next, -1});
    model_.AddRow(is_last ? 1 : 0, kMipInfinity, std::move(entries));
    through_columns_.push_back({column, next, rerun});
    return column;
  }

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const std::span<const int32_t> moments_;
  const int64_t budget_;
  const ProgramUnits units_;
  std::vector<int32_t> position_;  // Of each operation in the order.
  bool is_hopeless_ = false;
  MipModel model_;
  std::vector<std::vector<int>> kept_;                   // Columns of a^j, by value.
  std::vector<std::vector<int>> reruns_;                 // Columns of r^j, by operation.
  std::map<size_t, std::vector<ValueThrough>> through_;  // By interval, for those of (5).
  std::vector<Through> through_columns_;
};

}  // namespace

Result<MomentOutcome> SolveMoments(const RunProblem& problem, std::span<const OpId> order,
                                   const ChargedSteps& charged, int64_t budget,
                                   const ProgramLimits& limits, const Runs* known) {
  const Program program(problem, order, charged, budget);
  if (known == nullptr) return SolveProgram<MomentPlan>(program, limits);
  const std::vector<double> start = program.SolutionOf(*known);
  return SolveProgram<MomentPlan>(program, limits, &start);
}

Runs ExpandMoments(const RunProblem& problem, std::span<const OpId> order,
                   std::span<const int32_t> moments, const MomentPlan& plan) {
  LazyRuns runs(problem);
  size_t next = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (next < moments.size() && static_cast<int32_t>(i) == moments[next]) {
      const std::vector<bool>& kept = plan.kept[next++];
      for (int32_t u = 0; u < problem.value_count; ++u) {
        if (kept[static_cast<size_t>(u)]) runs.Provide(u);
      }
      runs.KeepOnly(kept);
    }
    runs.Run(order[i]);
  }
  runs.ProvideResults();
  return std::move(runs).Take();
}

}  // namespace ckplan
