#include "lib/planning/algorithms/best/flat_simulation.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/stop.h"
#include "lib/problem/schedule/replay.h"

namespace ckplan {
namespace {

StepTable TableOf(const RunProblem& problem) {
  StepTable table;
  table.reads = problem.reads;
  table.writes = problem.writes;
  table.in_place = problem.in_place;
  for (const int64_t bytes : problem.workspace) table.workspace.emplace_back(bytes);
  for (const int64_t cost : problem.cost) table.cost.emplace_back(cost);
  for (const int64_t bytes : problem.bytes) table.bytes.emplace_back(bytes);
  table.alias_of.assign(table.bytes.size(), -1);
  table.is_in_memory.assign(table.bytes.size(), true);
  table.is_result = problem.is_result;
  return table;
}

std::vector<int32_t> KindsOf(std::span<const OpId> runs) {
  std::vector<int32_t> kinds;
  kinds.reserve(runs.size());
  for (const OpId op : runs) kinds.push_back(op.index());
  return kinds;
}

}  // namespace

FlatSimulator::FlatSimulator(const RunProblem& problem)
    : problem_(problem), table_(TableOf(problem)), replay_(table_) {}

bool FlatSimulator::IsValid(std::span<const OpId> runs) {
  run_count_.assign(At(problem_.op_count), 0);
  for (const OpId id : runs) {
    const int32_t op = id.index();
    for (const int32_t read : problem_.reads[op]) {
      if (run_count_[At(problem_.producer[At(read)])] == 0) return false;
    }
    if (++run_count_[At(op)] > 1 && !problem_.may_repeat[At(op)]) return false;
  }
  for (int32_t op = 0; op < problem_.op_count; ++op) {
    if (problem_.is_needed[At(op)] && run_count_[At(op)] == 0) return false;
  }
  return true;
}

FlatSimulation FlatSimulator::Run(std::span<const OpId> runs) {
  CKPLAN_CHECK(IsValid(runs), "every read of a searched sequence finds its value");
  const std::vector<int32_t> kinds = KindsOf(runs);
  const auto fault = replay_.Read(kinds, FreePolicy::kLiveness);
  CKPLAN_CHECK(!fault, "a valid sequence can be replayed");
  const StopsSuspended suspended;  // A stopped search must still measure its plan.
  PeakMeter meter(table_);
  replay_.Report(&meter);
  return {meter.peak().count() + BytesOfOthers(problem_, runs), meter.peak_step(),
          meter.cost().count()};
}

int64_t PeakOf(const RunProblem& problem, std::span<const OpId> runs) {
  return FlatSimulator(problem).Run(runs).peak;
}

int64_t CostOf(const RunProblem& problem, std::span<const OpId> runs) {
  int64_t cost = 0;
  for (const OpId op : runs) cost += problem.cost[At(op.index())];
  return cost;
}

bool MayBeOverwritten(const RunProblem& problem, int32_t op, int32_t value) {
  const std::span<const int32_t> reads = problem.taken_over[op];
  return std::binary_search(reads.begin(), reads.end(), value);
}

std::vector<bool> OverwritableValues(const RunProblem& problem) {
  std::vector<bool> is_taken_over(At(problem.value_count), false);
  for (int32_t op = 0; op < problem.op_count; ++op) {
    const std::span<const int32_t> pairs = problem.in_place[op];
    for (size_t i = 1; i < pairs.size(); i += 2) is_taken_over[At(pairs[i])] = true;
  }
  return is_taken_over;
}

}  // namespace ckplan
