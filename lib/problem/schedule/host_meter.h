// The sink of a replay (replay.h) that measures the memory of the host: the copies of values that
// are there. A copy is in host memory from its `out` to the first run that reads what the value's
// last `in` loads, or to its `drop` if nothing loads it. Each `out` begins another copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

// A copy of a value in host memory, from the first step to the last, both inclusive.
struct HostCopy {
  TensorId value;
  Bytes bytes;
  int32_t first_step = 0;
  int32_t last_step = 0;

  bool operator==(const HostCopy&) const = default;
};

class HostMeter {
 public:
  // Keeps a reference to `table`, which has transfers.
  explicit HostMeter(const StepTable& table);

  void Allocate(int32_t /*buffer*/, int32_t /*value*/) {}
  void Make(int32_t value, int32_t buffer, int32_t last_read);
  void Work(int32_t kind);
  void Release(int32_t /*buffer*/, int32_t /*value*/) {}
  void EndStep(int32_t kind);

  // For after the last step, in the order of the `out` steps.
  const std::vector<HostCopy>& copies() const { return copies_; }
  Bytes peak() const;

 private:
  static constexpr int32_t kNone = -1;
  struct HostLoad {
    int32_t copy = 0;  // Index into copies_.
    bool is_read = false;
  };

  const StepTable& table_;
  int32_t step_ = 0;
  std::vector<HostCopy> copies_;
  std::vector<HostLoad> loads_;
  std::vector<int32_t> copy_of_;    // The newest copy of each value, or kNone.
  std::vector<int32_t> load_of_;    // The load that made the value's newest version, or kNone.
  std::vector<int32_t> last_load_;  // The last load of each copy so far, or kNone.
  // Values that the step has made so far.
  std::vector<int32_t> made_;
};

// Offsets of the copies in one slab of host memory, and its size.
struct HostArena {
  Bytes bytes;
  std::vector<Bytes> offsets;  // Parallel to the copies.
};
HostArena PlaceOnHost(const std::vector<HostCopy>& copies);

// Returns the largest sum of the bytes of copies that are there at one step.
Bytes HostPeakOf(const std::vector<HostCopy>& copies);

}  // namespace ckplan
