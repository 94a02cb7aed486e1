#include "lib/planning/algorithms/best/moment_network.h"

namespace ckplan {

MomentNetwork::MomentNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                             const std::vector<bool>& may_move)
    : problem_(problem),
      may_move_(may_move),
      is_before_(At(problem.op_count)),
      is_needed_(At(problem.value_count)),
      is_certain_(At(problem.value_count)),
      network_(problem.value_count + problem.op_count + 1),
      sink_(problem.value_count + problem.op_count),
      is_in_network_(At(sink_)) {
  FindNeeded(order, moment);
  FindCertain(order[moment].index());
  network_.SetTerminal(sink_, MaxFlow::Terminal::kSink);
  for (int32_t value = 0; value < problem.value_count; ++value) {
    if (!IsNeeded(value) || IsFree(value)) continue;
    network_.SetTerminal(value, MaxFlow::Terminal::kSource);
    Reach(value);
  }
  for (size_t next = 0; next < values_.size(); ++next) AddValue(values_[next]);
}

int64_t MomentNetwork::Solve() {
  const int64_t least_cut = network_.Solve();
  side_ = network_.LeastSourceSide();
  return least_cut;
}

bool MomentNetwork::IsMadeBefore(int32_t value) const {
  const int32_t maker = problem_.maker[At(value)];
  return maker >= 0 && is_before_[At(maker)];
}

bool MomentNetwork::MayBeRemade(int32_t value) const {
  return problem_.may_repeat[At(problem_.maker[At(value)])];
}

void MomentNetwork::FindNeeded(std::span<const OpId> order, size_t moment) {
  for (size_t i = 0; i < moment; ++i) is_before_[At(order[i].index())] = true;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (IsMadeBefore(value)) is_needed_[At(value)] = problem_.is_result[At(value)];
  }
  for (size_t i = moment; i < order.size(); ++i) {
    for (const int32_t read : problem_.reads[order[i].index()]) {
      if (IsMadeBefore(read)) is_needed_[At(read)] = true;
    }
  }
}

void MomentNetwork::FindCertain(int32_t op) {
  for (const int32_t read : problem_.reads[op]) is_certain_[At(read)] = true;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    const bool may_move = !may_move_.empty() && may_move_[At(value)];
    if (IsNeeded(value) && (problem_.bytes[At(value)] == 0 || (!may_move && !MayBeRemade(value)))) {
      is_certain_[At(value)] = true;
    }
    if (is_certain_[At(value)]) certain_bytes_ += problem_.bytes[At(value)];
  }
}

void MomentNetwork::Reach(int32_t value) {
  if (is_in_network_[At(value)]) return;
  is_in_network_[At(value)] = true;
  values_.push_back(value);
}

void MomentNetwork::AddValue(int32_t value) {
  const int32_t maker = problem_.maker[At(value)];
  const int32_t head = MayBeRemade(value) ? NodeOfOp(maker) : sink_;
  const int64_t bytes = problem_.bytes[At(value)];
  value_arcs_.push_back({network_.AddArc(value, head, bytes), value, head, bytes});
  if (head == sink_ || is_in_network_[At(head)]) return;
  is_in_network_[At(head)] = true;
  const int64_t cost = problem_.cost[At(maker)];
  op_arcs_.push_back({network_.AddArc(head, sink_, cost), maker, cost});
  for (const int32_t read : problem_.reads[maker]) {
    if (IsFree(read)) continue;
    network_.AddArc(head, read, MaxFlow::kInfinite);
    Reach(read);
  }
}

}  // namespace ckplan
