#include "lib/problem/runs/copy_schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace ckplan {

void CopyScheduler::Prepare() {
  plan_.fits = true;
  plan_.end = plan_.host_peak = 0;
  plan_.steps.clear();
  bytes_ = task_->bytes;
  start_.resize(task_->cost.size() + 1);
  start_[0] = 0;
  for (size_t i = 0; i < task_->cost.size(); ++i) start_[i + 1] = start_[i] + task_->cost[i];
  state_.assign(task_->absences.size(), State::kWaiting);
  ready_.assign(task_->absences.size(), 0);
  is_held_.assign(task_->absences.size(), false);
  next_back_ = next_read_ = 0;
  pending_.clear();
  sent_.clear();
  next_sent_ = 0;
  full_run_ = -1;
  held_bytes_ = host_bytes_ = now_ = out_free_ = in_free_ = 0;
  latest_start_.resize(task_->absences.size() + 1);
  ListEvents();
  FindLatestStarts();
}

// Lists events by run. Sorting the absences would take longer than scheduling them.
void CopyScheduler::ListEvents() {
  events_.assign(task_->cost.size() + 1, {});
  next_.resize(task_->absences.size());
  for (size_t i = task_->absences.size(); i-- > 0;) {
    const Absence& absence = task_->absences[i];
    const auto number = static_cast<int32_t>(i);
    const auto events_at = [&](int32_t run) -> Events& {
      return events_[static_cast<size_t>(run)];
    };
    next_[i].made = std::exchange(events_at(absence.made + 1).made, number);
    next_[i].read = std::exchange(events_at(absence.last_read + 1).read, number);
    next_[i].gone = std::exchange(events_at(absence.gone_by).gone, number);
  }
}

void CopyScheduler::FindLatestStarts() {
  int64_t end = latest_start_.back() = std::numeric_limits<int64_t>::max();
  for (size_t i = task_->absences.size(); i-- > 0;) {
    const Absence& absence = task_->absences[i];
    end = std::min(end, start_[static_cast<size_t>(absence.first_read)]);
    end -= TimeOf(CopyWay::kIn, absence) * lead_percent_ / 100;
    latest_start_[i] = end;
  }
}

const CopyPlan& CopyScheduler::Run(const CopyTask& task, int64_t budget, int64_t latest_end) {
  task_ = &task;
  budget_ = budget;
  Prepare();
  const auto runs = static_cast<int32_t>(task.cost.size());
  for (int32_t run = 0; run < runs; ++run) {
    // Usually none of these conditions holds.
    const auto at = static_cast<size_t>(run);
    if (events_[at].is_any()) ProcessEvents(run);
    if (next_sent_ < sent_.size() && sent_[next_sent_].first <= now_) DropComplete(run);
    if (bytes_[at] + held_bytes_ > budget_ && !MakeRoom(run)) {
      plan_.fits = false;
      return plan_;
    }
    if (latest_start_[next_back_] <= start_[at + 1]) BringBack(run);
    const bool is_read = next_read_ < next_back_ && task.absences[next_read_].first_read == run;
    if (!pending_.empty() && (is_read || out_free_ < now_ + task.cost[at])) SendPending(run);
    if (is_read) Read(run);
    now_ += task.cost[at];
    plan_.runs = run + 1;
    if (now_ > latest_end - (start_.back() - start_[at + 1])) break;
  }
  plan_.end = now_ + start_.back() - start_[static_cast<size_t>(plan_.runs)];
  return plan_;
}

// Registers the values that the previous run produced or read for the last time, and drops values
// that this run recomputes.
void CopyScheduler::ProcessEvents(int32_t run) {
  const Events events = events_[static_cast<size_t>(run)];
  for (int32_t i = events.made; i >= 0; i = next_[static_cast<size_t>(i)].made) {
    pending_.emplace_back(At(i).last_read, i);
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
  }
  for (int32_t i = events.read; i >= 0; i = next_[static_cast<size_t>(i)].read) {
    const auto at = static_cast<size_t>(i);
    is_held_[at] = true;
    held_bytes_ += At(i).bytes;
    if (state_[at] == State::kUnderWay && ready_[at] <= now_) Drop(i, run);
  }
  for (int32_t i = events.gone; i >= 0; i = next_[static_cast<size_t>(i)].gone)
    EnsureDropped(i, run);
}

// Drops values whose copies are complete, in the order in which the copies began. A value that is
// still to be read is dropped after its last read.
void CopyScheduler::DropComplete(int32_t run) {
  for (; next_sent_ < sent_.size() && sent_[next_sent_].first <= now_; ++next_sent_) {
    const int32_t absence = sent_[next_sent_].second;
    if (IsHeldUnderWay(absence)) Drop(absence, run);
  }
}

void CopyScheduler::BringBack(int32_t run) {
  while (next_back_ < task_->absences.size()) {
    const auto absence = static_cast<int32_t>(next_back_);
    if (At(absence).first_read > run && !CanBringBack(absence, run)) return;
    EnsureDropped(absence, run);
    StartBack(absence, run);
    ++next_back_;
    full_run_ = -1;
  }
}

// Returns true if the copy back can and should begin during this run, and its memory fits.
bool CopyScheduler::CanBringBack(int32_t absence, int32_t run) {
  const int64_t run_end = start_[static_cast<size_t>(run) + 1];
  const int64_t waited = now_ - start_[static_cast<size_t>(run)];
  if (latest_start_[static_cast<size_t>(absence)] >= run_end || in_free_ - waited >= run_end) {
    return false;
  }
  const Absence& what = At(absence);
  if (what.back_after >= run || state_[static_cast<size_t>(absence)] != State::kDropped) {
    return false;
  }
  const int64_t room = budget_ - what.bytes - held_bytes_;
  // Usually, the run that had no room last time still has none.
  if (full_run_ >= run && bytes_[static_cast<size_t>(full_run_)] > room) return false;
  for (int32_t i = what.first_read; i-- > run;) {
    if (bytes_[static_cast<size_t>(i)] <= room) continue;
    full_run_ = i;
    return false;
  }
  return true;
}

// Waits for the values that the run is the first to read. Their copies on the host end.
void CopyScheduler::Read(int32_t run) {
  for (; next_read_ < next_back_ && task_->absences[next_read_].first_read == run; ++next_read_) {
    now_ = std::max(now_, ready_[next_read_]);
    host_bytes_ -= task_->absences[next_read_].bytes;
  }
}

// Begins the copies out that can begin before the run ends, after it has waited for its reads.
void CopyScheduler::SendPending(int32_t run) {
  int64_t begin = now_;
  for (size_t i = next_read_; i < next_back_ && task_->absences[i].first_read == run; ++i) {
    begin = std::max(begin, ready_[i]);
  }
  const int64_t end = begin + task_->cost[static_cast<size_t>(run)];
  while (out_free_ < end && NextPending() >= 0) Send(NextPending(), run);
}

// Returns the value to copy out next, or -1.
int32_t CopyScheduler::NextPending() {
  while (!pending_.empty()) {
    const int32_t absence = pending_.front().second;
    if (state_[static_cast<size_t>(absence)] == State::kWaiting) return absence;
    std::pop_heap(pending_.begin(), pending_.end(), std::greater<>());
    pending_.pop_back();
  }
  return -1;
}

// Drops values until the run fits, in the order in which their copies complete. Returns false if no
// value is left to drop.
bool CopyScheduler::MakeRoom(int32_t run) {
  for (size_t i = next_sent_; bytes_[static_cast<size_t>(run)] + held_bytes_ > budget_; ++i) {
    if (i == sent_.size()) {
      const int32_t absence = NextPending();
      if (absence < 0 || !is_held_[static_cast<size_t>(absence)]) return false;
      Send(absence, run);
    }
    if (IsHeldUnderWay(sent_[i].second)) Drop(sent_[i].second, run);
  }
  return true;
}

void CopyScheduler::Send(int32_t absence, int32_t run) {
  const auto at = static_cast<size_t>(absence);
  ready_[at] = std::max(out_free_, now_) + TimeOf(CopyWay::kOut, At(absence));
  out_free_ = ready_[at];
  if (link_.duplex == Duplex::kHalf) in_free_ = out_free_;
  state_[at] = State::kUnderWay;
  sent_.emplace_back(ready_[at], absence);
  host_bytes_ += At(absence).bytes;
  plan_.host_peak = std::max(plan_.host_peak, host_bytes_);
  Add(CopyStepKind::kOut, absence, run);
}

// Drops a value after waiting for its copy.
void CopyScheduler::Drop(int32_t absence, int32_t run) {
  now_ = std::max(now_, ready_[static_cast<size_t>(absence)]);
  state_[static_cast<size_t>(absence)] = State::kDropped;
  held_bytes_ -= At(absence).bytes;
  Add(CopyStepKind::kDrop, absence, run);
}

void CopyScheduler::EnsureDropped(int32_t absence, int32_t run) {
  if (state_[static_cast<size_t>(absence)] == State::kDropped) return;
  if (state_[static_cast<size_t>(absence)] == State::kWaiting) Send(absence, run);
  Drop(absence, run);
}

void CopyScheduler::StartBack(int32_t absence, int32_t run) {
  const auto at = static_cast<size_t>(absence);
  const Absence& what = At(absence);
  ready_[at] = std::max({in_free_, now_, ready_[at]}) + TimeOf(CopyWay::kIn, what);
  in_free_ = ready_[at];
  if (link_.duplex == Duplex::kHalf) out_free_ = in_free_;
  for (int32_t i = run; i < what.first_read; ++i) bytes_[static_cast<size_t>(i)] += what.bytes;
  Add(CopyStepKind::kIn, absence, run);
}

void CopyScheduler::Add(CopyStepKind kind, int32_t absence, int32_t run) {
  plan_.steps.push_back({kind, At(absence).value, run});
}

}  // namespace ckplan
