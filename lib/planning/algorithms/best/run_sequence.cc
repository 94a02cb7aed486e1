#include "lib/planning/algorithms/best/run_sequence.h"

#include <algorithm>
#include <bit>

#include "lib/planning/algorithms/best/flat_simulation.h"

namespace ckplan {

void PeakTree::Build(std::span<const int64_t> changes) {
  leaf_count_ = std::bit_ceil(changes.size() + 1);
  sums_.assign(2 * leaf_count_, 0);
  maxima_.assign(2 * leaf_count_, 0);
  for (size_t i = 0; i < changes.size(); ++i) SetNode(leaf_count_ + i, {changes[i], changes[i]});
  for (size_t parent = leaf_count_ - 1; parent > 0; --parent) SetNode(parent, Join(parent));
  pending_.clear();
  overwritten_.clear();
}

// Most moves have about ten changes, where insertion sort is fastest; a few have thousands.
void PeakTree::SortPending() {
  constexpr size_t kFew = 24;
  if (pending_.size() > kFew) {
    std::sort(pending_.begin(), pending_.end());
    return;
  }
  for (size_t i = 1; i < pending_.size(); ++i) {
    const std::pair<int32_t, int64_t> moved = pending_[i];
    size_t to = i;
    for (; to > 0 && pending_[to - 1].first > moved.first; --to) pending_[to] = pending_[to - 1];
    pending_[to] = moved;
  }
}

void PeakTree::ApplyToLeaves() {
  changed_.clear();
  for (size_t i = 0; i < pending_.size();) {
    const int32_t slot = pending_[i].first;
    int64_t change = 0;
    for (; i < pending_.size() && pending_[i].first == slot; ++i) change += pending_[i].second;
    if (change == 0) continue;
    const size_t leaf = leaf_count_ + static_cast<size_t>(slot);
    overwritten_.emplace_back(leaf, NodeAt(leaf));
    SetNode(leaf, {sums_[leaf] + change, sums_[leaf] + change});
    changed_.push_back(leaf);
  }
  pending_.clear();
}

void PeakTree::Apply() {
  applied_ += static_cast<int64_t>(pending_.size());
  SortPending();
  ApplyToLeaves();
  while (!changed_.empty() && changed_.front() > 1) {
    size_t kept = 0;
    size_t last = 0;
    for (const size_t node : changed_) {
      const size_t parent = node / 2;
      if (parent == last) continue;
      last = parent;
      const Node joined = Join(parent);
      const Node before = NodeAt(parent);
      if (joined == before) continue;
      overwritten_.emplace_back(parent, before);
      SetNode(parent, joined);
      changed_[kept++] = parent;
    }
    changed_.resize(kept);
  }
}

void PeakTree::Revert() {
  for (size_t i = overwritten_.size(); i-- > 0;) {
    SetNode(overwritten_[i].first, overwritten_[i].second);
  }
  overwritten_.clear();
}

int32_t PeakTree::ArgMax() const {
  size_t node = 1;
  while (node < leaf_count_) {
    const size_t left = 2 * node;
    node = maxima_[left] == MaxOfBoth(left) ? left : left + 1;
  }
  return static_cast<int32_t>(node - leaf_count_);
}

namespace {

constexpr int32_t kSlotsPerRun = 4;
constexpr int32_t kSpareSlots = 64;

// Replaces `from` by `to` in an ascending list; -1 means none.
void Replace(std::vector<int32_t>* list, int32_t from, int32_t to) {
  if (from < 0) {
    list->insert(std::lower_bound(list->begin(), list->end(), to), to);
    return;
  }
  auto at = std::lower_bound(list->begin(), list->end(), from);
  if (to < 0) {
    list->erase(at);
    return;
  }
  for (; at != list->begin() && *(at - 1) > to; --at) *at = *(at - 1);
  for (; at + 1 != list->end() && *(at + 1) < to; ++at) *at = *(at + 1);
  *at = to;
}

}  // namespace

RunSequence::RunSequence(const RunProblem& problem, std::span<const OpId> runs)
    : problem_(problem), may_be_overwritten_(OverwritableValues(problem)) {
  Load(runs);
}

void RunSequence::Load(std::span<const OpId> runs) {
  const auto count = static_cast<int32_t>(runs.size());
  op_at_.assign(At(kSlotsPerRun * count + kSpareSlots), -1);
  runs_of_.resize(At(problem_.op_count));
  reads_of_.resize(At(problem_.value_count));
  for (std::vector<int32_t>& list : runs_of_) list.clear();
  for (std::vector<int32_t>& list : reads_of_) list.clear();
  repeated_.Reset(At(problem_.op_count));
  cost_ = 0;
  run_count_ = 0;
  for (int32_t i = 0; i < count; ++i) {
    Place(runs[At(i)].index(), -1, kSlotsPerRun * i + kSlotsPerRun);
  }
  changes_.clear();

  std::vector<int64_t> bytes(op_at_.size() + 1, 0);
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (problem_.producer[At(value)] < 0) continue;
    const std::vector<int32_t>& versions = runs_of_[At(problem_.producer[At(value)])];
    for (size_t k = 0; k < versions.size(); ++k) {
      bytes[At(versions[k])] += problem_.bytes[At(value)];
      bytes[At(EndOf(value, k))] -= problem_.bytes[At(value)];
    }
  }
  for (int32_t slot = 0; slot < slot_count(); ++slot) {
    if (op_at_[At(slot)] < 0) continue;
    bytes[At(slot)] += problem_.workspace[At(op_at_[At(slot)])];
    bytes[At(slot) + 1] -= problem_.workspace[At(op_at_[At(slot)])];
  }
  tree_.Build(bytes);
  saved_ = committed_saved_ = SumSaved();
}

// Tells whether the version is in memory after the loss, which does not write it.
bool RunSequence::IsSaved(int32_t value, size_t k) const {
  const std::vector<int32_t>& versions = runs_of_[At(problem_.producer[At(value)])];
  if (versions[k] >= LossSlot()) return false;
  if (k + 1 == versions.size() && problem_.is_result[At(value)]) return true;
  return LastReadOf(versions, reads_of_[At(value)], k) > LossSlot();
}

int64_t RunSequence::SumSaved() const {
  if (problem_.others.count == 0) return 0;
  int64_t saved = 0;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (problem_.producer[At(value)] < 0) continue;
    for (size_t k = 0; k < runs_of_[At(problem_.producer[At(value)])].size(); ++k) {
      if (IsSaved(value, k)) saved += problem_.bytes[At(value)];
    }
  }
  return saved;
}

void RunSequence::Respace() { Load(ToRuns()); }

Runs RunSequence::ToRuns() const {
  Runs runs;
  runs.reserve(At(run_count_));
  for (const int32_t op : op_at_) {
    if (op >= 0) runs.emplace_back(op);
  }
  return runs;
}

int32_t RunSequence::ReadsReadyAt(int32_t op) const {
  int32_t ready = -1;
  for (const int32_t read : problem_.reads[op]) {
    ready = std::max(ready, runs_of_[At(problem_.producer[At(read)])].front());
  }
  return ready;
}

RunSequence::Window RunSequence::WindowOf(int32_t op, size_t k) const {
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  Window window = {ReadsReadyAt(op), slot_count()};
  if (k > 0) window.after = std::max(window.after, runs[k - 1]);
  if (k + 1 < runs.size()) window.before = runs[k + 1];
  if (k > 0) return window;
  for (const int32_t write : problem_.writes[op]) {
    const std::vector<int32_t>& reads = reads_of_[At(write)];
    if (!reads.empty()) window.before = std::min(window.before, reads.front());
  }
  return window;
}

bool RunSequence::MayErase(int32_t op, size_t k) const {
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  if (runs.size() < 2) return false;
  if (k > 0) return true;
  for (const int32_t write : problem_.writes[op]) {
    const std::vector<int32_t>& reads = reads_of_[At(write)];
    if (!reads.empty() && reads.front() < runs[1]) return false;
  }
  return true;
}

size_t RunSequence::VersionAt(int32_t op, int32_t slot) const {
  return VersionSeenAt(runs_of_[At(op)], slot);
}

bool RunSequence::IsRead(int32_t op, size_t k) const {
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  const int32_t before = k + 1 < runs.size() ? runs[k + 1] : slot_count();
  for (const int32_t write : problem_.writes[op]) {
    if (k + 1 == runs.size() && problem_.is_result[At(write)]) return true;
    const std::vector<int32_t>& reads = reads_of_[At(write)];
    const auto next = std::upper_bound(reads.begin(), reads.end(), runs[k]);
    if (next != reads.end() && *next < before) return true;
  }
  return false;
}

int32_t RunSequence::EndOf(int32_t value, size_t k) const {
  const std::vector<int32_t>& versions = runs_of_[At(problem_.producer[At(value)])];
  if (k + 1 == versions.size() && problem_.is_result[At(value)]) return slot_count();
  const int32_t last = LastReadOf(versions, reads_of_[At(value)], k);
  if (last < 0) return versions[k] + 1;
  const bool is_taken_over =
      may_be_overwritten_[At(value)] && MayBeOverwritten(problem_, op_at_[At(last)], value);
  return is_taken_over ? last : last + 1;
}

// Adds or removes the version's lifetime in the changes of memory.
void RunSequence::Count(int32_t value, size_t k, int64_t sign) {
  const int64_t bytes = sign * problem_.bytes[At(value)];
  if (bytes == 0) return;
  tree_.Add(runs_of_[At(problem_.producer[At(value)])][k], bytes);
  tree_.Add(EndOf(value, k), -bytes);
  if (problem_.others.count > 0 && IsSaved(value, k)) saved_ += bytes;
}

// Counts the versions that a run in this slot reads or would read.
void RunSequence::CountAround(int32_t op, int32_t slot, int64_t sign) {
  for (const int32_t read : problem_.reads[op]) {
    Count(read, VersionAt(problem_.producer[At(read)], slot), sign);
  }
}

// Counts the versions that the operation's runs [first, end) write.
void RunSequence::CountWrites(int32_t op, size_t first, size_t end, int64_t sign) {
  for (const int32_t write : problem_.writes[op]) {
    for (size_t k = first; k < end; ++k) Count(write, k, sign);
  }
}

void RunSequence::CountWorkspace(int32_t op, int32_t slot, int64_t sign) {
  if (problem_.workspace[At(op)] == 0) return;
  tree_.Add(slot, sign * problem_.workspace[At(op)]);
  tree_.Add(slot + 1, -sign * problem_.workspace[At(op)]);
}

void RunSequence::Insert(int32_t op, int32_t slot) {
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  const auto k =
      static_cast<size_t>(std::lower_bound(runs.begin(), runs.end(), slot) - runs.begin());
  const size_t before = k == 0 ? 0 : k - 1;
  CountAround(op, slot, -1);
  CountWrites(op, before, k, -1);
  Place(op, -1, slot);
  CountAround(op, slot, 1);
  CountWrites(op, before, k + 1, 1);
  CountWorkspace(op, slot, 1);
}

void RunSequence::Erase(int32_t slot) {
  const int32_t op = op_at_[At(slot)];
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  const auto k =
      static_cast<size_t>(std::lower_bound(runs.begin(), runs.end(), slot) - runs.begin());
  const size_t before = k == 0 ? 0 : k - 1;
  CountAround(op, slot, -1);
  CountWrites(op, before, k + 1, -1);
  Place(op, slot, -1);
  CountAround(op, slot, 1);
  CountWrites(op, before, k, 1);
  CountWorkspace(op, slot, -1);
}

void RunSequence::Shift(int32_t from, int32_t to) {
  const int32_t op = op_at_[At(from)];
  const std::vector<int32_t>& runs = runs_of_[At(op)];
  const auto k =
      static_cast<size_t>(std::lower_bound(runs.begin(), runs.end(), from) - runs.begin());
  const size_t before = k == 0 ? 0 : k - 1;
  const auto count_reads = [&](int64_t sign) {
    for (const int32_t read : problem_.reads[op]) {
      const int32_t producer = problem_.producer[At(read)];
      const size_t old_version = VersionAt(producer, from);
      const size_t new_version = VersionAt(producer, to);
      Count(read, old_version, sign);
      if (new_version != old_version) Count(read, new_version, sign);
    }
  };
  count_reads(-1);
  CountWrites(op, before, k + 1, -1);
  CountWorkspace(op, from, -1);
  Place(op, from, to);
  count_reads(1);
  CountWrites(op, before, k + 1, 1);
  CountWorkspace(op, to, 1);
  if (op == problem_.others.loss) saved_ = SumSaved();
}

// Moves the run between slots in all lists; -1 means no slot.
void RunSequence::Place(int32_t op, int32_t from, int32_t to) {
  if (from >= 0) op_at_[At(from)] = -1;
  if (to >= 0) op_at_[At(to)] = op;
  std::vector<int32_t>& runs = runs_of_[At(op)];
  Replace(&runs, from, to);
  for (const int32_t read : problem_.reads[op]) Replace(&reads_of_[At(read)], from, to);
  const int32_t more = (to >= 0 ? 1 : 0) - (from >= 0 ? 1 : 0);
  if (more != 0) {
    run_count_ += more;
    cost_ += more * problem_.cost[At(op)];
    repeated_.Set(op, runs.size() > 1);
  }
  changes_.push_back({op, from, to});
}

std::vector<int32_t> RunSequence::Changed() const {
  std::vector<int32_t> ops;
  for (const Change& change : changes_) ops.push_back(change.op);
  return ops;
}

void RunSequence::Commit() {
  changes_.clear();
  tree_.Commit();
  committed_saved_ = saved_;
}

void RunSequence::Revert() {
  tree_.Revert();
  saved_ = committed_saved_;
  while (!changes_.empty()) {
    const Change change = changes_.back();
    changes_.pop_back();
    Place(change.op, change.to, change.from);
    changes_.pop_back();  // Drop the change that Place recorded.
  }
}

}  // namespace ckplan
