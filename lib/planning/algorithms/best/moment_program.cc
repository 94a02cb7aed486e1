#include "lib/planning/algorithms/best/moment_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/solve_program.h"
#include "lib/planning/mip/mip.h"
#include "lib/problem/runs/run_problem.h"

namespace ckplan {

namespace {

// A wait of a whole step is scaled to about this, so that waits and their coefficients are of the
// same magnitude as other columns.
constexpr double kMaxWait = 64;

}  // namespace

MomentCopies::MomentCopies(const RunProblem& problem, std::span<const OpId> order,
                           std::span<const int32_t> moments, const CopyTimes& times, int64_t unit,
                           MipModel* model)
    : problem_(problem),
      order_(order),
      moments_(moments),
      times_(times),
      unit_(unit),
      model_(model),
      clock_(order.size() + 1),
      made_at_(At(problem.value_count), -1) {
  for (size_t i = 0; i < order.size(); ++i) {
    clock_[i + 1] = clock_[i] + problem.cost[At(order[i].index())];
    for (const int32_t write : problem.writes[order[i].index()]) {
      made_at_[At(write)] = static_cast<int32_t>(i);
    }
  }
  while (Units(clock_.back()) > kMaxWait * wait_unit_) wait_unit_ *= 2;
  for (size_t j = 0; j <= moments.size(); ++j) {
    waits_.push_back(model->AddColumn({.cost = wait_unit_}));
  }
}

void MomentCopies::AddMoment(const std::vector<int>& kept) {
  const size_t j = loads_.size();
  const auto end = static_cast<int32_t>(order_.size());
  std::vector<int32_t>& first = first_reads_.emplace_back(kept.size(), end);
  for (int32_t i = end; i-- > moments_[j];) {
    for (const int32_t read : problem_.reads[order_[At(i)].index()]) first[At(read)] = i;
  }
  std::vector<int>& loads = loads_.emplace_back(kept.size(), kNoColumn);
  std::vector<int>& hosted = hosted_.emplace_back(kept.size(), kNoColumn);
  for (size_t u = 0; u < kept.size(); ++u) {
    const int before = j == 0 ? kNoColumn : hosted_[j - 1][u];
    const bool may_load = kept[u] != kNoColumn && times_.may_move[u];
    if (may_load) loads[u] = model_->AddColumn({.upper = 1, .is_integer = true});
    if (!may_load || before == kNoColumn) {
      // One of the two is the only reason for H.
      hosted[u] = may_load ? loads[u] : before;
      continue;
    }
    hosted[u] = model_->AddColumn({.upper = 1});
    model_->AddRow(0, kMipInfinity, {{hosted[u], 1}, {loads[u], -1}});
    model_->AddRow(0, kMipInfinity, {{hosted[u], 1}, {before, -1}});
  }
}

// Returns the cost of the first runs in [first, end).
double MomentCopies::LengthBetween(int32_t first, int32_t end) const {
  if (first >= end) return 0;
  // Times are rounded up here and copies down, so that feasible copies always fit.
  return static_cast<double>((clock_[At(end)] - clock_[At(first)] + unit_ - 1) / unit_);
}

// Adds the reruns and waits of an interval; interval 0 lies before the first moment.
void MomentCopies::AddElapsed(size_t interval, const std::vector<std::vector<int>>& reruns,
                              Row* row) const {
  row->entries.push_back({waits_[interval], -wait_unit_});
  if (interval == 0) return;
  const std::vector<int>& columns = reruns[interval - 1];
  for (size_t op = 0; op < columns.size(); ++op) {
    const double cost = Units(problem_.cost[op]);
    if (columns[op] != kNoColumn && cost > 0) row->entries.push_back({columns[op], -cost});
  }
}

void MomentCopies::AddOuts(size_t j, int32_t from, Row* row) const {
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (hosted_[j][u] == kNoColumn || made_at_[u] < from) continue;
    row->entries.push_back({hosted_[j][u], Units(times_.out[u])});
  }
}

void MomentCopies::AddIns(size_t j, int32_t to, Row* row) const {
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (loads_[j][u] == kNoColumn || first_reads_[j][u] > to) continue;
    row->entries.push_back({loads_[j][u], Units(times_.in[u])});
  }
}

MomentCopies::Row MomentCopies::RowOf(const ChargedWindow& charged,
                                      const std::vector<std::vector<int>>& reruns) const {
  const auto at = std::lower_bound(moments_.begin(), moments_.end(), charged.moment);
  const auto j = static_cast<size_t>(at - moments_.begin());
  const int32_t position = charged.window.position;
  Row row;
  if (charged.window.is_out) {
    const auto first = std::upper_bound(moments_.begin(), moments_.end(), position);
    for (auto i = static_cast<size_t>(first - moments_.begin()); i <= j; ++i) {
      AddElapsed(i, reruns, &row);
    }
    AddOuts(j, position, &row);
    row.length = LengthBetween(position + 1, charged.moment);
    return row;
  }
  for (size_t i = j; i < moments_.size() && moments_[i] < position; ++i) {
    AddElapsed(i + 1, reruns, &row);
    AddIns(i, position, &row);
  }
  row.length = LengthBetween(charged.moment + 1, position);
  return row;
}

void MomentCopies::AddWindow(const ChargedWindow& charged,
                             const std::vector<std::vector<int>>& reruns) {
  Row row = RowOf(charged, reruns);
  const double length = row.length;
  model_->AddRow(-kMipInfinity, length, std::move(row.entries));
}

// Returns the time of reruns and waits in each interval; interval 0 lies before the first moment.
std::vector<double> MomentCopies::ElapsedByInterval(
    const std::vector<double>& values, const std::vector<std::vector<int>>& reruns) const {
  std::vector<double> elapsed;
  for (size_t i = 0; i < waits_.size(); ++i) {
    Row row;
    AddElapsed(i, reruns, &row);
    double sum = 0;
    for (const MipEntry& entry : row.entries) sum -= entry.coefficient * values[At(entry.column)];
    elapsed.push_back(sum);
  }
  return elapsed;
}

std::vector<ChargedWindow> MomentCopies::FindExceeded(
    const std::vector<double>& values, const std::vector<std::vector<int>>& reruns) const {
  const std::vector<double> elapsed = ElapsedByInterval(values, reruns);
  std::vector<ChargedWindow> exceeded;
  for (size_t j = 0; j < moments_.size(); ++j) {
    for (const auto& found :
         {FindMostExceededOut(j, values, elapsed), FindMostExceededIn(j, values, elapsed)}) {
      if (found) exceeded.push_back({moments_[j], *found});
    }
  }
  return exceeded;
}

std::optional<CopyWindow> MomentCopies::FindMostExceededOut(
    size_t j, const std::vector<double>& values, const std::vector<double>& elapsed) const {
  std::vector<double> copies(order_.size());
  for (size_t u = 0; u < made_at_.size(); ++u) {
    if (hosted_[j][u] == kNoColumn) continue;
    copies[At(made_at_[u])] += Units(times_.out[u]) * values[At(hosted_[j][u])];
  }
  std::optional<CopyWindow> found;
  double most = Slight();
  double sum = -elapsed[j];
  size_t interval = j;  // The interval of the position.
  for (int32_t position = moments_[j]; position-- > 0;) {
    while (interval > 0 && position < moments_[interval - 1]) sum -= elapsed[--interval];
    sum += copies[At(position)];
    const double excess = sum - LengthBetween(position + 1, moments_[j]);
    if (copies[At(position)] == 0 || excess <= most) continue;
    most = excess;
    found = CopyWindow{true, position};
  }
  return found;
}

std::optional<CopyWindow> MomentCopies::FindMostExceededIn(
    size_t j, const std::vector<double>& values, const std::vector<double>& elapsed) const {
  const auto end = static_cast<int32_t>(order_.size());
  std::vector<double> copies(order_.size() + 1);
  std::optional<CopyWindow> found;
  double most = Slight();
  double sum = 0;
  size_t next = j;  // The next moment on the way.
  for (int32_t position = moments_[j] + 1; position <= end; ++position) {
    for (; next < moments_.size() && moments_[next] < position; ++next) {
      sum -= elapsed[next + 1];
      for (size_t u = 0; u < made_at_.size(); ++u) {
        if (loads_[next][u] == kNoColumn) continue;
        copies[At(first_reads_[next][u])] += Units(times_.in[u]) * values[At(loads_[next][u])];
      }
    }
    sum += copies[At(position)];
    const double excess = sum - LengthBetween(moments_[j] + 1, position);
    if (copies[At(position)] == 0 || excess <= most) continue;
    most = excess;
    found = CopyWindow{false, position};
  }
  return found;
}

size_t MomentCopies::WaitsBeyondOne(double cost) const {
  return waits_.size() * static_cast<size_t>(std::max(0.0, std::ceil(cost / wait_unit_)));
}

namespace {

// Builds the program, and reads its solution.
class MomentProgram {
 public:
  MomentProgram(const RunProblem& problem, std::span<const OpId> order, const ChargedSteps& charged,
                int64_t budget, const CopyTimes* times)
      : problem_(problem),
        order_(order),
        moments_(charged.moments),
        budget_(budget),
        may_move_(times == nullptr ? std::vector<bool>(problem.bytes.size()) : times->may_move),
        units_(UnitsOf(problem, budget, times)) {
    if (times != nullptr) {
      copies_.emplace(problem, order, moments_, *times, units_.cost, &model_);
    }
    position_.resize(static_cast<size_t>(problem.op_count));
    for (size_t i = 0; i < order.size(); ++i) {
      position_[static_cast<size_t>(order[i].index())] = static_cast<int32_t>(i);
    }
    for (size_t j = 0; j < moments_.size(); ++j) AddColumns(j);
    for (size_t j = 0; j < moments_.size(); ++j) AddRows(j);
    for (const ChargedRerun& rerun : charged.reruns) ChargeRerun(rerun);
    for (const ChargedWindow& window : charged.windows) copies_->AddWindow(window, reruns_);
  }

  const MipModel& model() const { return model_; }
  const ProgramUnits& units() const { return units_; }
  // Tells whether some moment has no room even for its own operation.
  bool is_hopeless() const { return is_hopeless_; }

  // Returns how much columns may exceed 1 in total in a solution of this cost.
  size_t BeyondOne(double cost) const { return copies_ ? copies_->WaitsBeyondOne(cost) : 0; }

  MomentPlan Read(const std::vector<double>& values) const {
    const auto is_set = [&](int column) {
      return column != kNoColumn && values[static_cast<size_t>(column)] > 0.5;
    };
    MomentPlan plan;
    for (size_t j = 0; j < kept_.size(); ++j) {
      std::vector<bool>& kept = plan.kept.emplace_back();
      for (const int column : kept_[j]) kept.push_back(is_set(column));
      if (!copies_) continue;
      std::vector<bool>& loaded = plan.loaded.emplace_back();
      for (int32_t u = 0; u < problem_.value_count; ++u) {
        loaded.push_back(!kept[At(u)] && is_set(copies_->LoadOf(j, u)));
      }
    }
    if (copies_) plan.exceeded = copies_->FindExceeded(values, reruns_);
    return plan;
  }

 private:
  // The column of a value that is in memory throughout an interval, for constraint (5).
  struct ValueThrough {
    int32_t value;
    int column;
  };

  int32_t FirstRun(int32_t op) const { return position_[static_cast<size_t>(op)]; }
  int32_t MadeAt(int32_t value) const {
    return FirstRun(problem_.producer[static_cast<size_t>(value)]);
  }
  int32_t EndOf(size_t j) const {
    return j + 1 < moments_.size() ? moments_[j + 1] : static_cast<int32_t>(order_.size());
  }

  // Returns the values computed before the moment that a run at or after it may need: first runs
  // there read them, they are results, or recomputing such values needs them.
  std::vector<bool> FindNeededAt(int32_t moment) const {
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
      if (problem_.is_result[at] && problem_.producer[at] >= 0) add(u);
    }
    while (!found.empty()) {
      const int32_t producer = problem_.producer[static_cast<size_t>(found.back())];
      found.pop_back();
      if (!problem_.may_repeat[static_cast<size_t>(producer)]) continue;
      for (const int32_t read : problem_.reads[producer]) add(read);
    }
    return is_needed;
  }

  void AddColumns(size_t j) {
    PollStop();
    const std::vector<bool> is_needed = FindNeededAt(moments_[j]);
    std::vector<int>& kept = kept_.emplace_back(is_needed.size(), kNoColumn);
    std::vector<int>& reruns =
        reruns_.emplace_back(static_cast<size_t>(problem_.op_count), kNoColumn);
    for (size_t u = 0; u < is_needed.size(); ++u) {
      if (!is_needed[u]) continue;
      kept[u] = model_.AddColumn({.upper = 1, .is_integer = true});
      const auto producer = static_cast<size_t>(problem_.producer[u]);
      if (!problem_.may_repeat[producer] || reruns[producer] != kNoColumn) continue;
      reruns[producer] = AddRerun(producer);
    }
    if (copies_) copies_->AddMoment(kept);
  }

  int AddRerun(size_t op) {
    const auto cost = static_cast<double>(problem_.cost[op] / units_.cost);
    return model_.AddColumn({.cost = cost, .upper = 1, .is_integer = true});
  }

  static ProgramUnits UnitsOf(const RunProblem& problem, int64_t budget, const CopyTimes* times) {
    ProgramUnits units(problem, budget);
    if (times != nullptr) units.AddTimes(times->out), units.AddTimes(times->in);
    return units;
  }

  // Adds kept + rerun >= bound for a value computed before moment j; it may be loaded as well.
  void AddAvailability(size_t j, int32_t value, double bound, std::vector<MipEntry> entries) {
    entries.push_back({kept_[j][static_cast<size_t>(value)], 1});
    const int rerun = RerunOf(j, problem_.producer[static_cast<size_t>(value)]);
    if (rerun != kNoColumn) entries.push_back({rerun, 1});
    const int load = copies_ ? copies_->LoadOf(j, value) : kNoColumn;
    if (load != kNoColumn) entries.push_back({load, 1});
    model_.AddRow(bound, kMipInfinity, std::move(entries));
  }

  int RerunOf(size_t j, int32_t op) const { return reruns_[j][static_cast<size_t>(op)]; }

  void AddRows(size_t j) {
    AddCapacity(j);
    // Adds constraint (1) of moment_program.h.
    std::vector<bool> is_done(static_cast<size_t>(problem_.value_count));
    for (int32_t i = moments_[j]; i < EndOf(j); ++i) {
      for (const int32_t read : problem_.reads[order_[static_cast<size_t>(i)].index()]) {
        if (MadeAt(read) >= moments_[j] || is_done[static_cast<size_t>(read)]) continue;
        is_done[static_cast<size_t>(read)] = true;
        AddAvailability(j, read, 1, {});
      }
    }
    // Adds constraint (2).
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      if (RerunOf(j, op) == kNoColumn) continue;
      for (const int32_t read : problem_.reads[op]) {
        AddAvailability(j, read, 0, {{RerunOf(j, op), -1}});
      }
    }
    AddPersistence(j);
  }

  // Adds constraint (3).
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

  // Adds constraint (4).
  void AddCapacity(size_t j) {
    const OpId op = order_[static_cast<size_t>(moments_[j])];
    const auto at = static_cast<size_t>(op.index());
    const int64_t room =
        budget_ - problem_.written_bytes[at] - problem_.workspace[at] + problem_.in_place_bytes[at];
    if (room < 0) is_hopeless_ = true;
    std::vector<MipEntry> entries;
    for (size_t u = 0; u < kept_[j].size(); ++u) {
      // Round sizes down, so that values that fit always fit the program.
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

  // Adds constraint (5).
  void ChargeRerun(const ChargedRerun& charged) {
    const auto moment = std::lower_bound(moments_.begin(), moments_.end(), charged.moment);
    const auto j = static_cast<size_t>(moment - moments_.begin());
    const int32_t op = charged.op.index();
    const int rerun = RerunOf(j, op);
    if (rerun == kNoColumn) return;
    const std::span<const int32_t> reads = problem_.reads[op];
    std::vector<MipEntry> entries = {{rerun, Units(WorkingSet(op))}};
    for (const ValueThrough& through : ValuesThrough(j)) {
      const int32_t u = through.value;
      if (problem_.producer[static_cast<size_t>(u)] == op) continue;
      if (std::binary_search(reads.begin(), reads.end(), u)) continue;
      entries.push_back({through.column, Units(problem_.bytes[static_cast<size_t>(u)])});
    }
    model_.AddRow(-kMipInfinity, Units(budget_), std::move(entries));
  }

  // Rounds down, so that values that fit always fit the program.
  double Units(int64_t bytes) const { return static_cast<double>(bytes / units_.bytes); }

  int64_t WorkingSet(int32_t op) const {
    const auto at = static_cast<size_t>(op);
    int64_t bytes =
        problem_.written_bytes[at] + problem_.workspace[at] - problem_.in_place_bytes[at];
    for (const int32_t read : problem_.reads[op]) {
      bytes += problem_.bytes[static_cast<size_t>(read)];
    }
    return bytes;
  }

  const std::vector<ValueThrough>& ValuesThrough(size_t j) {
    const auto [entry, is_new] = through_.try_emplace(j);
    if (!is_new) return entry->second;
    const OpId first = order_[static_cast<size_t>(moments_[j])];
    if (problem_.may_repeat[static_cast<size_t>(first.index())]) {
      // The moment's own writes are in memory throughout the interval unless it runs twice.
      reruns_[j][static_cast<size_t>(first.index())] = AddRerun(static_cast<size_t>(first.index()));
    }
    for (int32_t u = 0; u < problem_.value_count; ++u) {
      const auto at = static_cast<size_t>(u);
      const bool is_made = problem_.producer[at] >= 0 && MadeAt(u) <= moments_[j];
      if (!is_made || may_move_[at] || problem_.bytes[at] < units_.bytes) continue;
      const int column = AddThrough(j, u);
      if (column != kNoColumn) entry->second.push_back({u, column});
    }
    return entry->second;
  }

  // Returns kNoColumn if no run after the interval needs the value.
  int AddThrough(size_t j, int32_t value) {
    const auto at = static_cast<size_t>(value);
    const bool is_last = j + 1 == moments_.size();
    const int next = is_last ? kNoColumn : kept_[j + 1][at];
    if (is_last ? !problem_.is_result[at] : next == kNoColumn) return kNoColumn;
    const int rerun = RerunOf(j, problem_.producer[at]);
    if (rerun == kNoColumn && !is_last) return next;
    const int column = model_.AddColumn({.upper = 1});
    std::vector<MipEntry> entries = {{column, 1}};
    if (rerun != kNoColumn) entries.push_back({rerun, 1});
    if (!is_last) entries.push_back({next, -1});
    model_.AddRow(is_last ? 1 : 0, kMipInfinity, std::move(entries));
    return column;
  }

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const std::span<const int32_t> moments_;
  const int64_t budget_;
  const std::vector<bool> may_move_;  // By value: it may be offloaded.
  const ProgramUnits units_;
  std::vector<int32_t> position_;  // By operation: its position in the order.
  bool is_hopeless_ = false;
  MipModel model_;
  std::vector<std::vector<int>> kept_;                   // Columns of a^j, by value.
  std::vector<std::vector<int>> reruns_;                 // Columns of r^j, by operation.
  std::map<size_t, std::vector<ValueThrough>> through_;  // By interval, for constraint (5).
  std::optional<MomentCopies> copies_;                   // With a link.
};

}  // namespace

Result<MomentOutcome> SolveMoments(const RunProblem& problem, std::span<const OpId> order,
                                   const ChargedSteps& charged, int64_t budget,
                                   const ProgramLimits<MomentPlan>& limits,
                                   const CopyTimes* times) {
  return SolveProgram<MomentPlan>(MomentProgram(problem, order, charged, budget, times), limits);
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
