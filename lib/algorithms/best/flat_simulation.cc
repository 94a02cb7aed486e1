#include "lib/algorithms/best/flat_simulation.h"

#include <algorithm>

#include "lib/base/check.h"

namespace ckplan {
FlatSimulator::FlatSimulator(const RunProblem& problem) : problem_(problem) {}

bool FlatSimulator::IsValid(std::span<const OpId> runs) {
  run_count_.assign(At(problem_.op_count), 0);
  for (const OpId id : runs) {
    const int32_t op = id.index();
    for (const int32_t read : problem_.reads[op]) {
      if (run_count_[At(problem_.maker[At(read)])] == 0) return false;
    }
    if (++run_count_[At(op)] > 1 && !problem_.may_repeat[At(op)]) return false;
  }
  for (int32_t op = 0; op < problem_.op_count; ++op) {
    if (problem_.is_needed[At(op)] && run_count_[At(op)] == 0) return false;
  }
  return true;
}

FlatSimulation FlatSimulator::Run(std::span<const OpId> runs) {
  CKPLAN_CHECK(IsValid(runs), "a search keeps to sequences in which each read finds its value");
  made_at_.assign(At(problem_.value_count), -1);
  last_read_.assign(At(problem_.value_count), -1);
  change_.assign(runs.size() + 1, 0);
  FlatSimulation simulation;
  for (size_t step = 0; step < runs.size(); ++step) {
    const int32_t op = runs[step].index();
    for (const int32_t read : problem_.reads[op]) last_read_[At(read)] = static_cast<int32_t>(step);
    for (const int32_t write : problem_.writes[op]) {
      if (made_at_[At(write)] >= 0) Close(write, false, runs);
      made_at_[At(write)] = last_read_[At(write)] = static_cast<int32_t>(step);
    }
    change_[step] += problem_.workspace[At(op)];
    change_[step + 1] -= problem_.workspace[At(op)];
    simulation.cost += problem_.cost[At(op)];
  }
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (made_at_[At(value)] >= 0) Close(value, true, runs);
  }
  int64_t live = 0;
  for (size_t step = 0; step < runs.size(); ++step) {
    live += change_[step];
    if (step > 0 && live <= simulation.peak) continue;
    simulation.peak = live;
    simulation.peak_step = step;
  }
  return simulation;
}

// Counts the newest version of the value, of which nothing will be read any more.
void FlatSimulator::Close(int32_t value, bool is_last, std::span<const OpId> runs) {
  const int64_t bytes = problem_.bytes[At(value)];
  const int32_t made = made_at_[At(value)];
  const int32_t read = last_read_[At(value)];
  auto end = At(read) + 1;
  if (is_last && problem_.is_result[At(value)]) {
    end = runs.size();
  } else if (read > made && MayBeTakenOver(problem_, runs[At(read)].index(), value)) {
    --end;
  }
  change_[At(made)] += bytes;
  change_[end] -= bytes;
}

int64_t PeakOf(const RunProblem& problem, std::span<const OpId> runs) {
  return FlatSimulator(problem).Run(runs).peak;
}

int64_t CostOf(const RunProblem& problem, std::span<const OpId> runs) {
  int64_t cost = 0;
  for (const OpId op : runs) cost += problem.cost[At(op.index())];
  return cost;
}

bool MayBeTakenOver(const RunProblem& problem, int32_t op, int32_t value) {
  const std::span<const int32_t> reads = problem.taken_over[op];
  return std::binary_search(reads.begin(), reads.end(), value);
}

}  // namespace ckplan
