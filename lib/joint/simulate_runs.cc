#include "lib/joint/simulate_runs.h"

#include <fmt/format.h>

#include "lib/joint/run_table.h"
#include "lib/schedule/peak_meter.h"

namespace ckplan {

RunSimulator::RunSimulator(const JointGraph& graph)
    : graph_(graph), table_(TableOf(graph)), replay_(table_) {}

Result<RunSimulation> RunSimulator::Run(std::span<const OpId> runs) {
  CKPLAN_RETURN_IF_ERROR(CheckRepeats(runs));
  const std::vector<int32_t> kinds = KindsOf(runs);
  if (const auto fault = replay_.Read(kinds, FreePolicy::kLiveness)) {
    const std::string& value = graph_.value(ValueId(fault->value)).name;
    return StepError(fault->step, runs[fault->step],
                     fmt::format("reads value \"{}\", which is not in memory", value));
  }
  CKPLAN_RETURN_IF_ERROR(CheckNeeded());
  PeakMeter meter(table_);
  replay_.Report(&meter);
  return RunSimulation{meter.peak(), meter.peak_step(), meter.cost()};
}

// Checks that each run is one of an operation, and that only operations that may repeat do. Counts
// the runs.
Result<Done> RunSimulator::CheckRepeats(std::span<const OpId> runs) {
  run_count_ = IdVector<OpId, int32_t>(graph_.ops().size());
  for (size_t step = 0; step < runs.size(); ++step) {
    const OpId id = runs[step];
    if (id.is_none() || static_cast<size_t>(id.index()) >= graph_.ops().size()) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("schedule: step {} runs an operation that the graph does not "
                                   "have",
                                   step));
    }
    if (run_count_[id]++ > 0 && !graph_.op(id).may_repeat) {
      return StepError(step, id, "must not run twice");
    }
  }
  return Done{};
}

Result<Done> RunSimulator::CheckNeeded() const {
  for (const OpId id : graph_.ops().ids()) {
    if (run_count_[id] > 0 || !graph_.is_needed(id)) continue;
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("schedule: \"{}\" never runs, and makes a result", graph_.op(id).name));
  }
  return Done{};
}

Error RunSimulator::StepError(size_t step, OpId op, const std::string& fault) const {
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("schedule: step {} (\"{}\") {}", step, graph_.op(op).name, fault));
}

Bytes OwnOrderPeak(const JointGraph& graph) {
  return RunSimulator(graph).Run(OwnOrder(graph)).value().peak;
}

}  // namespace ckplan
