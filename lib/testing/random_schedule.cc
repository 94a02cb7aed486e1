#include "lib/testing/random_schedule.h"

#include <cstddef>
#include <cstdint>

#include "lib/problem/schedule/step_table.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {

namespace {

// Adds transfers to runs. Values leave at random, and return when a run reads them.
class MoveBuilder {
 public:
  MoveBuilder(Rng& rng, const JointGraph& graph)
      : rng_(rng),
        graph_(graph),
        is_movable_(MovableValues(graph)),
        is_in_memory_(graph.values().size()),
        is_leaving_(graph.values().size()),
        is_on_host_(graph.values().size()) {}

  Schedule Build(const std::vector<OpId>& runs) && {
    for (const OpId run : runs) {
      for (const ValueId read : graph_.op(run).reads) Provide(graph_.value(read).storage);
      for (const ValueId write : graph_.op(run).writes) FinishLeaving(write);
      Add(Step::Run(run));
      for (const ValueId write : graph_.op(run).writes) is_in_memory_[write] = true;
      for (int i = rng_.Chance(60) ? 2 : 0; i > 0; --i) MoveSomething();
    }
    for (const ValueId value : graph_.values().ids()) FinishLeaving(value);
    return std::move(schedule_);
  }

 private:
  void Add(Step step) { schedule_.steps.push_back(step); }

  void Provide(ValueId value) {
    if (is_in_memory_[value] || !is_on_host_[value]) return;
    Add(Step::In(value));
    is_in_memory_[value] = true;
  }

  void FinishLeaving(ValueId value) {
    if (!is_leaving_[value]) return;
    Add(Step::Drop(value));
    is_leaving_[value] = is_in_memory_[value] = false;
    is_on_host_[value] = true;
  }

  void MoveSomething() {
    std::vector<ValueId> candidates;
    for (const ValueId value : graph_.values().ids()) {
      if (is_movable_[value] && (is_in_memory_[value] || is_leaving_[value]))
        candidates.push_back(value);
    }
    if (candidates.empty()) return;
    const ValueId value = candidates[static_cast<size_t>(
        rng_.Between(0, static_cast<int64_t>(candidates.size()) - 1))];
    if (is_leaving_[value]) return FinishLeaving(value);
    if (is_on_host_[value] && rng_.Chance(15)) return Add(Step::In(value));
    Add(Step::Out(value));
    is_leaving_[value] = true;
  }

  Rng& rng_;
  const JointGraph& graph_;
  const IdVector<ValueId, bool> is_movable_;
  IdVector<ValueId, bool> is_in_memory_;
  IdVector<ValueId, bool> is_leaving_;
  IdVector<ValueId, bool> is_on_host_;
  Schedule schedule_;
};

size_t RandomPlace(Rng& rng, size_t size) {
  return static_cast<size_t>(rng.Between(0, static_cast<int64_t>(size) - 1));
}

// Moves, removes or adds a transfer.
void Disturb(Rng& rng, const JointGraph& graph, std::vector<Step>* steps) {
  std::vector<size_t> transfers;
  for (size_t k = 0; k < steps->size(); ++k) {
    if ((*steps)[k].is_transfer()) transfers.push_back(k);
  }
  const auto at = [&](size_t k) { return steps->begin() + static_cast<std::ptrdiff_t>(k); };
  const bool adds = transfers.empty() || rng.Chance(25);
  Step step = adds ? Step::Out(ValueId(RandomPlace(rng, graph.values().size()))) : Step();
  if (adds) {
    step.kind = static_cast<StepKind>(static_cast<int64_t>(StepKind::kOut) + rng.Between(0, 2));
  } else {
    const size_t from = transfers[RandomPlace(rng, transfers.size())];
    step = (*steps)[from];
    steps->erase(at(from));
    if (rng.Chance(30)) return;
  }
  steps->insert(at(RandomPlace(rng, steps->size() + 1)), step);
}

}  // namespace

Schedule RandomMoves(Rng& rng, const JointGraph& graph) {
  Schedule schedule = WithRandomMoves(rng, graph, RandomRuns(rng, graph));
  if (rng.Chance(30) && !schedule.steps.empty()) Disturb(rng, graph, &schedule.steps);
  return schedule;
}

Schedule WithRandomMoves(Rng& rng, const JointGraph& graph, const std::vector<OpId>& runs) {
  return MoveBuilder(rng, graph).Build(runs);
}

Link RandomLink(Rng& rng) {
  Link link{"pcie4", rng.Between(1, 6) * 1'000'000'000, rng.Between(1, 6) * 1'000'000'000};
  link.latency_ns = rng.Between(0, 3);
  link.duplex = rng.Chance(40) ? Duplex::kHalf : Duplex::kFull;
  return link;
}

}  // namespace ckplan
