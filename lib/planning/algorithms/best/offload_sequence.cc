#include "lib/planning/algorithms/best/offload_sequence.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/planning/algorithms/best/flat_simulation.h"

namespace ckplan {
namespace {

constexpr int32_t kSlotsPerStep = 2;
constexpr int32_t kSpareStepSlots = 64;
constexpr int32_t kUnread = std::numeric_limits<int32_t>::max();

void InsertSorted(std::vector<int32_t>* list, int32_t slot) {
  list->insert(std::lower_bound(list->begin(), list->end(), slot), slot);
}

void EraseSorted(std::vector<int32_t>* list, int32_t slot) {
  list->erase(std::lower_bound(list->begin(), list->end(), slot));
}

}  // namespace

OffloadSequence::OffloadSequence(const RunProblem& problem, std::span<const int32_t> steps)
    : problem_(problem),
      values_(At(problem.value_count)),
      may_be_overwritten_(OverwritableValues(problem)) {
  std::iota(values_.begin(), values_.end(), 0);
  Load(steps);
}

void OffloadSequence::Load(std::span<const int32_t> steps) {
  const size_t kinds = At(problem_.op_count) + At(problem_.value_count);
  step_at_.assign(steps.size() * kSlotsPerStep + kSpareStepSlots, -1);
  slots_of_.resize(kinds);
  made_at_.resize(At(problem_.value_count));
  read_at_.resize(At(problem_.value_count));
  for (std::vector<int32_t>& list : slots_of_) list.clear();
  for (std::vector<int32_t>& list : made_at_) list.clear();
  for (std::vector<int32_t>& list : read_at_) list.clear();
  extra_.Reset(kinds);
  loaded_.clear();
  cost_ = 0;
  step_count_ = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    Place(steps[i], kSlotsPerStep * (static_cast<int32_t>(i) + 1), true);
  }
  changes_.clear();

  std::vector<int64_t> bytes(step_at_.size() + 1, 0);
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    for (size_t k = 0; k < made_at_[At(value)].size(); ++k) {
      bytes[At(BeginOf(value, k))] += problem_.bytes[At(value)];
      bytes[At(EndOf(value, k))] -= problem_.bytes[At(value)];
    }
  }
  for (int32_t slot = 0; slot < slot_count(); ++slot) {
    const int32_t step = step_at_[At(slot)];
    if (step < 0 || IsLoad(problem_, step)) continue;
    bytes[At(slot)] += problem_.workspace[At(step)];
    bytes[At(slot) + 1] -= problem_.workspace[At(step)];
  }
  tree_.Build(bytes);
}

void OffloadSequence::Respace() { Load(ToSteps()); }

RunsAndLoads OffloadSequence::ToSteps() const {
  RunsAndLoads steps;
  steps.reserve(At(step_count_));
  for (const int32_t step : step_at_) {
    if (step >= 0) steps.push_back(step);
  }
  return steps;
}

int32_t OffloadSequence::ReadyAt(int32_t step) const {
  if (IsLoad(problem_, step)) return made_at_[At(LoadedBy(problem_, step))].front();
  int32_t ready = -1;
  for (const int32_t read : problem_.reads[step]) {
    ready = std::max(ready, made_at_[At(read)].front());
  }
  return ready;
}

size_t OffloadSequence::VersionAt(int32_t value, int32_t slot) const {
  return VersionSeenAt(made_at_[At(value)], slot);
}

bool OffloadSequence::IsRead(int32_t slot) const {
  for (const int32_t write : WritesOf(step_at_[At(slot)])) {
    const std::vector<int32_t>& versions = made_at_[At(write)];
    const auto next_made = std::upper_bound(versions.begin(), versions.end(), slot);
    if (next_made == versions.end() && problem_.is_result[At(write)]) return true;
    const std::vector<int32_t>& reads = read_at_[At(write)];
    const auto next = std::upper_bound(reads.begin(), reads.end(), slot);
    if (next != reads.end() && (next_made == versions.end() || *next <= *next_made)) return true;
  }
  return false;
}

int32_t OffloadSequence::BeginOf(int32_t value, size_t k) const {
  const int32_t slot = made_at_[At(value)][k];
  if (!IsLoad(problem_, step_at_[At(slot)])) return slot;
  const int32_t first = FirstReadOf(value, k);
  return first < 0 ? slot : first;
}

int32_t OffloadSequence::FirstReadOf(int32_t value, size_t k) const {
  const std::vector<int32_t>& versions = made_at_[At(value)];
  const std::vector<int32_t>& reads = read_at_[At(value)];
  const auto first = std::upper_bound(reads.begin(), reads.end(), versions[k]);
  const bool is_read =
      first != reads.end() && (k + 1 == versions.size() || *first <= versions[k + 1]);
  return is_read ? *first : -1;
}

int32_t OffloadSequence::EndOf(int32_t value, size_t k) const {
  const std::vector<int32_t>& versions = made_at_[At(value)];
  if (k + 1 == versions.size() && problem_.is_result[At(value)]) return slot_count();
  const int32_t last = LastReadOf(versions, read_at_[At(value)], k);
  if (last < 0) return versions[k] + (IsLoad(problem_, step_at_[At(versions[k])]) ? 0 : 1);
  // The first version of a loaded value is in memory until it is copied.
  const bool is_taken_over = may_be_overwritten_[At(value)] && !(k == 0 && IsLoaded(value)) &&
                             MayBeOverwritten(problem_, step_at_[At(last)], value);
  return is_taken_over ? last : last + 1;
}

void OffloadSequence::Count(int32_t value, size_t k, int64_t sign) {
  const int64_t bytes = sign * problem_.bytes[At(value)];
  if (bytes == 0) return;
  tree_.Add(BeginOf(value, k), bytes);
  tree_.Add(EndOf(value, k), -bytes);
}

// Counts the versions whose lifetimes depend on the action in this slot, whether present or not.
void OffloadSequence::CountAround(int32_t step, int32_t slot, bool is_present, int64_t sign) {
  for (const int32_t read : ReadsOf(step)) Count(read, VersionAt(read, slot), sign);
  for (const int32_t write : WritesOf(step)) {
    const std::vector<int32_t>& versions = made_at_[At(write)];
    const auto at = static_cast<size_t>(std::lower_bound(versions.begin(), versions.end(), slot) -
                                        versions.begin());
    const size_t first = at == 0 ? 0 : at - 1;
    // A load changes whether the first version may be overwritten.
    if (IsLoad(problem_, step) && first > 0) Count(write, 0, sign);
    for (size_t k = first; k < at + (is_present ? 1 : 0); ++k) Count(write, k, sign);
  }
}

void OffloadSequence::CountWorkspace(int32_t step, int32_t slot, int64_t sign) {
  if (IsLoad(problem_, step) || problem_.workspace[At(step)] == 0) return;
  tree_.Add(slot, sign * problem_.workspace[At(step)]);
  tree_.Add(slot + 1, -sign * problem_.workspace[At(step)]);
}

void OffloadSequence::Insert(int32_t step, int32_t slot) {
  CountAround(step, slot, false, -1);
  Place(step, slot, true);
  CountAround(step, slot, true, 1);
  CountWorkspace(step, slot, 1);
}

void OffloadSequence::Erase(int32_t slot) {
  const int32_t step = step_at_[At(slot)];
  CountAround(step, slot, true, -1);
  CountWorkspace(step, slot, -1);
  Place(step, slot, false);
  CountAround(step, slot, false, 1);
}

void OffloadSequence::Place(int32_t step, int32_t slot, bool is_insertion) {
  const auto change = is_insertion ? InsertSorted : EraseSorted;
  step_at_[At(slot)] = is_insertion ? step : -1;
  change(&slots_of_[At(step)], slot);
  for (const int32_t read : ReadsOf(step)) change(&read_at_[At(read)], slot);
  for (const int32_t write : WritesOf(step)) change(&made_at_[At(write)], slot);
  if (IsLoad(problem_, step)) {
    const int32_t value = LoadedBy(problem_, step);
    if (is_insertion) {
      loaded_.push_back(value);
    } else {
      std::erase(loaded_, value);
    }
  }
  const int32_t more = is_insertion ? 1 : -1;
  step_count_ += more;
  if (!IsLoad(problem_, step)) cost_ += more * problem_.cost[At(step)];
  extra_.Set(step, slots_of_[At(step)].size() > (IsLoad(problem_, step) ? 0 : 1));
  changes_.push_back({step, slot, is_insertion});
}

void OffloadSequence::Commit() {
  changes_.clear();
  tree_.Commit();
}

void OffloadSequence::Revert() {
  tree_.Revert();
  while (!changes_.empty()) {
    const Change change = changes_.back();
    changes_.pop_back();
    Place(change.step, change.slot, !change.is_insertion);
    changes_.pop_back();  // Drop the change that Place recorded.
  }
}

// Fills in the runs without branches, because it runs for every sequence tried.
void OffloadSequence::ListRuns() {
  const size_t slots = step_at_.size();
  task_.cost.resize(At(step_count_) + 1);
  task_.bytes.resize(At(step_count_) + 1);
  run_of_slot_.resize(slots + 1);
  const auto ops = static_cast<uint32_t>(problem_.op_count);
  const std::span<const int64_t> changes = tree_.changes();
  int64_t live = 0;
  size_t run = 0;
  for (size_t slot = 0; slot < slots; ++slot) {
    live += changes[slot];
    run_of_slot_[slot] = static_cast<int32_t>(run);
    const auto step = static_cast<uint32_t>(step_at_[slot]);
    // Keep these writes only if the slot has a run.
    task_.cost[run] = step < ops ? problem_.cost[step] : 0;
    task_.bytes[run] = live;
    run += step < ops ? 1 : 0;
  }
  run_of_slot_.back() = static_cast<int32_t>(run);
  task_.cost.resize(run);
  task_.bytes.resize(run);
}

// Returns what a CopyScheduler does with the loaded value. If nothing reads the load, its first
// read is kUnread.
Absence OffloadSequence::AbsenceOf(int32_t value) const {
  Absence absence;
  absence.value = value;
  absence.first_read = kUnread;
  const std::vector<int32_t>& versions = made_at_[At(value)];
  const std::vector<int32_t>& reads = read_at_[At(value)];
  const int32_t load = SlotsOf(LoadOf(problem_, value)).front();
  const size_t version = VersionAt(value, load + 1);
  const int32_t first_read = FirstReadOf(value, version);
  if (first_read < 0) return absence;
  const auto last_before = [&](int32_t limit, int32_t least) {
    const auto next = std::lower_bound(reads.begin(), reads.end(), limit);
    return next == reads.begin() ? least : std::max(least, *(next - 1));
  };
  absence.bytes = problem_.bytes[At(value)];
  absence.made = run_of_slot_[At(versions.front())];
  absence.last_read = run_of_slot_[At(last_before(versions[1] + 1, versions.front()))];
  absence.back_after = run_of_slot_[At(last_before(load, versions[version - 1]))];
  absence.first_read = run_of_slot_[At(first_read)];
  absence.gone_by = version == 1 ? absence.first_read : run_of_slot_[At(versions[1])];
  return absence;
}

const CopyTask& OffloadSequence::Task() {
  ListRuns();
  task_.absences.clear();
  const auto is_before = [](const Absence& a, const Absence& b) {
    return std::pair(a.first_read, a.value) < std::pair(b.first_read, b.value);
  };
  for (const int32_t value : loaded_) {
    // Insertion sort: all but the changed elements are already in order.
    const Absence absence = AbsenceOf(value);
    auto to = task_.absences.insert(task_.absences.end(), absence);
    for (; to != task_.absences.begin() && is_before(absence, *(to - 1)); --to) *to = *(to - 1);
    *to = absence;
  }
  for (size_t i = 0; i < loaded_.size(); ++i) loaded_[i] = task_.absences[i].value;
  while (!task_.absences.empty() && task_.absences.back().first_read == kUnread) {
    task_.absences.pop_back();
  }
  return task_;
}

}  // namespace ckplan
