#include "lib/planning/algorithms/dtr/dtr.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/runs/run_problem.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {
namespace {

constexpr size_t kMaxOps = 20'000;
// A walk that runs operations more often than this on average is thrashing, so abandon it.
constexpr size_t kMaxRunsPerOperation = 12;
// Stop after this many limits in a row that no walk meets.
constexpr int kMaxFailures = 4;
// Storages inspected between two polls; work limits depend on it.
constexpr uint32_t kLooksPerPoll = 64;

// The memory of the values. A value that is not an alias stands for its storage, which also holds
// its aliases. Values and storages share their numbering.
struct Storages {
  Storages(const JointGraph& graph, const RunProblem& problem);

  std::vector<int32_t> of;         // The storage of each value.
  FlatLists values;                // The values in each storage; empty for aliases.
  FlatLists parents;               // The other storages that its values' producers read.
  FlatLists children;              // The reverse of `parents`.
  std::vector<double> cost;        // c_0: the cost of running each producer once.
  std::vector<bool> is_evictable;  // All its producers may rerun, and it uses memory.
  // The last position in the order at which the storage is needed. For an evictable storage, that
  // is its last reader; for any other, the operation after which nothing can require it again; for
  // results, the number of operations.
  std::vector<int32_t> needed_until;
  FlatLists dropped_after;  // By operation: the storages not needed after it.

 private:
  static std::vector<int32_t> RootsOf(const JointGraph& graph);
  FlatLists ValuesOf() const;
  FlatLists ParentsOf(const RunProblem& problem) const;
  FlatLists ChildrenOf() const;
  void FindNeeds(const RunProblem& problem);
  FlatLists ListDroppedAfter(const RunProblem& problem) const;
};

std::vector<int32_t> Storages::RootsOf(const JointGraph& graph) {
  std::vector<int32_t> roots;
  for (const Value& value : graph.values()) roots.push_back(value.storage.index());
  return roots;
}

FlatLists Storages::ValuesOf() const {
  std::vector<std::vector<int32_t>> lists(of.size());
  for (size_t value = 0; value < of.size(); ++value) {
    lists[At(of[value])].push_back(static_cast<int32_t>(value));
  }
  return FlatLists(lists);
}

FlatLists Storages::ParentsOf(const RunProblem& problem) const {
  std::vector<std::vector<int32_t>> lists(of.size());
  for (size_t value = 0; value < of.size(); ++value) {
    std::vector<int32_t>& list = lists[At(of[value])];
    if (problem.producer[value] < 0) continue;
    for (const int32_t read : problem.reads[problem.producer[value]]) {
      if (of[At(read)] != of[value]) list.push_back(of[At(read)]);
    }
  }
  for (std::vector<int32_t>& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return FlatLists(lists);
}

FlatLists Storages::ChildrenOf() const {
  std::vector<std::vector<int32_t>> lists(of.size());
  for (size_t child = 0; child < of.size(); ++child) {
    for (const int32_t parent : parents[static_cast<int32_t>(child)]) {
      lists[At(parent)].push_back(static_cast<int32_t>(child));
    }
  }
  return FlatLists(lists);
}

// Works backwards: an operation that may repeat can be required as long as its outputs can.
void Storages::FindNeeds(const RunProblem& problem) {
  needed_until.assign(of.size(), 0);
  std::vector<int32_t> reachable_until(of.size());
  std::vector<int32_t> run_until(At(problem.op_count));
  for (int32_t op = problem.op_count - 1; op >= 0; --op) {
    run_until[At(op)] = op;
    for (const int32_t write : problem.writes[op]) {
      int32_t& until = reachable_until[At(write)] = op;
      int32_t last = op;
      for (const int32_t reader : problem.readers[write]) {
        until = std::max(until, run_until[At(reader)]);
        last = std::max(last, reader);
      }
      if (problem.is_result[At(write)]) until = last = problem.op_count;
      if (problem.may_repeat[At(op)]) run_until[At(op)] = std::max(run_until[At(op)], until);
      const int32_t storage = of[At(write)];
      int32_t& needed = needed_until[At(storage)];
      needed = std::max(needed, is_evictable[At(storage)] ? last : until);
    }
  }
}

FlatLists Storages::ListDroppedAfter(const RunProblem& problem) const {
  std::vector<std::vector<int32_t>> lists(At(problem.op_count));
  for (size_t storage = 0; storage < of.size(); ++storage) {
    const bool is_made =
        of[storage] == static_cast<int32_t>(storage) && problem.producer[storage] >= 0;
    if (!is_made || needed_until[storage] >= problem.op_count) continue;
    lists[At(needed_until[storage])].push_back(static_cast<int32_t>(storage));
  }
  return FlatLists(lists);
}

Storages::Storages(const JointGraph& graph, const RunProblem& problem)
    : of(RootsOf(graph)),
      values(ValuesOf()),
      parents(ParentsOf(problem)),
      children(ChildrenOf()),
      cost(of.size()),
      is_evictable(of.size()) {
  for (size_t value = 0; value < of.size(); ++value) {
    is_evictable[value] = problem.bytes[value] > 0 && problem.producer[value] >= 0;
  }
  for (size_t value = 0; value < of.size(); ++value) {
    const int32_t producer = problem.producer[value];
    if (producer < 0) continue;
    cost[At(of[value])] += static_cast<double>(problem.cost[At(producer)]);
    if (!problem.may_repeat[At(producer)]) is_evictable[At(of[value])] = false;
  }
  FindNeeds(problem);
  dropped_after = ListDroppedAfter(problem);
}

// One walk through the graph's order within one limit.
class Walk {
 public:
  Walk(const RunProblem& problem, const Storages& storages, int64_t limit)
      : problem_(problem),
        storages_(storages),
        limit_(limit),
        is_in_memory_(storages.of.size()),
        is_resident_(storages.of.size()),
        was_made_(storages.of.size()),
        locks_(storages.of.size()),
        last_access_(storages.of.size()),
        neighbourhood_cost_(storages.of.size()),
        is_outdated_(storages.of.size()),
        seen_(storages.of.size()),
        has_run_(At(problem.op_count)) {}

  // Returns the runs, or nothing if the walk fails.
  std::optional<Runs> Run() {
    for (now_ = 0; now_ < problem_.op_count; ++now_) {
      PollStop();
      if (!RunWithParents(now_)) return std::nullopt;
      for (const int32_t storage : storages_.dropped_after[now_]) {
        if (is_resident_[At(storage)]) Evict(storage);
      }
    }
    if (!RestoreResults()) return std::nullopt;
    return std::move(runs_);
  }

  // The peak memory by the walk's own count. Any limit from this up to the walk's limit gives the
  // same walk.
  int64_t highest() const { return highest_; }

 private:
  bool RunWithParents(int32_t target);
  bool RunOnce(int32_t op);
  bool RestoreResults();
  int32_t FirstMissingRead(int32_t op) const;
  void Lock(int32_t op, int change);
  void TakeOver(int32_t op);
  void ReplaceVersions(int32_t op);
  bool MakeRoom(int64_t bytes);
  int32_t FindVictim();
  void Place(int32_t storage);
  void Evict(int32_t storage);
  bool IsEvicted(int32_t storage) const {
    return was_made_[At(storage)] && !is_resident_[At(storage)] &&
           storages_.is_evictable[At(storage)];
  }
  template <typename Visit>
  void VisitNeighbours(int32_t storage, const FlatLists& next, Visit visit);
  void OutdateNeighbours(int32_t storage);
  double NeighbourhoodCost(int32_t storage);
  void PollForStop() {
    if (++looks_ % kLooksPerPoll == 0) PollStop();
  }

  const RunProblem& problem_;
  const Storages& storages_;
  const int64_t limit_;
  std::vector<bool> is_in_memory_;  // By value; the following lists are by storage.
  std::vector<bool> is_resident_;
  std::vector<bool> was_made_;
  std::vector<int32_t> locks_;              // How many waiting operations read or write it.
  std::vector<double> last_access_;         // Measured by `clock_`.
  std::vector<double> neighbourhood_cost_;  // The cost of e*, valid if `is_outdated_` is not set.
  std::vector<bool> is_outdated_;
  std::vector<uint32_t> seen_;      // The last search that visited it.
  std::vector<bool> has_run_;       // By operation.
  std::vector<int32_t> evictable_;  // The evictable storages in memory.
  std::vector<int32_t> stack_;
  uint32_t search_ = 0;
  uint32_t looks_ = 0;
  int32_t now_ = 0;   // The next operation in the order.
  double clock_ = 0;  // The total cost so far.
  int64_t live_ = 0;  // Bytes in memory.
  int64_t highest_ = 0;
  Runs runs_;
};

// Depth first with an explicit stack, because chains can be long. Locks everything that waiting
// operations read.
bool Walk::RunWithParents(int32_t target) {
  std::vector<int32_t> waiting = {target};
  Lock(target, 1);
  while (!waiting.empty()) {
    const int32_t op = waiting.back();
    const int32_t missing = FirstMissingRead(op);
    if (missing >= 0) {
      const int32_t producer = problem_.producer[At(missing)];
      if (has_run_[At(producer)] && !problem_.may_repeat[At(producer)]) return false;
      waiting.push_back(producer);
      Lock(producer, 1);
      continue;
    }
    if (!RunOnce(op)) return false;
    waiting.pop_back();
    Lock(op, -1);
  }
  return true;
}

int32_t Walk::FirstMissingRead(int32_t op) const {
  for (const int32_t read : problem_.reads[op]) {
    if (!is_in_memory_[At(read)]) return read;
  }
  return -1;
}

void Walk::Lock(int32_t op, int change) {
  for (const int32_t read : problem_.reads[op]) {
    // An operation that reads an alias also lists its storage as a read.
    if (storages_.of[At(read)] == read) locks_[At(read)] += change;
  }
  for (const int32_t write : problem_.writes[op]) locks_[At(storages_.of[At(write)])] += change;
}

bool Walk::RunOnce(int32_t op) {
  PollStop();
  if (runs_.size() >= kMaxRunsPerOperation * At(problem_.op_count)) return false;
  TakeOver(op);
  ReplaceVersions(op);
  int64_t needed = problem_.workspace[At(op)];
  for (const int32_t write : problem_.writes[op]) {
    if (!is_resident_[At(storages_.of[At(write)])]) needed += problem_.bytes[At(write)];
  }
  if (!MakeRoom(needed)) return false;
  highest_ = std::max(highest_, live_ + needed);
  for (const int32_t write : problem_.writes[op]) {
    is_in_memory_[At(write)] = true;
    if (storages_.of[At(write)] == write && !is_resident_[At(write)]) Place(write);
    last_access_[At(storages_.of[At(write)])] = clock_;
  }
  for (const int32_t read : problem_.reads[op]) last_access_[At(storages_.of[At(read)])] = clock_;
  clock_ += static_cast<double>(problem_.cost[At(op)]);
  has_run_[At(op)] = true;
  runs_.emplace_back(op);
  return true;
}

// Evicts reads that are no longer needed and whose memory the operation's writes may take over.
void Walk::TakeOver(int32_t op) {
  const int32_t last = op == now_ ? now_ : now_ - 1;
  const std::span<const int32_t> pairs = problem_.in_place[op];
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int32_t read = pairs[i + 1];
    const bool is_unneeded = storages_.needed_until[At(read)] <= last && locks_[At(read)] == 1;
    if (is_unneeded && is_resident_[At(read)]) Evict(read);
  }
}

// If a written storage is still in memory, it is recomputed, which invalidates the values that
// other operations wrote to it.
void Walk::ReplaceVersions(int32_t op) {
  for (const int32_t write : problem_.writes[op]) {
    if (!is_resident_[At(write)] || !storages_.is_evictable[At(write)]) continue;
    for (const int32_t value : storages_.values[write]) is_in_memory_[At(value)] = false;
  }
}

bool Walk::MakeRoom(int64_t bytes) {
  while (live_ + bytes > limit_) {
    const int32_t victim = FindVictim();
    if (victim < 0) return false;
    Evict(victim);
  }
  return true;
}

// Returns the first storage with the lowest h_DTR, or -1 if all are locked.
int32_t Walk::FindVictim() {
  int32_t victim = -1;
  double least = std::numeric_limits<double>::infinity();
  for (const int32_t storage : evictable_) {
    PollForStop();
    if (locks_[At(storage)] > 0) continue;
    if (is_outdated_[At(storage)]) {
      neighbourhood_cost_[At(storage)] = NeighbourhoodCost(storage);
      is_outdated_[At(storage)] = false;
    }
    const double staleness = clock_ - last_access_[At(storage)] + 1;
    const double score = (storages_.cost[At(storage)] + neighbourhood_cost_[At(storage)]) /
                         (static_cast<double>(problem_.bytes[At(storage)]) * staleness);
    if (score > least || (score == least && storage > victim)) continue;
    least = score;
    victim = storage;
  }
  return victim;
}

void Walk::Place(int32_t storage) {
  const bool was_evicted = IsEvicted(storage);
  is_resident_[At(storage)] = was_made_[At(storage)] = is_outdated_[At(storage)] = true;
  live_ += problem_.bytes[At(storage)];
  if (storages_.is_evictable[At(storage)]) evictable_.push_back(storage);
  if (was_evicted) OutdateNeighbours(storage);
}

void Walk::Evict(int32_t storage) {
  is_resident_[At(storage)] = false;
  for (const int32_t value : storages_.values[storage]) is_in_memory_[At(value)] = false;
  live_ -= problem_.bytes[At(storage)];
  if (!storages_.is_evictable[At(storage)]) return;
  std::erase(evictable_, storage);
  OutdateNeighbours(storage);
}

// Visits the neighbours of `storage`, and the neighbours of evicted storages reachable through
// evicted ones.
template <typename Visit>
void Walk::VisitNeighbours(int32_t storage, const FlatLists& next, Visit visit) {
  ++search_;
  stack_.assign(1, storage);
  while (!stack_.empty()) {
    const int32_t from = stack_.back();
    stack_.pop_back();
    PollForStop();
    for (const int32_t to : next[from]) {
      if (seen_[At(to)] == search_) continue;
      seen_[At(to)] = search_;
      visit(to);
      if (IsEvicted(to)) stack_.push_back(to);
    }
  }
}

// Marks the storages whose evicted neighbourhood `storage` enters or leaves.
void Walk::OutdateNeighbours(int32_t storage) {
  const auto outdate = [&](int32_t neighbour) { is_outdated_[At(neighbour)] = true; };
  VisitNeighbours(storage, storages_.parents, outdate);
  VisitNeighbours(storage, storages_.children, outdate);
}

double Walk::NeighbourhoodCost(int32_t storage) {
  double cost = 0;
  const auto add = [&](int32_t neighbour) {
    if (IsEvicted(neighbour)) cost += storages_.cost[At(neighbour)];
  };
  VisitNeighbours(storage, storages_.parents, add);
  VisitNeighbours(storage, storages_.children, add);
  return cost;
}

bool Walk::RestoreResults() {
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    const int32_t producer = problem_.producer[At(value)];
    if (!problem_.is_result[At(value)] || producer < 0) continue;
    if (!is_in_memory_[At(value)] && !RunWithParents(producer)) return false;
    ++locks_[At(storages_.of[At(value)])];
  }
  return true;
}

// Returns a lower bound on the limits that a walk can meet.
int64_t LargestWorkingSet(const RunProblem& problem) {
  int64_t largest = 0;
  for (int32_t op = 0; op < problem.op_count; ++op) {
    int64_t bytes = problem.written_bytes[At(op)] + problem.workspace[At(op)];
    for (const int32_t read : problem.reads[op]) bytes += problem.bytes[At(read)];
    largest = std::max(largest, bytes - problem.in_place_bytes[At(op)]);
  }
  return largest;
}

struct DtrPlan {
  Runs runs;
  int64_t peak = 0;  // The simulated peak.
  int64_t cost = 0;  // The cost of all runs.
};

void AddPlansOfAllLimits(const JointGraph& graph, std::vector<DtrPlan>* plans) {
  const RunProblem problem(graph);
  const Storages storages(graph, problem);
  Simulator simulator(graph);
  const int64_t least = LargestWorkingSet(problem);
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (int failures = 0; limit >= least && failures < kMaxFailures;) {
    Walk walk(problem, storages, limit);
    std::optional<Runs> runs = walk.Run();
    failures = runs ? 0 : failures + 1;
    if (runs) {
      const Simulation simulation = simulator.Run(*runs).value();
      plans->push_back({*std::move(runs), simulation.peak.count(), simulation.cost.count()});
    }
    limit = std::min(walk.highest() - 1, limit / 16 * 15);
  }
}

class Dtr : public PreparedRunSolver {
 public:
  // A stop through `stop` keeps the plans so far, if there are any; other stops propagate.
  Dtr(const JointGraph& graph, const std::stop_token& stop) {
    try {
      const StopScope scope(stop);
      AddPlansOfAllLimits(graph, &plans_);
    } catch (const Stopped&) {
      if (plans_.empty() || !stop.stop_requested()) throw;
      guarantee_.insert(0, kStoppedEarly);
    }
    std::stable_sort(plans_.begin(), plans_.end(), [](const DtrPlan& a, const DtrPlan& b) {
      return std::pair(a.peak, a.cost) < std::pair(b.peak, b.cost);
    });
    int64_t cost = std::numeric_limits<int64_t>::max();
    std::erase_if(plans_, [&](const DtrPlan& plan) {
      if (plan.cost >= cost) return true;
      cost = plan.cost;
      return false;
    });
  }

  Knob knob() const override {
    const int64_t least = plans_.front().peak;
    return {Knob::Kind::kPeakLimit, least, plans_.back().peak, least};
  }

  Result<RunOutcome> Solve(int64_t limit, const SolveLimits&) override {
    const auto above = std::find_if(plans_.begin(), plans_.end(),
                                    [&](const DtrPlan& p) { return p.peak > limit; });
    if (above == plans_.begin()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("dtr has no plan within {} bytes", limit));
    }
    return RunOutcome{std::prev(above)->runs, false, guarantee_};
  }

 private:
  // Sorted by rising peak and falling cost. Never empty, because the first limit is infinite.
  std::vector<DtrPlan> plans_;
  std::string guarantee_ = "heuristic: greedy eviction by h_DTR";
};

}  // namespace

Result<std::unique_ptr<PreparedRunSolver>> PrepareDtrRuns(const JointGraph& graph,
                                                          const SolveLimits& limits) {
  if (graph.ops().size() > kMaxOps) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("dtr is limited to {} operations in a training step; this step has {}; "
                    "try another algorithm (`ckplan algos`)",
                    kMaxOps, graph.ops().size()));
  }
  return std::unique_ptr<PreparedRunSolver>(new Dtr(graph, limits.stop));
}

}  // namespace ckplan
