// Limits a search by a stop request and by a number of elementary steps. Steps, unlike seconds, are
// the same on every machine, and so is a refusal.
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>

#include "lib/base/result.h"

namespace ckplan {

struct DpLimits {
  std::stop_token stop;
  int64_t max_transitions = 0;  // State transitions tried; 0 means no limit.
  int threads = 0;              // 0 means the number of processor cores, up to four.
};

// Counts work against the limits of a call. Several threads may count at once.
class WorkMeter {
 public:
  // Keeps a reference to `limits`. The refusal reports `lower_sets` as the number of sets.
  WorkMeter(int32_t lower_sets, const DpLimits& limits)
      : lower_sets_(lower_sets), limits_(limits) {}

  void Add(int64_t transitions) { transitions_.fetch_add(transitions, std::memory_order_relaxed); }

  int64_t transitions() const { return transitions_.load(std::memory_order_relaxed); }

  // kTimeout: stopped. kUnsupported: more transitions than allowed.
  Result<Done> Check() const;
  bool is_over() const;

 private:
  bool has_done_too_much() const {
    return limits_.max_transitions > 0 && transitions() > limits_.max_transitions;
  }

  const int32_t lower_sets_;
  const DpLimits& limits_;
  std::atomic<int64_t> transitions_ = 0;
};

}  // namespace ckplan
