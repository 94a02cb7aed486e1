// Passes over the members of a family of lower sets, on several threads where it is wide.
//
// Sets of one size are no subsets of each other: they form a level. A pass goes from level to
// level, and threads share the sets of one. What is found for a set follows from what is known of
// the levels before it, so it does not depend on the threads, nor on how many there are. Neither
// does the work that counts for a limit on it (lib/base/work_limit.h): the thread that began the
// pass polls after each level for all that was done by any.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/algorithms/kusumoto/lower_sets.h"
#include "lib/algorithms/kusumoto/work_meter.h"
#include "lib/base/result.h"

namespace ckplan {

class SetWorkers {
 public:
  // Keeps references to both.
  SetWorkers(const LowerSetFamily& family, const DpLimits& limits);

  // At most this many threads run a pass; each has a number below it.
  size_t count() const { return finders_.size(); }
  SubsetFinder& finder(size_t worker) { return finders_[worker]; }
  WorkMeter& meter() { return meter_; }

  // Calls body(worker, set) for each of the `sets`, an ascending list: upwards all subsets of a set
  // come before it, downwards after it. One call at a time for each worker. Where threads cannot be
  // started the others do their work. An exception of the body is passed on. Errors are those of
  // the meter.
  using Body = std::function<void(size_t worker, int32_t set)>;
  Result<Done> Upwards(std::span<const int32_t> sets, const Body& body);
  Result<Done> Downwards(std::span<const int32_t> sets, const Body& body);

 private:
  using Level = std::vector<int32_t>;
  std::vector<Level> LevelsOf(std::span<const int32_t> sets) const;
  bool IsWide(size_t set_count) const;
  Result<Done> RunInTurn(const std::vector<Level>& levels, const Body& body);
  Result<Done> Run(const std::vector<Level>& levels, size_t set_count, const Body& body);
  void RunOnThreads(const std::vector<Level>& levels, const Body& body);
  void PollFor(int64_t transitions);

  const LowerSetFamily& family_;
  WorkMeter meter_;
  std::vector<SubsetFinder> finders_;
  int64_t polled_ = 0;  // Of the meter's transitions.
};

}  // namespace ckplan
