#include "lib/planning/algorithms/best/copy_times.h"

#include <algorithm>
#include <utility>

namespace ckplan {

CopyTimes CopyTimesOf(const RunProblem& problem, const Link& link, std::vector<bool> may_move) {
  CopyTimes times{std::move(may_move), {}, {}, link.duplex == Duplex::kHalf};
  const auto time_of = [&](CopyWay way, int64_t bytes) {
    return std::min(link.TimeOf(way, Bytes(bytes)), kMaxTotalCost).count();
  };
  for (const int64_t bytes : problem.bytes) {
    times.out.push_back(time_of(CopyWay::kOut, bytes));
    times.in.push_back(time_of(CopyWay::kIn, bytes));
  }
  return times;
}

}  // namespace ckplan
