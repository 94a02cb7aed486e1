// Passes over a family of lower sets. Uses several threads if the family is wide.
//
// Sets of the same size are not subsets of each other: they form a level. A pass goes level by
// level, and threads share the sets of a level. The result for a set depends only on earlier
// levels, not on the threads. The same holds for the work counted towards a work limit
// (lib/base/stop.h): after each level, the thread that began the pass polls for the work of all
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/planning/algorithms/kusumoto/lower_sets.h"

namespace ckplan {

class SetWorkers {
 public:
  // Keeps references to its arguments.
  SetWorkers(const LowerSetFamily& family, const DpLimits& limits);

  // The maximum number of threads in a pass, numbered from 0.
  size_t count() const { return finders_.size(); }
  SubsetFinder& finder(size_t worker) { return finders_[worker]; }
  WorkMeter& meter() { return meter_; }

  // Calls body(worker, set) for each of the `sets`, an ascending list. RunUpwards visits all
  // subsets of a set before it; RunDownwards, after it. Each worker runs one call at a time. If
  // some threads cannot be started, the others do their work. Exceptions of the body propagate.
  // Returns the errors of the meter.
  using Body = std::function<void(size_t worker, int32_t set)>;
  Result<Done> RunUpwards(std::span<const int32_t> sets, const Body& body);
  Result<Done> RunDownwards(std::span<const int32_t> sets, const Body& body);

 private:
  using Level = std::vector<int32_t>;
  std::vector<Level> LevelsOf(std::span<const int32_t> sets) const;
  bool IsWide(size_t set_count) const;
  Result<Done> RunSequentially(const std::vector<Level>& levels, const Body& body);
  Result<Done> Run(const std::vector<Level>& levels, size_t set_count, const Body& body);
  void RunOnThreads(const std::vector<Level>& levels, const Body& body);
  void PollFor(int64_t transitions);

  const LowerSetFamily& family_;
  WorkMeter meter_;
  std::vector<SubsetFinder> finders_;
  int64_t polled_ = 0;  // The meter's transitions at the last poll.
};

}  // namespace ckplan
