// What little memory costs: plans of one graph, each of which needs less memory than the next and
// takes more time.
//
// SolveBest looks for the least time within a memory. The question here is the other one, what is
// the least memory within a time, and is answered by the first: memories are halved between the
// largest one for which no such plan was found and the least peak of one that was.
//
//   added time
//        |  x                        x: plans
//        |- - - - - - - - - - - - -  the most that may be added
//        |       x                   <- the answer
//        |            x
//        +--------------------- peak
//          refused |   | reached
//
// Whatever is found and refused for one time narrows the range for all others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/algorithms/best/best.h"
#include "lib/algorithms/best/best_problem.h"
#include "lib/base/result.h"
#include "lib/joint/run_problem.h"
#include "lib/joint/simulate_runs.h"
#include "lib/plan/plan.h"

namespace ckplan {

struct PricedRuns {
  Runs runs;
  int64_t peak = 0;
  int64_t overhead = 0;  // Beyond running everything once.
};

// Heeds a stop (lib/base/stop.h), and keeps what was found before it.
class TradeOff {
 public:
  static constexpr int64_t kClose = 256;
  static constexpr int64_t kNear = 64;

  // Keeps a reference to `problem`. `first`: a plan of it, such as that of keeping everything.
  // Two of the options are used: the work of each search, and whether the order is free.
  TradeOff(BestProblem* problem, const BestOptions& options, const Runs& first);

  // Looks for the least peak of plans that add no more than that, to within such a part of what the
  // first plan needs.
  Result<Done> SearchWithin(int64_t most_added, int64_t close_parts = kClose);
  // Looks for the least peak of all plans.
  Result<Done> SearchLeast(int64_t close_parts = kClose);
  // Looks for plans of the least time within so many memories, at equal distances between the least
  // that is not excluded and that of the first plan. More memory never costs more time.
  Result<Done> SearchEvenly(int64_t count);

  // The plan of the least peak of those found that add no more; the plan of the least time where
  // none does.
  const PricedRuns& LeastWithin(int64_t most_added) const;
  const PricedRuns& Least() const { return plans_.front(); }
  const PricedRuns& Fastest() const { return plans_.back(); }
  // By increasing peak; what is added falls.
  const std::vector<PricedRuns>& plans() const { return plans_; }
  std::vector<CurvePoint> Points() const;

 private:
  // No plan was found within that memory that adds no more.
  struct Refusal {
    int64_t budget = 0;
    int64_t most_added = 0;
  };

  Result<Done> HalveFor(int64_t most_added, int64_t close_parts);
  int64_t RefusedFor(int64_t most_added) const;
  Result<Done> Try(int64_t budget, std::optional<int64_t> enough);
  void Add(const Runs& runs);

  BestProblem* const problem_;
  const BestOptions options_;
  RunSimulator simulator_;
  int64_t first_peak_ = 0;
  std::vector<PricedRuns> plans_;
  std::vector<Refusal> refusals_;
};

}  // namespace ckplan
