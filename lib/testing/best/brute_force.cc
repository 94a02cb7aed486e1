#include "lib/testing/best/brute_force.h"

#include <algorithm>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/planning/algorithms/best/certificates.h"

namespace ckplan {
namespace {

using Mask = uint32_t;

Mask Bit(int32_t i) { return Mask{1} << i; }

struct State {
  Mask live = 0;  // The values in memory.
  Mask ran = 0;   // The operations that have run.
  // These two change only if rules are given (lib/problem/runs/run_rules.h).
  Mask late = 0;           // The operations that were repeated after the forward pass.
  bool has_ended = false;  // Whether the forward pass has ended.
  auto operator<=>(const State&) const = default;
};

struct StateHash {
  size_t operator()(const State& state) const {
    const uint64_t rules = (uint64_t{state.late} << 1 | (state.has_ended ? 1U : 0U)) << 20;
    return ((uint64_t{state.live} << 32 | state.ran) ^ rules) * 0x9E3779B97F4A7C15U >> 8;
  }
};

struct Move {
  State to;
  int64_t peak = 0;  // The bytes in memory while the operation runs.
  int64_t cost = 0;
};

class StateSpace {
 public:
  explicit StateSpace(const RunProblem& problem, const RunRules* rules = nullptr)
      : problem_(problem), rules_(rules) {
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if (problem.is_result[static_cast<size_t>(value)]) results_ |= Bit(value);
    }
    for (const OpId op : RequiredOwnOrder(problem)) required_ |= Bit(op.index());
    for (int32_t op = 0; rules != nullptr && op < problem.op_count; ++op) {
      if (rules->is_backward[static_cast<size_t>(op)]) backward_ |= Bit(op);
    }
  }

  Mask required() const { return required_; }

  bool IsEnd(const State& state) const {
    return (state.ran & required_) == required_ && (state.live & results_) == results_;
  }

  // Adds the possible runs of `op`: one for each choice of reads whose memory its writes reuse.
  void AddRuns(const State& state, int32_t op, std::vector<Move>* moves) const {
    const auto at = static_cast<size_t>(op);
    const bool has_run = (state.ran & Bit(op)) != 0;
    if (has_run && !problem_.may_repeat[at]) return;
    if (rules_ != nullptr && !RulesAllowRun(state, op)) return;
    const Mask late = state.late | (has_run && state.has_ended ? Bit(op) : 0);
    Mask live = state.live;
    for (const int32_t read : problem_.reads[op]) {
      if ((live & Bit(read)) == 0) return;
    }
    for (const int32_t write : problem_.writes[op]) live |= Bit(write);
    int64_t bytes = problem_.workspace[at];
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if ((live & Bit(value)) != 0) bytes += problem_.bytes[static_cast<size_t>(value)];
    }
    const std::span<const int32_t> pairs = problem_.in_place[op];
    for (Mask choice = 0; choice < Bit(static_cast<int32_t>(pairs.size() / 2)); ++choice) {
      Move move = {{live, state.ran | Bit(op), late, state.has_ended}, bytes, problem_.cost[at]};
      for (size_t i = 0; i < pairs.size() / 2; ++i) {
        if ((choice & Bit(static_cast<int32_t>(i))) == 0) continue;
        move.to.live &= ~Bit(pairs[2 * i + 1]);
        move.peak -= problem_.bytes[static_cast<size_t>(pairs[2 * i])];
      }
      moves->push_back(move);
    }
  }

  void AddDrops(const State& state, std::vector<Move>* moves) const {
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if ((state.live & Bit(value)) == 0) continue;
      State to = state;
      to.live &= ~Bit(value);
      moves->push_back({to, 0, 0});
    }
  }

  // By the rules, the forward pass may end at any point after the first runs of its operations and
  // before the first run of the backward pass.
  void AddEndOfForward(const State& state, std::vector<Move>* moves) const {
    if (rules_ == nullptr || state.has_ended) return;
    State to = state;
    to.has_ended = true;
    moves->push_back({to, 0, 0});
  }

 private:
  bool RulesAllowRun(const State& state, int32_t op) const {
    const auto at = static_cast<size_t>(op);
    const bool has_run = (state.ran & Bit(op)) != 0;
    if (has_run && rules_->runs_once[at]) return false;
    if (!rules_->is_backward[at] && !has_run) {
      return !state.has_ended || (state.ran & backward_) != 0;
    }
    if (!state.has_ended) return !rules_->is_backward[at];
    for (const int32_t producer : rules_->producers[at]) {
      const bool is_late = (state.late & Bit(producer)) != 0;
      if (rules_->is_recomputed[static_cast<size_t>(producer)] && !is_late) return false;
    }
    return true;
  }

  const RunProblem& problem_;
  const RunRules* const rules_;
  Mask results_ = 0;
  Mask required_ = 0;
  Mask backward_ = 0;  // Empty without rules.
};

// Dijkstra's algorithm. `next` lists the moves from a state. `extend` returns the length of a path
// after a move, or nullopt if the move is not allowed.
template <typename Next, typename Extend>
std::optional<int64_t> Shortest(const StateSpace& space, Next next, Extend extend) {
  using Entry = std::pair<int64_t, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::unordered_map<State, int64_t, StateHash> best;
  const auto reach = [&](const State& state, int64_t length) {
    const auto [it, is_new] = best.try_emplace(state, length);
    if (!is_new && it->second <= length) return;
    it->second = length;
    queue.emplace(length, state);
  };
  reach(State(), 0);
  while (!queue.empty()) {
    const auto [length, state] = queue.top();
    queue.pop();
    if (length > best.at(state)) continue;
    if (space.IsEnd(state)) return length;
    for (const Move& move : next(state)) {
      const std::optional<int64_t> to = extend(length, move);
      if (to) reach(move.to, *to);
    }
  }
  return std::nullopt;
}

// Returns the minimum cost of a plan within the budget. `add_runs` adds the possible runs from a
// state.
template <typename AddRuns>
std::optional<int64_t> MinCost(const StateSpace& space, int64_t budget, AddRuns add_runs) {
  const auto next = [&](const State& state) {
    std::vector<Move> moves;
    space.AddDrops(state, &moves);
    space.AddEndOfForward(state, &moves);
    add_runs(state, &moves);
    return moves;
  };
  const auto extend = [&](int64_t cost, const Move& move) {
    return move.peak <= budget ? std::optional(cost + move.cost) : std::nullopt;
  };
  return Shortest(space, next, extend);
}

// Returns the minimum cost of a plan that saves at most `most_saved` bytes at the loss, with one
// micro-batch's peak within the budget.
std::optional<int64_t> MinCostSaving(const RunProblem& problem, const StateSpace& space,
                                     std::span<const OpId> order, int64_t budget,
                                     int64_t most_saved) {
  Mask written = 0;
  for (const int32_t write : problem.writes[problem.others.loss]) written |= Bit(write);
  const auto bytes_of = [&](Mask values) {
    int64_t bytes = 0;
    for (int32_t value = 0; value < problem.value_count; ++value) {
      if ((values & Bit(value)) != 0) bytes += problem.bytes[static_cast<size_t>(value)];
    }
    return bytes;
  };
  return MinCost(space, budget, [&](const State& state, std::vector<Move>* moves) {
    for (const OpId op : order) {
      const size_t first = moves->size();
      space.AddRuns(state, op.index(), moves);
      if (op.index() == problem.others.loss) {
        // Drops what is not saved together with the run.
        const std::vector<Move> runs(moves->begin() + static_cast<ptrdiff_t>(first), moves->end());
        moves->resize(first);
        for (const Move& run : runs) {
          const Mask live = run.to.live & ~written;
          for (Mask saved = live;; saved = (saved - 1) & live) {
            Move move = run;
            move.to.live = saved | (run.to.live & written);
            if (bytes_of(saved) <= most_saved) moves->push_back(move);
            if (saved == 0) break;
          }
        }
      }
      if ((state.ran & Bit(op.index())) == 0) break;
    }
  });
}

ValueId AddValue(JointGraphParts* parts, int64_t bytes) {
  Value value;
  value.file_id = static_cast<int64_t>(parts->values.size());
  value.name = "v" + std::to_string(value.file_id);
  value.bytes = Bytes(bytes);
  return parts->values.push_back(std::move(value));
}

OpId AddOperation(JointGraphParts* parts, std::vector<ValueId> reads, std::vector<ValueId> writes,
                  int64_t cost) {
  Operation op;
  op.file_id = static_cast<int64_t>(parts->ops.size());
  op.name = "o" + std::to_string(op.file_id);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  op.cost = Cost(cost);
  return parts->ops.push_back(std::move(op));
}

}  // namespace

JointGraph RandomSmallGraph(Rng& rng, int op_count) {
  JointGraphParts parts;
  parts.name = "random";
  for (int i = 0; i < op_count; ++i) {
    std::vector<ValueId> reads;
    const auto value_count = static_cast<int64_t>(parts.values.size());
    const int64_t read_count = value_count == 0 ? 0 : rng.Between(i % 3 == 0 ? 0 : 1, 3);
    for (int64_t k = 0; k < read_count; ++k) {
      const ValueId read(static_cast<int32_t>(rng.Between(0, value_count - 1)));
      if (std::find(reads.begin(), reads.end(), read) == reads.end()) reads.push_back(read);
    }
    std::vector<ValueId> writes = {AddValue(&parts, rng.Between(0, 9))};
    if (rng.Chance(15)) writes.push_back(AddValue(&parts, rng.Between(1, 4)));
    const OpId id = AddOperation(&parts, reads, writes, rng.Between(0, 9));
    Operation& op = parts.ops[id];
    if (rng.Chance(20)) op.workspace = Bytes(rng.Between(1, 5));
    op.may_repeat = !rng.Chance(15);
    if (!reads.empty() && rng.Chance(25)) {
      parts.values[writes[0]].bytes = parts.values[reads[0]].bytes;
      op.in_place.push_back({writes[0], reads[0]});
    }
  }
  parts.results = {ValueId(parts.values.size() - 1)};
  if (rng.Chance(30)) {
    const auto last = static_cast<int64_t>(parts.values.size()) - 1;
    const ValueId result(static_cast<int32_t>(rng.Between(0, last)));
    if (result != parts.results[0]) parts.results.push_back(result);
  }
  return JointGraph::Create(std::move(parts)).value();
}

JointGraph ChainJointGraph(Rng& rng, int layer_count) {
  JointGraphParts parts;
  parts.name = "chain";
  std::vector<ValueId> outputs;
  for (int i = 0; i < layer_count; ++i) {
    std::vector<ValueId> reads;
    if (i > 0) reads.push_back(outputs.back());
    outputs.push_back(AddValue(&parts, rng.Between(1, 9)));
    AddOperation(&parts, reads, {outputs.back()}, rng.Between(1, 9));
  }
  ValueId gradient = outputs.back();
  for (int i = layer_count - 1; i > 0; --i) {
    const auto at = static_cast<size_t>(i);
    std::vector<ValueId> reads = {outputs[at], outputs[at - 1]};
    if (gradient != outputs[at]) reads.push_back(gradient);
    gradient = AddValue(&parts, parts.values[outputs[at - 1]].bytes.count());
    AddOperation(&parts, reads, {gradient}, rng.Between(1, 9));
  }
  parts.results = {gradient};
  return JointGraph::Create(std::move(parts)).value();
}

JointGraph WithLoss(const JointGraph& graph, OpId loss) {
  JointGraphParts parts = PartsOf(graph);
  parts.ops[loss].may_repeat = false;
  return JointGraph::Create(std::move(parts)).value();
}

int64_t ExhaustiveMinPeak(const RunProblem& problem) {
  const StateSpace space(problem);
  const auto next = [&](const State& state) {
    std::vector<Move> moves;
    space.AddDrops(state, &moves);
    for (const OpId op : RequiredOwnOrder(problem)) space.AddRuns(state, op.index(), &moves);
    return moves;
  };
  const auto extend = [](int64_t peak, const Move& move) {
    return std::optional(std::max(peak, move.peak));
  };
  return *Shortest(space, next, extend);
}

int64_t ExhaustiveMinPeakOnce(const RunProblem& problem) {
  const StateSpace space(problem);
  const auto next = [&](const State& state) {
    std::vector<Move> moves;
    space.AddDrops(state, &moves);
    for (const OpId op : RequiredOwnOrder(problem)) {
      if ((state.ran & Bit(op.index())) == 0) space.AddRuns(state, op.index(), &moves);
    }
    return moves;
  };
  const auto extend = [](int64_t peak, const Move& move) {
    return std::optional(std::max(peak, move.peak));
  };
  return *Shortest(space, next, extend);
}

std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, std::span<const OpId> order,
                                         int64_t budget, const RunRules* rules) {
  const StateSpace space(problem, rules);
  if (problem.others.count > 0) {
    std::optional<int64_t> least;
    for (int64_t saved = 0; problem.others.count * saved <= budget; ++saved) {
      const auto cost =
          MinCostSaving(problem, space, order, budget - problem.others.count * saved, saved);
      if (cost) least = std::min(*cost, least.value_or(*cost));
    }
    return least;
  }
  return MinCost(space, budget, [&](const State& state, std::vector<Move>* moves) {
    for (const OpId op : order) {
      space.AddRuns(state, op.index(), moves);
      if ((state.ran & Bit(op.index())) == 0) break;
    }
  });
}

std::optional<int64_t> ExhaustiveMinCost(const RunProblem& problem, int64_t budget,
                                         const RunRules* rules) {
  const StateSpace space(problem, rules);
  const Runs required = RequiredOwnOrder(problem);
  return MinCost(space, budget, [&](const State& state, std::vector<Move>* moves) {
    for (const OpId op : required) space.AddRuns(state, op.index(), moves);
  });
}

}  // namespace ckplan
