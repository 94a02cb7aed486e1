// The sink of a replay (replay.h) that measures the peak and the cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

class PeakMeter {
 public:
  explicit PeakMeter(const StepTable& table) : table_(table) {}  // Keeps a reference to `table`.

  void Allocate(int32_t /*buffer*/, int32_t value) { live_ += Of(table_.bytes, value); }
  void Make(int32_t /*value*/, int32_t /*buffer*/, int32_t /*last_read*/) {}
  void Work(int32_t kind) { Measure(kind, Bytes(0)); }
  void Release(int32_t /*buffer*/, int32_t value) { live_ -= Of(table_.bytes, value); }
  void EndStep(int32_t /*kind*/) { ++step_; }

  Bytes peak() const { return peak_; }
  size_t peak_step() const { return peak_step_; }  // The first step that needs the peak.
  Cost cost() const { return cost_; }

 protected:
  template <typename T>
  static T Of(const std::vector<T>& list, int32_t i) {
    return list[static_cast<size_t>(i)];
  }

  // Accounts for a step that also needs `gradients`, which the replay does not track.
  void Measure(int32_t kind, Bytes gradients) {
    cost_ += Of(table_.cost, kind);
    const Bytes needed = live_ + gradients + Of(table_.workspace, kind);
    if (step_ > 0 && needed <= peak_) return;
    peak_ = needed;
    peak_step_ = step_;
  }
  Bytes live() const { return live_; }

 private:
  const StepTable& table_;
  Bytes live_;
  Bytes peak_;
  Cost cost_;
  size_t peak_step_ = 0;
  size_t step_ = 0;
};

}  // namespace ckplan
