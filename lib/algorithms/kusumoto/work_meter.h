// Bounds a search by a stop request and by a number of elementary steps. Steps, unlike seconds, are
// the same on every machine, and so is a refusal.
#pragma once

#include <cstdint>
#include <stop_token>

#include "lib/base/result.h"

namespace ckplan {

struct DpLimits {
  std::stop_token stop;
  int64_t max_transitions = 0;  // State transitions tried; 0 is no limit.
};

// Counts work against the limits of a call.
class WorkMeter {
 public:
  // Keeps a reference to `limits`. The refusal names the number of `lower_sets`.
  WorkMeter(int32_t lower_sets, const DpLimits& limits)
      : lower_sets_(lower_sets), limits_(limits) {}

  void Add(int64_t transitions) { transitions_ += transitions; }

  // kTimeout: stopped. kUnsupported: more transitions than allowed.
  Result<Done> Check() const;

 private:
  const int32_t lower_sets_;
  const DpLimits& limits_;
  int64_t transitions_ = 0;
};

}  // namespace ckplan
