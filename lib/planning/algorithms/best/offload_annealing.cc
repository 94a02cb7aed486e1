#include "lib/planning/algorithms/best/offload_annealing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/base/stop.h"

namespace ckplan {
namespace {

// The temperature falls geometrically over 2^10 stages, so that ten square roots give the ratio.
constexpr int kOffloadStageRoots = 10;
constexpr int64_t kOffloadStages = 1 << kOffloadStageRoots;
constexpr size_t kOffloadThresholds = 4096;
constexpr int kOffloadTries = 24;
constexpr int kOffloadRepairs = 3;
constexpr size_t kMaxMissing = 4;
constexpr int64_t kOffloadStopPolls = 64;
// Temperatures are relative to the time that the sequence adds, but to at least this part of a
// step: a plan that adds almost nothing could not change otherwise.
constexpr double kMinHeat = 3e-2;
// The charge for memory above the budget is adjusted after this many stages: it rises by the first
// factor or falls by the second.
constexpr int64_t kRaiseStages = kOffloadStages / 16;
constexpr int64_t kFollowStages = kOffloadStages / 64;
constexpr double kChargeRise = 1.5;
constexpr double kChargeFall = 0.9;
// No sequence ends later: a double below the largest time.
constexpr double kLatestEnd = 0x1p62;
// The work of a move that is rejected before it is scheduled, in actions.
constexpr int64_t kWorkOfMove = 50;

// Returns -ln(u) for u in the middle of equal parts of (0, 1). Gives the same bits on every
// machine.
std::array<double, kOffloadThresholds> MakeOffloadThresholds() {
  std::array<double, kOffloadThresholds> thresholds{};
  double log = 0;
  for (size_t i = kOffloadThresholds; i-- > 0;) {
    // ln(x + 1/n) - ln(x) by the artanh series; precise enough to compare by.
    const double z = i + 1 == kOffloadThresholds
                         ? 0.5 / (2.0 * kOffloadThresholds - 0.5)
                         : 1.0 / (2.0 * (static_cast<double>(i) + 0.5) + 1.0);
    log += 2 * z * (1 + z * z * (1.0 / 3 + z * z / 5));
    thresholds[i] = log;
  }
  return thresholds;
}

class OffloadAnnealer {
 public:
  OffloadAnnealer(const RunProblem& problem, const OffloadLimits& limits, const RunsAndLoads& start,
                  const OffloadAnnealOptions& options)
      : problem_(problem),
        limits_(limits),
        options_(options),
        sequence_(problem, start),
        scheduler_(limits.link),
        rng_(options.seed),
        thresholds_(MakeOffloadThresholds()) {
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if (limits.may_move[At(value)]) movable_.push_back(value);
    }
    Measure(std::numeric_limits<int64_t>::max());
    Accept();
  }

  void Accept() {
    energy_ = Energy();
    end_now_ = end_;
    charge_now_ = charge_;
    Keep();
  }

  void Run(int64_t work);
  OffloadAnnealOutcome Outcome() && {
    best_.work = work_done_;
    return std::move(best_);
  }

 private:
  void AdjustCharge(int64_t stage);
  void Move(double temperature);
  bool Try(int32_t kind);
  bool TryAddLoad();
  bool TryAddRun();
  bool TryRemove();
  bool ReplaceRerunByLoads();
  bool ReplaceLoadByRerun();
  bool TryShift();
  bool TryEject();
  bool RelievePeak();

  void Measure(int64_t latest_end);
  bool Satisfies() const;
  bool IsWorthwhile();
  void Keep();
  bool AddRerunBefore(int32_t op, int32_t slot, int depth);
  bool LoadBefore(int32_t value, int32_t slot);
  bool MayErase(int32_t slot) const;
  void EraseRecursively(int32_t slot);
  int32_t FreeBefore(int32_t slot, int32_t after) const;
  int32_t RandomExtraSlot();

  int32_t Below(size_t count) {
    return static_cast<int32_t>(((rng_.Next() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }
  bool Chance(int percent) { return Below(100) < percent; }
  int RandomDepth() { return Chance(30) ? 1 + Below(3) : 0; }
  double ChargeFor(int64_t bytes, int64_t budget) const {
    if (bytes <= budget) return 0;
    return static_cast<double>(problem_.total_cost) * static_cast<double>(bytes - budget) /
           static_cast<double>(std::max<int64_t>(budget, 1));
  }
  double MemoryEnergy() const { return ChargeFor(sequence_.peak(), limits_.budget); }
  double Energy() const { return static_cast<double>(end_) + memory_weight_ * charge_; }
  bool MayMove(int32_t value) const {
    return limits_.may_move[At(value)] && !sequence_.IsLoaded(value);
  }

  const RunProblem& problem_;
  const OffloadLimits& limits_;
  const OffloadAnnealOptions& options_;
  OffloadSequence sequence_;
  CopyScheduler scheduler_;
  Rng rng_;
  const std::array<double, kOffloadThresholds> thresholds_;
  std::vector<int32_t> movable_;
  double memory_weight_ = 1;
  // Of the sequence last measured: its time, and the charge for memory above the budgets.
  int64_t end_ = 0;
  double charge_ = 0;
  bool fits_ = false;
  // The same for the sequence last accepted.
  double energy_ = 0;
  int64_t end_now_ = 0;
  double charge_now_ = 0;
  double max_energy_ = 0;  // The maximum energy after the move.
  int64_t work_done_ = 0;
  int64_t accepted_ = 0;
  std::vector<int32_t> erased_;
  OffloadAnnealOutcome best_;
};

// Computes the sequence's time, and whether it fits. Measures a sequence above the budget as if the
// budget were its peak, and charges for the excess of either memory. If the sequence ends after
// `latest_end`, only that is known.
void OffloadAnnealer::Measure(int64_t latest_end) {
  const CopyPlan& plan =
      scheduler_.Run(sequence_.Task(), std::max(limits_.budget, sequence_.peak()), latest_end);
  // Listing the runs takes about as long as scheduling a quarter of them.
  work_done_ += plan.runs + sequence_.step_count() / 4;
  CKPLAN_CHECK(plan.fits, "a sequence fits its own peak if all copies are in time");
  const double host_energy =
      limits_.host_budget ? ChargeFor(plan.host_peak, *limits_.host_budget) : 0;
  fits_ = sequence_.peak() <= limits_.budget && host_energy == 0;
  end_ = plan.end;
  charge_ = host_energy + MemoryEnergy();
}

bool OffloadAnnealer::Satisfies() const {
  if (limits_.rules == nullptr) return true;
  return ckplan::Satisfies(*limits_.rules, RunsIn(problem_, sequence_.ToSteps()));
}

void OffloadAnnealer::Keep() {
  if (!best_.steps.empty()) {
    if (best_.fits && (!fits_ || end_ >= best_.time)) return;
    if (!best_.fits && !fits_) return;
  }
  best_.steps = sequence_.ToSteps();
  best_.fits = fits_;
  best_.time = end_;
}

void OffloadAnnealer::Run(int64_t work) {
  double ratio = options_.end_temperature / options_.start_temperature;
  for (int i = 0; i < kOffloadStageRoots; ++i) ratio = std::sqrt(ratio);
  double temperature = options_.start_temperature;
  int64_t stage = 0;
  for (int64_t moves = 0; work_done_ < work; ++moves) {
    if (best_.fits && best_.time <= options_.enough) break;
    if (moves % kOffloadStopPolls == 0) {
      try {
        PollStop();
      } catch (const Stopped&) {
        return;
      }
    }
    for (; stage < work_done_ * kOffloadStages / work; ++stage) {
      temperature *= ratio;
      AdjustCharge(stage);
    }
    work_done_ += kWorkOfMove;
    Move(temperature);
    if (accepted_ > sequence_.step_count() / 2) {
      sequence_.Respace();
      accepted_ = 0;
    }
  }
}

void OffloadAnnealer::AdjustCharge(int64_t stage) {
  if (options_.follows_budget) {
    if (stage % kFollowStages != 0) return;
    memory_weight_ = charge_now_ > 0 ? memory_weight_ * kChargeRise
                                     : std::max(1.0, memory_weight_ * kChargeFall);
  } else {
    if (best_.fits || stage % kRaiseStages != 0) return;
    memory_weight_ *= kChargeRise;
  }
  energy_ = static_cast<double>(end_now_) + memory_weight_ * charge_now_;
}

void OffloadAnnealer::Move(double temperature) {
  const double scale = std::max(energy_ - static_cast<double>(problem_.total_cost),
                                static_cast<double>(problem_.total_cost) * kMinHeat);
  max_energy_ = energy_ + scale * temperature * thresholds_[At(Below(kOffloadThresholds))];
  const bool is_changed = Try(Below(100));
  if (!is_changed && !sequence_.has_changes()) return;
  sequence_.Update();
  if (!is_changed || !IsWorthwhile()) {
    sequence_.Revert();
    return;
  }
  sequence_.Commit();
  ++accepted_;
  Accept();
}

// Tells whether to accept the changed sequence. Doesn't schedule it if its runs and its memory
// alone are too much.
bool OffloadAnnealer::IsWorthwhile() {
  const double latest_end = max_energy_ - memory_weight_ * MemoryEnergy();
  if (static_cast<double>(sequence_.cost()) > latest_end) return false;
  Measure(static_cast<int64_t>(std::min(std::ceil(latest_end), kLatestEnd)));
  return Energy() <= max_energy_ && Satisfies();
}

bool OffloadAnnealer::Try(int32_t kind) {
  if (kind < 20) return ReplaceRerunByLoads();
  if (kind < 35) return ReplaceLoadByRerun();
  if (kind < 40) return TryAddLoad();
  if (kind < 45) return TryAddRun();
  if (kind < 55) return TryRemove();
  if (kind < 65) return TryShift();
  if (kind < 70 && sequence_.peak() > limits_.budget) return RelievePeak();
  return TryEject();
}

// Returns the last free slot below `slot` and above `after`, or -1.
int32_t OffloadAnnealer::FreeBefore(int32_t slot, int32_t after) const {
  int32_t to = slot - 1;
  while (to > after && sequence_.StepAt(to) >= 0) --to;
  return to > after ? to : -1;
}

bool OffloadAnnealer::LoadBefore(int32_t value, int32_t slot) {
  const std::span<const int32_t> versions = sequence_.MadeAt(value);
  const int32_t to = FreeBefore(slot, versions[sequence_.VersionAt(value, slot)]);
  if (to < 0) return false;
  sequence_.Insert(LoadOf(problem_, value), to);
  return true;
}

// Adds a run of the operation as close before the slot as possible. At random, also recomputes or
// loads reads that would otherwise have to be kept for it.
bool OffloadAnnealer::AddRerunBefore(int32_t op, int32_t slot, int depth) {
  if (!problem_.may_repeat[At(op)]) return false;
  const std::span<const int32_t> runs = sequence_.SlotsOf(op);
  const auto later = std::lower_bound(runs.begin(), runs.end(), slot);
  if (later == runs.begin()) return false;
  const int32_t to = FreeBefore(slot, std::max(*(later - 1), sequence_.ReadyAt(op)));
  if (to < 0) return false;
  std::array<int32_t, kMaxMissing> missing{};
  size_t count = 0;
  for (const int32_t read : problem_.reads[op]) {
    if (depth == 0 || count == missing.size()) continue;
    if (sequence_.EndOf(read, sequence_.VersionAt(read, to)) > to) continue;
    missing[count++] = read;
  }
  sequence_.Insert(op, to);
  for (size_t i = 0; i < count; ++i) {
    const int32_t choice = Below(3);
    if (choice == 0) continue;
    if (choice == 1 && MayMove(missing[i])) {
      LoadBefore(missing[i], to);
    } else {
      AddRerunBefore(problem_.producer[At(missing[i])], to, depth - 1);
    }
  }
  return true;
}

// Tells whether all reads still find a version without this action.
bool OffloadAnnealer::MayErase(int32_t slot) const {
  const int32_t step = sequence_.StepAt(slot);
  return IsLoad(problem_, step) || sequence_.SlotsOf(step).front() != slot;
}

// Erases the action, and those that only served its reads.
void OffloadAnnealer::EraseRecursively(int32_t slot) {
  erased_.assign(1, slot);
  std::vector<int32_t> steps = {sequence_.StepAt(slot)};
  sequence_.Erase(slot);
  while (!erased_.empty()) {
    const int32_t at = erased_.back();
    const int32_t step = steps.back();
    erased_.pop_back();
    steps.pop_back();
    if (IsLoad(problem_, step)) continue;
    for (const int32_t read : problem_.reads[step]) {
      const int32_t version_slot = sequence_.MadeAt(read)[sequence_.VersionAt(read, at)];
      if (!MayErase(version_slot) || sequence_.IsRead(version_slot)) continue;
      erased_.push_back(version_slot);
      steps.push_back(sequence_.StepAt(version_slot));
      sequence_.Erase(version_slot);
    }
  }
}

// Returns the slot of a random load or rerun, or -1.
int32_t OffloadAnnealer::RandomExtraSlot() {
  const std::span<const int32_t> extra = sequence_.Extra();
  if (extra.empty()) return -1;
  const int32_t step = extra[At(Below(extra.size()))];
  const std::span<const int32_t> slots = sequence_.SlotsOf(step);
  const size_t first = IsLoad(problem_, step) ? 0 : 1;
  return slots[first + At(Below(slots.size() - first))];
}

bool OffloadAnnealer::TryAddLoad() {
  if (movable_.empty()) return false;
  const int32_t value = movable_[At(Below(movable_.size()))];
  const std::span<const int32_t> reads = sequence_.ReadAt(value);
  if (!MayMove(value) || reads.empty()) return false;
  return LoadBefore(value, reads[At(Below(reads.size()))]);
}

bool OffloadAnnealer::TryAddRun() {
  const int32_t reader = Below(At(problem_.op_count));
  const std::span<const int32_t> reads = problem_.reads[reader];
  const std::span<const int32_t> slots = sequence_.SlotsOf(reader);
  if (reads.empty() || slots.empty()) return false;
  const int32_t producer = problem_.producer[At(reads[At(Below(reads.size()))])];
  const int depth = RandomDepth();
  return AddRerunBefore(producer, slots[At(Below(slots.size()))], depth);
}

bool OffloadAnnealer::TryRemove() {
  const int32_t slot = RandomExtraSlot();
  if (slot < 0) return false;
  EraseRecursively(slot);
  return true;
}

// Replaces a rerun by loads of its results.
bool OffloadAnnealer::ReplaceRerunByLoads() {
  const int32_t slot = RandomExtraSlot();
  if (slot < 0 || IsLoad(problem_, sequence_.StepAt(slot))) return false;
  const int32_t op = sequence_.StepAt(slot);
  bool is_loaded = false;
  for (const int32_t value : problem_.writes[op]) {
    if (!MayMove(value)) continue;
    const std::span<const int32_t> reads = sequence_.ReadAt(value);
    const auto next = std::upper_bound(reads.begin(), reads.end(), slot);
    if (next == reads.end()) continue;
    is_loaded |= LoadBefore(value, *next);
  }
  if (!is_loaded) return false;
  EraseRecursively(slot);
  return true;
}

bool OffloadAnnealer::ReplaceLoadByRerun() {
  const int32_t slot = RandomExtraSlot();
  if (slot < 0 || !IsLoad(problem_, sequence_.StepAt(slot))) return false;
  const int32_t value = LoadedBy(problem_, sequence_.StepAt(slot));
  sequence_.Erase(slot);
  const std::span<const int32_t> reads = sequence_.ReadAt(value);
  const auto next = std::upper_bound(reads.begin(), reads.end(), slot);
  if (next == reads.end()) return true;
  return AddRerunBefore(problem_.producer[At(value)], *next, Chance(70) ? 1 + Below(3) : 0);
}

// Moves a load or a rerun.
bool OffloadAnnealer::TryShift() {
  const int32_t slot = RandomExtraSlot();
  if (slot < 0) return false;
  const int32_t step = sequence_.StepAt(slot);
  sequence_.Erase(slot);
  if (IsLoad(problem_, step)) {
    const int32_t value = LoadedBy(problem_, step);
    const std::span<const int32_t> reads = sequence_.ReadAt(value);
    return LoadBefore(value, reads[At(Below(reads.size()))]);
  }
  const int32_t after = std::max(sequence_.ReadyAt(step), sequence_.SlotsOf(step).front());
  int32_t target = slot;
  if (Chance(50)) {
    const int32_t reach = 4 << Below(6);
    target = slot - reach + Below(At(2 * reach + 1));
  } else {
    target = after + 1 + Below(At(sequence_.slot_count() - after - 1));
  }
  target = std::min(target, sequence_.slot_count());
  const int32_t to = FreeBefore(target, after);
  if (to < 0) return false;
  sequence_.Insert(step, to);
  return true;
}

// Shortens a lifetime that spans the peak: recomputes or loads the value for its next read.
bool OffloadAnnealer::RelievePeak() {
  const int32_t peak_slot = sequence_.PeakSlot();
  for (int i = 0; i < kOffloadTries; ++i) {
    const int32_t value = Below(At(problem_.value_count));
    if (problem_.bytes[At(value)] == 0) continue;
    const std::span<const int32_t> versions = sequence_.MadeAt(value);
    if (versions.empty() || versions.front() >= peak_slot) continue;
    const size_t version = sequence_.VersionAt(value, peak_slot);
    if (sequence_.EndOf(value, version) <= peak_slot + 1) continue;
    const std::span<const int32_t> reads = sequence_.ReadAt(value);
    const auto next = std::lower_bound(reads.begin(), reads.end(), peak_slot);
    if (next == reads.end() || *next == peak_slot) continue;
    if (MayMove(value) && Chance(50)) return LoadBefore(value, *next);
    const int32_t producer = problem_.producer[At(value)];
    if (static_cast<double>(sequence_.cost() + problem_.cost[At(producer)]) > max_energy_) continue;
    return AddRerunBefore(producer, *next, RandomDepth());
  }
  return false;
}

// Removes an action, and repairs the peak with others.
bool OffloadAnnealer::TryEject() {
  if (!TryRemove()) return false;
  for (int i = 0; i < kOffloadRepairs; ++i) {
    sequence_.Update();
    if (sequence_.peak() <= limits_.budget) break;
    if (!RelievePeak()) return false;
  }
  return true;
}

}  // namespace

OffloadAnnealOutcome AnnealOffload(const RunProblem& problem, const OffloadLimits& limits,
                                   const RunsAndLoads& start, const OffloadAnnealOptions& options) {
  OffloadAnnealer annealer(problem, limits, start, options);
  annealer.Run(options.work);
  return std::move(annealer).Outcome();
}

}  // namespace ckplan
