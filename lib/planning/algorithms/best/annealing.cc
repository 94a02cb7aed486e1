#include "lib/planning/algorithms/best/annealing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/eviction.h"
#include "lib/planning/algorithms/best/flat_simulation.h"
#include "lib/planning/algorithms/best/run_sequence.h"

namespace ckplan {
namespace {

// The temperature falls geometrically over 2^10 stages, so that ten square roots give the ratio.
constexpr int kStageRoots = 10;
constexpr int64_t kStages = 1 << kStageRoots;
// If one more run costs a larger part of the total time than it saves of the memory, plans above
// the budget have the lowest energy. So while no plan fits, memory gains weight by this factor
// after this many stages.
constexpr int64_t kStagesPerWeight = kStages / 16;
constexpr double kWeightGrowth = 1.5;
constexpr size_t kThresholds = 4096;
constexpr int kTries = 24;  // Attempts to find a value for a move.
constexpr int kPercentWithAncestors = 20;
constexpr size_t kMaxGenerations = 2;
constexpr size_t kMaxAncestors = 4;  // Per operation.
constexpr int kRepairs = 2;          // Runs added in place of a removed one.
constexpr int64_t kStopPolls = 256;  // Moves between two polls for a stop.
// A move that changes the memory at more slots than this counts as several: a move of a node with
// thousands of results takes as long as hundreds of others.
constexpr int64_t kChangesPerMove = 64;
// Up to this many runs, copy the sequence whenever it is a new best. Copying a longer one takes as
// long as hundreds of moves, so do it at most once per stage.
constexpr int32_t kMaxRunsKeptAlways = 5'000;

// Returns the natural logarithm of x >= 1. Unlike the library's, it gives the same bits on every
// machine. Computes 2 artanh((x - 1) / (x + 1)) by its series up to z^9: exact to 1e-6 up to x = 2,
// and increasing beyond, which is enough for comparisons.
double LogRatio(double x) {
  double log = 0;
  for (; x > 2; x /= 2) log += 0.6931471805599453;
  const double z = (x - 1) / (x + 1);
  const double square = z * z;
  return log +
         2 * z * (1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square / 9))));
}

// Returns -ln(u) for u in the middle of equal parts of (0, 1): how much worse a move may be, in
// units of the temperature.
std::array<double, kThresholds> MakeThresholds() {
  std::array<double, kThresholds> thresholds{};
  for (size_t i = 0; i < kThresholds; ++i) {
    thresholds[i] = LogRatio(static_cast<double>(kThresholds) / (static_cast<double>(i) + 0.5));
  }
  return thresholds;
}

// A chain of moves from one start.
class Annealer {
 public:
  Annealer(const RunProblem& problem, int64_t budget, const Runs& start,
           const AnnealOptions& options, uint64_t seed)
      : problem_(problem),
        budget_(budget),
        options_(options),
        sequence_(problem, start),
        rng_(seed),
        thresholds_(MakeThresholds()),
        time_unit_(1.0 / static_cast<double>(std::max<int64_t>(problem.total_cost, 1))),
        last_of_forward_(options.rules == nullptr ? OpId()
                                                  : LastOfForwardPass(*options.rules, start)) {
    energy_ = Energy();
    Keep();
  }

  // Returns false if it was stopped.
  bool Run(int64_t moves);

  const Runs& best() const { return best_; }
  int64_t moves() const { return moves_; }

 private:
  void EndStage(int64_t stage);
  void Move(double temperature);
  bool SatisfiesAfterChange() const;
  bool IsGoneForBackward(int32_t op) const;
  bool Try(int32_t kind, double allowed);
  bool TryShift();
  bool TryAdd(double allowed);
  bool TryRemove();
  bool TryEject(double allowed);
  bool RelievePeak(double allowed);
  bool MoveAwayFromPeak(int32_t value, size_t version, int32_t peak_slot);

  bool AddRerunBefore(int32_t op, int32_t slot, int depth);
  bool MoveInto(int32_t slot, RunSequence::Window window, int32_t wanted);
  void EraseRecursively(int32_t op, size_t k);

  int32_t Below(size_t count) {
    return static_cast<int32_t>(((rng_.Next() >> 32) * static_cast<uint64_t>(count)) >> 32);
  }
  // Returns how many generations of ancestors to rerun with an operation.
  int RandomDepth() { return Chance(kPercentWithAncestors) ? 1 + Below(kMaxGenerations) : 0; }
  bool Chance(int percent) { return Below(100) < percent; }
  int32_t FreeSlot(RunSequence::Window window, int32_t wanted) const;
  double Energy() const {
    const double time = static_cast<double>(sequence_.cost()) * time_unit_;
    return time + MemoryEnergy();
  }
  double MemoryEnergy() const {
    if (sequence_.peak() <= budget_) return 0;
    return memory_weight_ * LogRatio(static_cast<double>(sequence_.peak()) /
                                     static_cast<double>(std::max<int64_t>(budget_, 1)));
  }
  // Tells whether one more run could pay off even if it removed all memory above the budget.
  bool CanPay(int32_t op, double allowed) const {
    const double time = static_cast<double>(problem_.cost[At(op)]) * time_unit_;
    return time <= allowed + MemoryEnergy();
  }
  bool IsFixed(size_t k) const { return k == 0 && !options_.free_order; }
  void Keep();

  const RunProblem& problem_;
  const int64_t budget_;
  const AnnealOptions& options_;
  RunSequence sequence_;
  Rng rng_;
  const std::array<double, kThresholds> thresholds_;
  const double time_unit_;
  const OpId last_of_forward_;  // Set if there are rules.
  double memory_weight_ = 1;
  double energy_ = 0;
  int64_t moves_ = 0;
  int64_t accepted_ = 0;  // Accepted moves since the runs were last spread over the slots.
  // Erased runs whose inputs may no longer be needed.
  std::vector<std::pair<int32_t, int32_t>> erased_;
  Runs best_;
  int64_t best_peak_ = 0;
  int64_t best_cost_ = 0;
};

// Stores the current sequence if it is the best so far.
void Annealer::Keep() {
  const int64_t peak = sequence_.peak();
  const int64_t cost = sequence_.cost();
  if (!best_.empty()) {
    const bool fits = peak <= budget_;
    const bool best_fits = best_peak_ <= budget_;
    if (fits != best_fits ? best_fits : (fits ? cost >= best_cost_ : peak >= best_peak_)) return;
  }
  best_ = sequence_.ToRuns();
  best_peak_ = peak;
  best_cost_ = cost;
}

bool Annealer::Run(int64_t moves) {
  double ratio = options_.end_temperature / options_.start_temperature;
  for (int i = 0; i < kStageRoots; ++i) ratio = std::sqrt(ratio);
  double temperature = options_.start_temperature;
  const int64_t per_stage = std::max<int64_t>(moves / kStages, 1);
  int64_t stage = 0;
  for (int64_t done = 0; done < moves; ++moves_) {
    if (moves_ % kStopPolls == 0) {
      try {
        PollStop();
      } catch (const Stopped&) {
        return false;
      }
    }
    for (; done / per_stage > stage; ++stage) {
      temperature *= ratio;
      EndStage(stage + 1);
    }
    const int64_t before = sequence_.changes_made();
    Move(temperature);
    done += 1 + (sequence_.changes_made() - before) / kChangesPerMove;
  }
  Keep();
  return true;
}

void Annealer::EndStage(int64_t stage) {
  Keep();
  if (accepted_ > sequence_.run_count() / 2) {
    sequence_.Respace();
    accepted_ = 0;
  }
  if (stage % kStagesPerWeight == 0 && best_peak_ > budget_) {
    memory_weight_ *= kWeightGrowth;
    energy_ = Energy();
  }
}

// Tries a change of the kind that `kind` selects.
bool Annealer::Try(int32_t kind, double allowed) {
  if (kind < 50) return TryShift();
  if (kind < 65 && sequence_.peak() > budget_) return RelievePeak(allowed);
  if (kind < 75 && kind >= 65) return TryAdd(allowed);
  if (kind < 85 && kind >= 75) return TryRemove();
  return TryEject(allowed);
}

void Annealer::Move(double temperature) {
  const double allowed = temperature * thresholds_[At(Below(kThresholds))];
  if (!Try(Below(100), allowed)) return;
  sequence_.Update();
  const double energy = Energy();
  if (energy > energy_ + allowed || !SatisfiesAfterChange()) {
    sequence_.Revert();
    return;
  }
  sequence_.Commit();
  ++accepted_;
  energy_ = energy;
  const bool is_first_that_fits = best_peak_ > budget_ && sequence_.peak() <= budget_;
  if (is_first_that_fits || sequence_.run_count() <= kMaxRunsKeptAlways) Keep();
}

// Tells whether the sequence still obeys the rules after the changes since the last Commit. If
// first runs may move, the end of the forward pass can differ from that of the start. Then the
// answer can be wrong, and the caller adjusts the plan to the rules.
bool Annealer::SatisfiesAfterChange() const {
  if (options_.rules == nullptr) return true;
  for (const int32_t op : sequence_.Changed()) {
    if (!IsGoneForBackward(op)) return false;
    for (const int32_t producer : options_.rules->producers[At(op)]) {
      if (!IsGoneForBackward(producer)) return false;
    }
  }
  return true;
}

// For values that must be recomputed: tells whether no run after the end of the forward pass reads
// the operation's earlier values.
bool Annealer::IsGoneForBackward(int32_t op) const {
  const RunRules& rules = *options_.rules;
  if (!rules.is_recomputed[At(op)]) return true;
  int32_t end = -1;
  if (!last_of_forward_.is_none()) {
    const std::span<const int32_t> last = sequence_.RunsOf(last_of_forward_.index());
    if (!last.empty()) end = last.front();
  }
  const std::span<const int32_t> runs = sequence_.RunsOf(op);
  const auto next_run = std::find_if(runs.begin() + std::min<ptrdiff_t>(1, std::ssize(runs)),
                                     runs.end(), [&](int32_t slot) { return slot > end; });
  for (const int32_t value : problem_.writes[op]) {
    for (const int32_t slot : sequence_.ReadsOf(value)) {
      if (next_run != runs.end() && slot > *next_run) break;
      const int32_t reader = sequence_.OpAt(slot);
      if (rules.is_backward[At(reader)]) return false;
      if (slot > end && sequence_.RunsOf(reader).front() < slot) return false;
    }
  }
  return true;
}

// Returns the free slot within the window nearest to `wanted`, or -1.
int32_t Annealer::FreeSlot(RunSequence::Window window, int32_t wanted) const {
  int32_t below = wanted;
  int32_t above = wanted + 1;
  while (below > window.after || above < window.before) {
    if (below > window.after) {
      if (sequence_.OpAt(below) < 0) return below;
      --below;
    }
    if (above < window.before) {
      if (sequence_.OpAt(above) < 0) return above;
      ++above;
    }
  }
  return -1;
}

bool Annealer::MoveInto(int32_t slot, RunSequence::Window window, int32_t wanted) {
  const int32_t to = FreeSlot(window, wanted);
  if (to < 0) return false;
  sequence_.Shift(slot, to);
  return true;
}

// Moves a run to a random slot of its window, half of the time to one nearby.
bool Annealer::TryShift() {
  const std::span<const int32_t> repeated = sequence_.Repeated();
  const bool is_rerun = !options_.free_order || (!repeated.empty() && Chance(20));
  if (is_rerun && repeated.empty()) return false;
  const int32_t op = is_rerun ? repeated[At(Below(repeated.size()))] : Below(At(problem_.op_count));
  const std::span<const int32_t> runs = sequence_.RunsOf(op);
  if (runs.empty()) return false;
  const auto k = At(Below(runs.size()));
  if (IsFixed(k)) return false;
  RunSequence::Window window = sequence_.WindowOf(op, k);
  const int32_t slot = runs[k];
  if (Chance(50)) {
    const int32_t reach = 4 << Below(6);
    window.after = std::max(window.after, slot - reach);
    window.before = std::min(window.before, slot + reach);
  }
  if (window.before - window.after < 3) return false;
  const int32_t target = window.after + 1 + Below(At(window.before - window.after - 1));
  return MoveInto(slot, window, target);
}

// Adds a run of the operation as close before the run in the slot as possible. At random, also
// reruns producers whose results would otherwise have to be kept for it.
bool Annealer::AddRerunBefore(int32_t op, int32_t slot, int depth) {
  const int32_t last = sequence_.RunsOf(op)[sequence_.VersionAt(op, slot)];
  const int32_t after = std::max(last, sequence_.ReadsReadyAt(op));
  int32_t to = slot - 1;
  while (to > after && sequence_.OpAt(to) >= 0) --to;
  if (to <= after) return false;
  std::array<int32_t, kMaxAncestors> missing{};
  size_t count = 0;
  for (const int32_t read : problem_.reads[op]) {
    const int32_t producer = problem_.producer[At(read)];
    if (depth == 0 || !problem_.may_repeat[At(producer)] || count == missing.size()) continue;
    if (sequence_.EndOf(read, sequence_.VersionAt(producer, to)) > to || !Chance(50)) continue;
    missing[count++] = producer;
  }
  sequence_.Insert(op, to);
  for (size_t i = 0; i < count; ++i) AddRerunBefore(missing[i], to, depth - 1);
  return true;
}

// Recomputes one of a run's inputs just before it.
bool Annealer::TryAdd(double allowed) {
  const int32_t reader = Below(At(problem_.op_count));
  const std::span<const int32_t> reads = problem_.reads[reader];
  const std::span<const int32_t> runs = sequence_.RunsOf(reader);
  if (reads.empty() || runs.empty()) return false;
  const int32_t producer = problem_.producer[At(reads[At(Below(reads.size()))])];
  if (!problem_.may_repeat[At(producer)] || !CanPay(producer, allowed)) return false;
  const int32_t depth = RandomDepth();
  const int32_t run = runs[At(Below(runs.size()))];
  return AddRerunBefore(producer, run, depth);
}

bool Annealer::TryRemove() {
  const std::span<const int32_t> repeated = sequence_.Repeated();
  if (repeated.empty()) return false;
  const int32_t op = repeated[At(Below(repeated.size()))];
  const auto k = At(Below(sequence_.RunsOf(op).size()));
  if (IsFixed(k) || !sequence_.MayErase(op, k)) return false;
  EraseRecursively(op, k);
  return true;
}

// Erases the run and, recursively, runs whose only readers are erased.
void Annealer::EraseRecursively(int32_t op, size_t k) {
  erased_.assign(1, {op, sequence_.RunsOf(op)[k]});
  sequence_.Erase(erased_.back().second);
  while (!erased_.empty()) {
    const auto [reader, slot] = erased_.back();
    erased_.pop_back();
    for (const int32_t read : problem_.reads[reader]) {
      const int32_t producer = problem_.producer[At(read)];
      // The producer's run may already have been erased for another reader.
      if (sequence_.RunsOf(producer).front() >= slot) continue;
      const size_t version = sequence_.VersionAt(producer, slot);
      if (IsFixed(version) || !sequence_.MayErase(producer, version)) continue;
      if (sequence_.IsRead(producer, version)) continue;
      erased_.emplace_back(producer, sequence_.RunsOf(producer)[version]);
      sequence_.Erase(erased_.back().second);
    }
  }
}

// Shortens a lifetime that spans the peak or, as each other micro-batch holds what does, the loss.
// The producer reruns before the next use or, if the order
// is free, the producer or the last use moves to the other side of the peak.
bool Annealer::RelievePeak(double allowed) {
  const bool is_at_loss = problem_.others.count > 0 && Chance(50);
  const int32_t peak_slot = is_at_loss ? sequence_.LossSlot() : sequence_.PeakSlot();
  for (int i = 0; i < kTries; ++i) {
    const int32_t value = Below(At(problem_.value_count));
    const int32_t producer = problem_.producer[At(value)];
    if (producer < 0 || problem_.bytes[At(value)] == 0) continue;
    const std::span<const int32_t> runs = sequence_.RunsOf(producer);
    if (runs.empty() || runs.front() >= peak_slot) continue;
    const size_t version = sequence_.VersionAt(producer, peak_slot);
    if (sequence_.EndOf(value, version) <= peak_slot + 1) continue;
    const std::span<const int32_t> reads = sequence_.ReadsOf(value);
    const auto next = std::lower_bound(reads.begin(), reads.end(), peak_slot);
    // The run at the peak needs the value; a result without readers can only be computed later.
    if (next != reads.end() && *next == peak_slot) continue;
    if (Chance(50) && MoveAwayFromPeak(value, version, peak_slot)) return true;
    if (next == reads.end() || !problem_.may_repeat[At(producer)]) continue;
    if (!CanPay(producer, allowed)) continue;
    return AddRerunBefore(producer, *next, RandomDepth());
  }
  return false;
}

bool Annealer::MoveAwayFromPeak(int32_t value, size_t version, int32_t peak_slot) {
  const int32_t producer = problem_.producer[At(value)];
  const std::span<const int32_t> runs = sequence_.RunsOf(producer);
  if (!IsFixed(version)) {
    RunSequence::Window window = sequence_.WindowOf(producer, version);
    if (window.before > peak_slot + 1) {
      window.after = std::max(window.after, peak_slot);
      return MoveInto(runs[version], window, window.after + 1);
    }
  }
  const std::span<const int32_t> reads = sequence_.ReadsOf(value);
  const auto next = std::lower_bound(reads.begin(), reads.end(), peak_slot);
  if (next == reads.end()) return false;
  const int32_t reader = sequence_.OpAt(*next);
  const std::span<const int32_t> its_runs = sequence_.RunsOf(reader);
  const auto k = static_cast<size_t>(std::lower_bound(its_runs.begin(), its_runs.end(), *next) -
                                     its_runs.begin());
  if (IsFixed(k)) return false;
  RunSequence::Window window = sequence_.WindowOf(reader, k);
  if (window.after >= peak_slot - 1) return false;
  window.before = std::min(window.before, peak_slot);
  return MoveInto(*next, window, window.before - 1);
}

// Removes a run, and repairs the peak with other runs.
bool Annealer::TryEject(double allowed) {
  const int64_t cost = sequence_.cost();
  if (!TryRemove()) return false;
  for (int i = 0; i < kRepairs; ++i) {
    sequence_.Update();
    if (sequence_.peak() <= budget_) break;
    const double saved = static_cast<double>(cost - sequence_.cost()) * time_unit_;
    if (!RelievePeak(allowed + saved)) break;
  }
  return true;
}

}  // namespace

AnnealOutcome Anneal(const RunProblem& problem, int64_t budget, std::span<const Runs> starts,
                     const AnnealOptions& options) {
  CKPLAN_CHECK(!starts.empty(), "annealing has at least one start");
  FlatSimulator simulator(problem);
  AnnealOutcome best;
  const auto offer = [&](Runs runs) {
    const FlatSimulation simulation = simulator.Run(runs);
    const bool fits = simulation.peak <= budget;
    const bool best_fits = best.peak <= budget;
    if (!best.runs.empty() && (fits != best_fits ? best_fits
                                                 : (fits ? simulation.cost >= best.cost
                                                         : simulation.peak >= best.peak))) {
      return;
    }
    best.runs = std::move(runs);
    best.peak = simulation.peak;
    best.cost = simulation.cost;
  };
  // With rules, it matters which run comes first.
  const bool may_replace_first = options.free_order && options.rules == nullptr;
  const FirstRuns first_runs = may_replace_first ? FirstRuns::kFree : FirstRuns::kKeepOrder;
  for (const Runs& start : starts) offer(DropUnread(problem, start, first_runs));
  Rng seeds(options.seed);
  const int64_t moves = options.moves / static_cast<int64_t>(starts.size());
  for (const Runs& start : starts) {
    Annealer annealer(problem, budget, DropUnread(problem, start, first_runs), options,
                      seeds.Next());
    const bool is_done = annealer.Run(moves);
    best.moves += annealer.moves();
    offer(DropUnread(problem, annealer.best(), first_runs));
    if (!is_done) break;
  }
  return best;
}

}  // namespace ckplan
