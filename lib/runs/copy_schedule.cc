#include "lib/runs/copy_schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

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
  const auto sort_by = [&](std::vector<int32_t>* list, int32_t Absence::*member) {
    list->resize(task_->absences.size());
    std::iota(list->begin(), list->end(), 0);
    std::sort(list->begin(), list->end(), [&](int32_t a, int32_t b) {
      return std::pair(At(a).*member, a) < std::pair(At(b).*member, b);
    });
  };
  sort_by(&by_made_, &Absence::made);
  sort_by(&by_last_read_, &Absence::last_read);
  sort_by(&by_gone_, &Absence::gone_by);
  next_made_ = next_last_read_ = next_gone_ = next_back_ = next_read_ = 0;
  next_event_ = 0;
  pending_.clear();
  sent_.clear();
  next_sent_ = 0;
  full_run_ = -1;
  held_bytes_ = host_bytes_ = now_ = out_free_ = in_free_ = 0;
  latest_start_.resize(task_->absences.size());
  FindLatestStarts();
}

void CopyScheduler::FindLatestStarts() {
  int64_t end = std::numeric_limits<int64_t>::max();
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
    // Mostly there is nothing to do.
    if (run >= next_event_) TakeNew(run);
    if (next_sent_ < sent_.size() && sent_[next_sent_].first <= now_) DropComplete(run);
    const bool is_full = bytes_[static_cast<size_t>(run)] + held_bytes_ > budget_;
    if (is_full && !MakeRoom(run)) {
      plan_.fits = false;
      return plan_;
    }
    if (next_back_ < task.absences.size()) BringBack(run);
    if (!pending_.empty()) SendPending(run);
    while (next_read_ < task.absences.size() && task.absences[next_read_].first_read == run) {
      now_ = std::max(now_, ready_[next_read_++]);
    }
    now_ += task.cost[static_cast<size_t>(run)];
    for (size_t i = next_read_; i-- > 0 && task.absences[i].first_read == run;) {
      host_bytes_ -= task.absences[i].bytes;
    }
    plan_.runs = run + 1;
    if (now_ > latest_end - (start_.back() - start_[static_cast<size_t>(plan_.runs)])) break;
  }
  plan_.end = now_ + start_.back() - start_[static_cast<size_t>(plan_.runs)];
  return plan_;
}

// Takes in what the runs before this one have made and read for the last time, and drops what this
// run makes again.
void CopyScheduler::TakeNew(int32_t run) {
  for (; next_made_ < by_made_.size() && At(by_made_[next_made_]).made < run; ++next_made_) {
    const int32_t absence = by_made_[next_made_];
    pending_.emplace_back(At(absence).last_read, absence);
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>());
  }
  while (next_last_read_ < by_last_read_.size() &&
         At(by_last_read_[next_last_read_]).last_read < run) {
    const int32_t absence = by_last_read_[next_last_read_++];
    const auto at = static_cast<size_t>(absence);
    is_held_[at] = true;
    held_bytes_ += At(absence).bytes;
    if (state_[at] == State::kUnderWay && ready_[at] <= now_) Drop(absence, run);
  }
  for (; next_gone_ < by_gone_.size() && At(by_gone_[next_gone_]).gone_by <= run; ++next_gone_) {
    MakeGone(by_gone_[next_gone_], run);
  }
  next_event_ = std::numeric_limits<int32_t>::max();
  if (next_made_ < by_made_.size()) next_event_ = At(by_made_[next_made_]).made + 1;
  if (next_last_read_ < by_last_read_.size()) {
    next_event_ = std::min(next_event_, At(by_last_read_[next_last_read_]).last_read + 1);
  }
  if (next_gone_ < by_gone_.size()) {
    next_event_ = std::min(next_event_, At(by_gone_[next_gone_]).gone_by);
  }
}

// Drops values whose copies are complete, in the order in which these began. Those whose last read
// is still to come are dropped after it.
void CopyScheduler::DropComplete(int32_t run) {
  for (; next_sent_ < sent_.size() && sent_[next_sent_].first <= now_; ++next_sent_) {
    const int32_t absence = sent_[next_sent_].second;
    if (IsHeldUnderWay(absence)) Drop(absence, run);
  }
}

void CopyScheduler::BringBack(int32_t run) {
  while (next_back_ < task_->absences.size()) {
    const auto absence = static_cast<int32_t>(next_back_);
    if (At(absence).first_read > run && !MayBringBack(absence, run)) return;
    MakeGone(absence, run);
    StartBack(absence, run);
    ++next_back_;
    full_run_ = -1;
  }
}

// Whether the copy back would begin during this run, should begin by then, and fits.
bool CopyScheduler::MayBringBack(int32_t absence, int32_t run) {
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
  // Mostly there is no room at the same run as before.
  if (full_run_ >= run && bytes_[static_cast<size_t>(full_run_)] > room) return false;
  for (int32_t i = what.first_read; i-- > run;) {
    if (bytes_[static_cast<size_t>(i)] <= room) continue;
    full_run_ = i;
    return false;
  }
  return true;
}

// Begins the copies out that can begin before the run ends. The run waits for what it reads.
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

// Drops values until the run fits, first those whose copies are complete first. Returns false if
// there is none left to drop.
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

// Drops a value whose copy is under way, or complete.
void CopyScheduler::Drop(int32_t absence, int32_t run) {
  now_ = std::max(now_, ready_[static_cast<size_t>(absence)]);
  state_[static_cast<size_t>(absence)] = State::kDropped;
  held_bytes_ -= At(absence).bytes;
  Add(CopyStepKind::kDrop, absence, run);
}

void CopyScheduler::MakeGone(int32_t absence, int32_t run) {
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
