#include "lib/planning/algorithms/best/eviction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/algorithms/best/flat_simulation.h"

namespace ckplan {
namespace {

// A cost counts at most this many evicted ancestors.
constexpr size_t kMaxCostVisits = 24;
// Abandon a walk that runs operations more often than this on average.
constexpr size_t kMaxRunsPerOperation = 12;

// Evict a candidate without rescoring if its score has fallen by less than this share.
constexpr double kNearScore = 0.9;

// Reconsider a value that could not be evicted after this many actions.
constexpr int32_t kStepsParked = 64;

double HalfPower(double x, int halves) {
  double power = 1;
  for (int i = 0; i < halves / 2; ++i) power *= x;
  return halves % 2 == 1 ? power * std::sqrt(x) : power;
}

// The positions in the order at which first runs read each value, and the walk's progress.
class Uses {
 public:
  Uses(const RunProblem& problem, std::span<const OpId> order)
      : ends_(At(problem.value_count) + 1, 0) {
    for (const OpId op : order) {
      for (const int32_t read : problem.reads[op.index()]) ++ends_[At(read) + 1];
    }
    for (size_t i = 1; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
    next_ = ends_;
    positions_.resize(ends_.back());
    // Afterwards, each value's list ends where the next one's began.
    for (size_t k = 0; k < order.size(); ++k) {
      for (const int32_t read : problem.reads[order[k].index()]) {
        positions_[ends_[At(read)]++] = static_cast<int32_t>(k);
      }
    }
  }

  static constexpr int32_t kNever = -1;
  int32_t Next(int32_t value) const {
    const size_t i = next_[At(value)];
    return i < ends_[At(value)] ? positions_[i] : kNever;
  }
  // The walk has passed the next use.
  void Pass(int32_t value) { ++next_[At(value)]; }

 private:
  std::vector<size_t> ends_;
  std::vector<int32_t> positions_;
  std::vector<size_t> next_;
};

// One walk over the order.
class Walk {
 public:
  Walk(const RunProblem& problem, std::span<const OpId> order, int64_t budget,
       const EvictionRule& rule, const std::vector<bool>& kept)
      : problem_(problem),
        order_(order),
        budget_(budget),
        rule_(rule),
        kept_(kept),
        uses_(problem, order),
        is_in_memory_(At(problem.value_count), false),
        has_run_(At(problem.op_count), false),
        locks_(At(problem.value_count), 0),
        entry_(At(problem.value_count), 0),
        seen_(At(problem.value_count), 0),
        has_single_runs_(std::find(problem.may_repeat.begin(), problem.may_repeat.end(), false) !=
                         problem.may_repeat.end()) {
    // A cost of zero would make all other factors meaningless.
    least_cost_ = static_cast<double>(problem.total_cost) /
                      (1000.0 * std::max(1.0, static_cast<double>(problem.op_count))) +
                  1e-9;
  }

  std::optional<Runs> Run() {
    for (size_t k = 0; k < order_.size(); ++k) {
      PollStop();
      now_ = static_cast<int32_t>(k);
      if (now_ % kStepsParked == 0) OfferParked();
      PassUses(order_[k].index());
      if (!RunWithAncestors(order_[k].index())) return std::nullopt;
      if (rule_.drops_at_loss && order_[k].index() == problem_.others.loss) DropUnkept();
    }
    if (!RestoreResults()) return std::nullopt;
    return std::move(runs_);
  }

 private:
  // A run that waits for its inputs.
  struct Frame {
    int32_t op;
    size_t locked = 0;  // How many of its reads are in memory and locked.
  };
  // A candidate for eviction; outdated unless its number is the value's latest.
  struct Candidate {
    int band;  // 2: no longer read; 1: normal; 0: keep.
    double score;
    int32_t value;
    uint32_t number;
    bool operator<(const Candidate& other) const {
      if (band != other.band) return band < other.band;
      if (score != other.score) return score < other.score;
      return value > other.value;
    }
  };

  bool RunWithAncestors(int32_t target);
  bool RunOnce(int32_t op);
  bool RestoreResults();
  void PassUses(int32_t op);
  void Lock(int32_t value) { ++locks_[At(value)]; }
  void Unlock(int32_t op) {
    for (const int32_t read : problem_.reads[op]) --locks_[At(read)];
  }
  bool FreeMemory(int64_t needed);
  enum class Reads : uint8_t { kUnread, kAll };
  void TakeOver(int32_t op, Reads which);
  Candidate CandidateOf(int32_t value) const;
  double CostToRestore(int32_t value) const;
  void Offer(int32_t value);
  void OfferParked();
  void DropUnkept();
  void Remove(int32_t value);
  bool CanBeEvicted(int32_t value) const;
  bool IsRecoverable(int32_t value) const;
  bool IsReliedOn(int32_t value) const;

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  const int64_t budget_;
  const EvictionRule& rule_;
  const std::vector<bool>& kept_;
  Uses uses_;
  std::vector<bool> is_in_memory_;
  std::vector<bool> has_run_;    // Per operation.
  std::vector<int32_t> locks_;   // How many waiting runs need the value.
  std::vector<uint32_t> entry_;  // The value's latest candidate.
  std::priority_queue<Candidate> candidates_;
  mutable std::vector<uint32_t> seen_;  // The last search that visited the value.
  mutable uint32_t search_ = 0;
  mutable std::vector<int32_t> stack_;
  std::vector<int32_t> parked_;  // Values that could not be evicted in turn.
  const bool has_single_runs_;   // Some operations must not repeat.
  double least_cost_ = 0;
  int32_t now_ = 0;
  int64_t live_ = 0;  // Bytes in memory.
  Runs runs_;
};

// Runs the producers of missing values, after the producers of the values that those need, and so
// on: depth first with an explicit stack, because chains can be long. Values that a waiting run has
// found in memory are locked until it has run.
bool Walk::RunWithAncestors(int32_t target) {
  std::vector<Frame> waiting = {{target}};
  while (!waiting.empty()) {
    Frame& frame = waiting.back();
    const std::span<const int32_t> reads = problem_.reads[frame.op];
    if (frame.locked == reads.size()) {
      const int32_t op = frame.op;
      waiting.pop_back();
      if (!RunOnce(op)) return false;
      continue;
    }
    const int32_t read = reads[frame.locked];
    if (is_in_memory_[At(read)]) {
      Lock(read);
      ++frame.locked;
      continue;
    }
    const int32_t producer = problem_.producer[At(read)];
    if (!problem_.may_repeat[At(producer)] && has_run_[At(producer)]) return false;
    waiting.push_back({producer});
  }
  return true;
}

bool Walk::RunOnce(int32_t op) {
  if (runs_.size() >= kMaxRunsPerOperation * order_.size()) return false;
  // The new version replaces one that is still in memory.
  for (const int32_t write : problem_.writes[op]) {
    if (is_in_memory_[At(write)]) Remove(write);
  }
  const int64_t needed = problem_.written_bytes[At(op)] + problem_.workspace[At(op)];
  if (live_ + needed > budget_) TakeOver(op, Reads::kUnread);
  if (!FreeMemory(needed)) {
    // The writes overwrite reads that are needed later, which are then recomputed.
    TakeOver(op, Reads::kAll);
    if (!FreeMemory(needed)) return false;
  }
  Unlock(op);
  for (const int32_t read : problem_.reads[op]) {
    if (is_in_memory_[At(read)]) Offer(read);
  }
  for (const int32_t write : problem_.writes[op]) {
    is_in_memory_[At(write)] = true;
    live_ += problem_.bytes[At(write)];
    Offer(write);
  }
  has_run_[At(op)] = true;
  runs_.emplace_back(op);
  return true;
}

void Walk::PassUses(int32_t op) {
  for (const int32_t read : problem_.reads[op]) uses_.Pass(read);
}

// Evicts reads whose memory the operation's writes may take over.
void Walk::TakeOver(int32_t op, Reads which) {
  const std::span<const int32_t> pairs = problem_.in_place[op];
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int32_t read = pairs[i + 1];
    // Only this run may have locked the read.
    if (!is_in_memory_[At(read)] || locks_[At(read)] > 1) continue;
    const bool is_unread = uses_.Next(read) == Uses::kNever && !problem_.is_result[At(read)];
    if ((which == Reads::kUnread && !is_unread) || !CanBeEvicted(read)) continue;
    Remove(read);
  }
}

// Evicts until `needed` more bytes fit.
bool Walk::FreeMemory(int64_t needed) {
  while (live_ + needed > budget_ && !candidates_.empty()) {
    const Candidate top = candidates_.top();
    candidates_.pop();
    if (top.number != entry_[At(top.value)] || !is_in_memory_[At(top.value)]) continue;
    if (locks_[At(top.value)] > 0) continue;  // Unlocking it offers it again.
    // Distances shrink as the walk continues, so an outdated score is too high rather than too low.
    // Use a score that has hardly changed: on large graphs, most candidates would be offered over
    // and over.
    const Candidate fresh = CandidateOf(top.value);
    const bool is_near = fresh.band == top.band && fresh.score > kNearScore * top.score;
    if (fresh < top && !is_near) {
      candidates_.push(fresh);
    } else if (!CanBeEvicted(top.value)) {
      parked_.push_back(top.value);
    } else {
      Remove(top.value);
    }
  }
  return live_ + needed <= budget_;
}

void Walk::OfferParked() {
  for (const int32_t value : std::exchange(parked_, {})) {
    if (is_in_memory_[At(value)]) Offer(value);
  }
}

// After the loss, every other micro-batch holds what this one does: evicts all but what is kept and
// what the loss wrote.
void Walk::DropUnkept() {
  const std::span<const int32_t> written = problem_.writes[problem_.others.loss];
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (!is_in_memory_[At(value)] || kept_[At(value)] || !CanBeEvicted(value)) continue;
    if (std::find(written.begin(), written.end(), value) == written.end()) Remove(value);
  }
}

// Recomputes results that were evicted after their last use.
bool Walk::RestoreResults() {
  now_ = static_cast<int32_t>(order_.size());
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    const int32_t producer = problem_.producer[At(value)];
    if (!problem_.is_result[At(value)] || producer < 0) continue;
    if (!is_in_memory_[At(value)] && !RunWithAncestors(producer)) return false;
    Lock(value);
  }
  return true;
}

void Walk::Remove(int32_t value) {
  is_in_memory_[At(value)] = false;
  live_ -= problem_.bytes[At(value)];
}

void Walk::Offer(int32_t value) {
  if (locks_[At(value)] > 0 || problem_.bytes[At(value)] == 0) return;
  ++entry_[At(value)];
  candidates_.push(CandidateOf(value));
}

Walk::Candidate Walk::CandidateOf(int32_t value) const {
  const int32_t next = uses_.Next(value);
  const bool is_unread = next == Uses::kNever && !problem_.is_result[At(value)];
  const bool is_kept = !kept_.empty() && kept_[At(value)];
  const int32_t use = next == Uses::kNever ? static_cast<int32_t>(order_.size()) : next;
  const double score =
      HalfPower(static_cast<double>(problem_.bytes[At(value)]), rule_.size_halves) *
      HalfPower(static_cast<double>(use - now_ + 1), rule_.distance_halves) /
      HalfPower(CostToRestore(value), rule_.cost_halves);
  return {is_unread ? 2 : (is_kept ? 0 : 1), score, value, entry_[At(value)]};
}

double Walk::CostToRestore(int32_t value) const {
  const auto cost_of = [&](int32_t id) {
    return static_cast<double>(problem_.cost[At(problem_.producer[At(id)])]);
  };
  double cost = cost_of(value) + least_cost_;
  if (rule_.cost_halves == 0 || !rule_.counts_ancestors) return cost;
  ++search_;
  stack_.assign(1, value);
  size_t visits = 0;
  while (!stack_.empty() && visits < kMaxCostVisits) {
    const int32_t next = stack_.back();
    stack_.pop_back();
    for (const int32_t read : problem_.reads[problem_.producer[At(next)]]) {
      if (is_in_memory_[At(read)] || seen_[At(read)] == search_) continue;
      seen_[At(read)] = search_;
      cost += cost_of(read);
      stack_.push_back(read);
      ++visits;
    }
  }
  return cost;
}

// Tells whether all values needed later can be computed without this one. Always true if every
// operation may repeat.
bool Walk::CanBeEvicted(int32_t value) const {
  return !has_single_runs_ || IsRecoverable(value) || !IsReliedOn(value);
}

bool Walk::IsRecoverable(int32_t value) const {
  ++search_;
  stack_.assign(1, value);
  for (size_t visits = 0; !stack_.empty(); ++visits) {
    const int32_t producer = problem_.producer[At(stack_.back())];
    stack_.pop_back();
    if (!problem_.may_repeat[At(producer)] || visits > rule_.max_ancestors) return false;
    for (const int32_t read : problem_.reads[producer]) {
      if (is_in_memory_[At(read)] || seen_[At(read)] == search_) continue;
      seen_[At(read)] = search_;
      stack_.push_back(read);
    }
  }
  return true;
}

// Tells whether a value needed later is computed from this one through evicted values.
bool Walk::IsReliedOn(int32_t value) const {
  ++search_;
  stack_.assign(1, value);
  for (size_t visits = 0; !stack_.empty(); ++visits) {
    const int32_t next = stack_.back();
    stack_.pop_back();
    if (uses_.Next(next) != Uses::kNever || problem_.is_result[At(next)] || locks_[At(next)] > 0 ||
        visits > rule_.max_ancestors) {
      return true;
    }
    for (const int32_t reader : problem_.readers[next]) {
      for (const int32_t write : problem_.writes[reader]) {
        if (is_in_memory_[At(write)] || seen_[At(write)] == search_) continue;
        seen_[At(write)] = search_;
        stack_.push_back(write);
      }
    }
  }
  return false;
}

constexpr std::array<EvictionRule, 36> MakeRules() {
  std::array<EvictionRule, 36> rules;
  size_t i = 0;
  for (const int size : {0, 1, 2}) {
    for (const int distance : {1, 2, 4}) {
      for (const int cost : {1, 2}) {
        for (const bool counts_ancestors : {false, true}) {
          rules[i++] = {size, distance, cost, counts_ancestors};
        }
      }
    }
  }
  return rules;
}

constexpr std::array<EvictionRule, 36> kRules = MakeRules();

// Returns, for each rerun, the first run before which it must come at the latest; first runs are
// their own anchors.
std::vector<size_t> FindLatestAnchors(const RunProblem& problem, const Runs& runs) {
  std::vector<bool> is_first(runs.size(), false);
  std::vector<bool> has_run(At(problem.op_count), false);
  for (size_t step = 0; step < runs.size(); ++step) {
    is_first[step] = !has_run[At(runs[step].index())];
    has_run[At(runs[step].index())] = true;
  }
  std::vector<size_t> anchors(runs.size());
  // The earliest anchor of the value's readers among later runs.
  std::vector<size_t> needed_by(At(problem.value_count), runs.size());
  for (size_t step = runs.size(); step-- > 0;) {
    const int32_t op = runs[step].index();
    size_t anchor = is_first[step] ? step : runs.size();
    for (const int32_t write : problem.writes[op]) {
      if (!is_first[step]) anchor = std::min(anchor, needed_by[At(write)]);
      needed_by[At(write)] = runs.size();
    }
    anchors[step] = anchor;
    for (const int32_t read : problem.reads[op]) {
      needed_by[At(read)] = std::min(needed_by[At(read)], anchor);
    }
  }
  return anchors;
}

}  // namespace

std::span<const EvictionRule> EvictionRules() { return kRules; }

std::optional<Runs> Evict(const RunProblem& problem, std::span<const OpId> order, int64_t budget,
                          const EvictionRule& rule, const std::vector<bool>& kept) {
  return Walk(problem, order, budget, rule, kept).Run();
}

Runs DropUnread(const RunProblem& problem, const Runs& runs, FirstRuns first_runs) {
  std::vector<int32_t> count(At(problem.op_count), 0);
  for (const OpId op : runs) ++count[At(op.index())];
  // The values that later runs read before recomputing them.
  std::vector<bool> is_wanted(problem.is_result);
  std::vector<int32_t> kept_count(At(problem.op_count), 0);
  Runs kept;
  for (size_t step = runs.size(); step-- > 0;) {
    const int32_t op = runs[step].index();
    const bool is_first = --count[At(op)] == 0;
    bool is_read = problem.is_needed[At(op)] && kept_count[At(op)] == 0;
    for (const int32_t write : problem.writes[op]) is_read = is_read || is_wanted[At(write)];
    const bool holds_order =
        is_first && first_runs == FirstRuns::kKeepOrder && kept_count[At(op)] > 0;
    if (!is_read && !holds_order) continue;
    for (const int32_t write : problem.writes[op]) is_wanted[At(write)] = false;
    for (const int32_t read : problem.reads[op]) is_wanted[At(read)] = true;
    ++kept_count[At(op)];
    kept.push_back(runs[step]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

Runs DelayReruns(const RunProblem& problem, const Runs& runs) {
  const std::vector<size_t> anchors = FindLatestAnchors(problem, runs);
  // A first run is its own anchor and comes last among the runs with that anchor. Within an anchor,
  // runs keep their order, so a run's inputs still come before it.
  std::vector<size_t> place(runs.size() + 2, 0);  // By anchor: where its next run goes.
  for (const size_t anchor : anchors) ++place[anchor + 1];
  for (size_t anchor = 0; anchor <= runs.size(); ++anchor) place[anchor + 1] += place[anchor];
  Runs late(runs.size());
  for (size_t step = 0; step < runs.size(); ++step) late[place[anchors[step]]++] = runs[step];
  return late;
}

std::optional<Runs> BestEviction(const RunProblem& problem, std::span<const OpId> order,
                                 int64_t budget, FirstRuns first_runs,
                                 std::span<const EvictionRule> rules) {
  FlatSimulator simulator(problem);
  std::optional<Runs> best;
  int64_t best_cost = 0;
  for (const EvictionRule& rule : rules) {
    const std::optional<Runs> found = Evict(problem, order, budget, rule);
    if (!found) continue;
    Runs runs = DropUnread(problem, *found, first_runs);
    Runs late = DropUnread(problem, DelayReruns(problem, runs), first_runs);
    if (simulator.Run(late).peak <= budget) runs = std::move(late);
    const int64_t cost = CostOf(problem, runs);
    if (best && cost >= best_cost) continue;
    best_cost = cost;
    best = std::move(runs);
  }
  return best;
}

}  // namespace ckplan
