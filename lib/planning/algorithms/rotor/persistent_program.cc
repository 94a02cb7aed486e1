#include "lib/planning/algorithms/rotor/persistent_program.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

// m_all: the memory that F_all of s needs, and later the backward of s, while the gradient of t is
// live.
int64_t NeedToSaveAll(std::span<const Stage> stages, size_t s, size_t t) {
  return std::max(stages[t].gradient + stages[s].forward_all, stages[s].backward);
}

// m_none for a single stage: the memory that F_ck of s or F_none of `stage` needs, while the
// gradient of t is live.
int64_t NeedToPass(std::span<const Stage> stages, size_t s, size_t stage, size_t t) {
  const int64_t input = stage == s ? 0 : stages[stage - 1].output;
  return stages[t].gradient + input + stages[stage].forward;
}

}  // namespace

int64_t LeastMemory(std::span<const Stage> stages) {
  const size_t count = stages.size();
  std::vector<std::vector<int64_t>> least(count, std::vector<int64_t>(count));
  for (size_t s = count; s-- > 0;) {
    PollStop();
    for (size_t t = s; t < count; ++t) {
      int64_t best = NeedToSaveAll(stages, s, t);
      if (s < t) best = std::max(best, stages[s].saved + least[s + 1][t]);
      int64_t pass = 0;
      for (size_t k = s + 1; k <= t; ++k) {
        pass = std::max(pass, NeedToPass(stages, s, k - 1, t));
        best =
            std::min(best, std::max({pass, stages[k - 1].output + least[k][t], least[s][k - 1]}));
      }
      least[s][t] = best;
    }
  }
  return least[0][count - 1];
}

int64_t MemoryToSaveAll(std::span<const Stage> stages) {
  int64_t need = 0;
  for (size_t s = stages.size(); s-- > 0;) {
    const bool is_last = s + 1 == stages.size();
    need =
        std::max(NeedToSaveAll(stages, s, stages.size() - 1), is_last ? 0 : stages[s].saved + need);
  }
  return need;
}

PersistentProgram::PersistentProgram(std::vector<Stage> stages, int64_t slots)
    : stages_(std::move(stages)),
      count_(stages_.size()),
      slots_(slots),
      time_before_(count_ + 1),
      cost_(count_ * count_ * static_cast<size_t>(slots + 1), kInfinite),
      enough_(count_ * count_) {
  for (size_t i = 0; i < count_; ++i) time_before_[i + 1] = time_before_[i] + stages_[i].time;
  for (size_t s = count_; s-- > 0;) {
    for (size_t t = s; t < count_; ++t) Fill(s, t);
  }
}

void PersistentProgram::Fill(size_t s, size_t t) {
  PollStop();
  const int64_t saved = s < t ? stages_[s].saved : 0;
  int64_t* const row = cost_.data() + Row(s, t);
  for (int64_t m = std::max(saved, NeedToSaveAll(stages_, s, t)); m <= slots_; ++m) {
    row[m] = stages_[s].time + (s < t ? At(s + 1, t, m - saved) : 0);
  }
  int64_t& enough = enough_[s * count_ + t];
  enough = NeedToSaveAll(stages_, s, t);
  if (s < t) enough = std::max(enough, saved + enough_[(s + 1) * count_ + t]);
  int64_t need = 0;
  for (size_t k = s + 1; k <= t; ++k) {
    need = std::max(need, NeedToPass(stages_, s, k - 1, t));
    Offer(s, t, k, need, enough);
  }
}

// The innermost loop, over plain arrays so that it is vectorised. With `enough` slots or more,
// every stage runs once, which cannot be improved.
void PersistentProgram::Offer(size_t s, size_t t, size_t k, int64_t need, int64_t enough) {
  const int64_t output = stages_[k - 1].output;
  const int64_t time = TimeBetween(s, k);
  int64_t* const row = cost_.data() + Row(s, t);
  const int64_t* const later = cost_.data() + Row(k, t);
  const int64_t* const before = cost_.data() + Row(s, k - 1);
  const int64_t end = std::min(slots_ + 1, enough);
  for (int64_t m = std::max(need, output); m < end; ++m) {
    row[m] = std::min(row[m], time + later[m - output] + before[m]);
  }
}

size_t PersistentProgram::ChoiceAt(size_t s, size_t t, int64_t slots) const {
  const int64_t best = At(s, t, slots);
  const int64_t saved = s < t ? stages_[s].saved : 0;
  if (slots >= std::max(saved, NeedToSaveAll(stages_, s, t)) &&
      best == stages_[s].time + (s < t ? At(s + 1, t, slots - saved) : 0)) {
    return kSaveAll;
  }
  int64_t need = 0;
  for (size_t k = s + 1; k <= t; ++k) {
    need = std::max(need, NeedToPass(stages_, s, k - 1, t));
    const int64_t output = stages_[k - 1].output;
    if (slots < std::max(need, output)) continue;
    if (best == TimeBetween(s, k) + At(k, t, slots - output) + At(s, k - 1, slots)) return k;
  }
  CKPLAN_CHECK(false, "a finite cost comes from one of the choices");
}

std::vector<StageRun> PersistentProgram::Runs() const {
  std::vector<StageRun> runs;
  AddRuns(0, count_ - 1, slots_, &runs);
  return runs;
}

void PersistentProgram::AddRuns(size_t s, size_t t, int64_t slots,
                                std::vector<StageRun>* runs) const {
  const size_t choice = ChoiceAt(s, t, slots);
  if (choice == kSaveAll) {
    runs->push_back({s, false});
    if (s < t) AddRuns(s + 1, t, slots - stages_[s].saved, runs);
    runs->push_back({s, true});
    return;
  }
  for (size_t stage = s; stage < choice; ++stage) runs->push_back({stage, false});
  AddRuns(choice, t, slots - stages_[choice - 1].output, runs);
  AddRuns(s, choice - 1, slots, runs);
}

int64_t PersistentProgram::PeakOf(std::span<const Stage> stages) const {
  return PeakOf(stages, 0, count_ - 1, slots_);
}

int64_t PersistentProgram::PeakOf(std::span<const Stage> stages, size_t s, size_t t,
                                  int64_t slots) const {
  const size_t choice = ChoiceAt(s, t, slots);
  if (choice == kSaveAll) {
    const int64_t own = NeedToSaveAll(stages, s, t);
    if (s == t) return own;
    return std::max(own, stages[s].saved + PeakOf(stages, s + 1, t, slots - stages_[s].saved));
  }
  int64_t peak = 0;
  for (size_t stage = s; stage < choice; ++stage) {
    peak = std::max(peak, NeedToPass(stages, s, stage, t));
  }
  const int64_t output = stages[choice - 1].output;
  peak = std::max(peak, output + PeakOf(stages, choice, t, slots - stages_[choice - 1].output));
  return std::max(peak, PeakOf(stages, s, choice - 1, slots));
}

}  // namespace ckplan
