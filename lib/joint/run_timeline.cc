#include "lib/joint/run_timeline.h"

#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/joint/run_table.h"
#include "lib/schedule/replay.h"
#include "lib/schedule/timeline_sink.h"

namespace ckplan {

Timeline BuildRunTimeline(const JointGraph& graph, std::span<const OpId> runs) {
  const StepTable table = TableOf(graph);
  const std::vector<int32_t> kinds = KindsOf(runs);
  Replay replay(table);
  const auto fault = replay.Read(kinds, FreePolicy::kLiveness);
  CKPLAN_CHECK(!fault, "the runs have been simulated before");
  TimelineSink sink(table);
  replay.Report(&sink);
  return std::move(sink).Finish();
}

}  // namespace ckplan
