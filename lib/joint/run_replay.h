// What a sequence of runs of a joint graph's operations does to memory, step by step: the one place
// that knows it. The simulator and the timeline are sinks of it, so they cannot disagree.
//
//   - A run makes new versions of all that its operation writes. A version dies after its last read
//     before the next run of the same operation; what nobody reads dies with its run; the last
//     version of a result lives to the end.
//   - A value that is an alias shares the memory of its base's version, which is released when all
//     versions in it have died.
//   - A write takes over the memory of a read that dies at this very run, if the operation allows
//     it, both are equally large and counted alike, and no other version is in that memory.
//   - While an operation runs, memory holds what was live before, what it writes, and its
//   workspace.
// Only values that an operation makes, of a kind that IsCountedInPeak, occupy memory here; the
// others are counted with the constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/joint/joint_graph.h"

namespace ckplan {

// What a replay tells. All members are called in the order of the steps; within a step, Make,
// Workspace, then Release.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // A new buffer; they are numbered from 0 in the order of allocation.
  virtual void Allocate(int32_t buffer, ValueId first_value) = 0;
  // The run makes a version of the value in this buffer, new or not; -1 if it occupies none.
  virtual void Make(ValueId value, int32_t buffer) = 0;
  virtual void Workspace(OpId op) = 0;
  virtual void Release(int32_t buffer) = 0;
  virtual void EndStep(OpId op) = 0;
};

// Working memory is kept between runs, so that replaying many sequences allocates nothing.
class RunReplay {
 public:
  explicit RunReplay(const JointGraph& graph);  // Keeps a reference to `graph`.

  // kInvalidInput if the sequence is no plan of the graph: a read of a value that is not there, a
  // second run of an operation that may not repeat, a result or a parameter gradient that is never
  // made. Names the step and the value. O(reads and writes of all steps).
  Result<Done> Run(std::span<const OpId> runs, RunSink* sink);

 private:
  struct Version {
    ValueId value;
    int32_t dies_at = 0;  // Step; the number of steps for what lives to the end.
    int32_t buffer = -1;
  };

  Result<Done> FindVersions(std::span<const OpId> runs);
  void SortByDeath(size_t step_count);
  int32_t BufferFor(ValueId write, size_t step, RunSink* sink);
  int32_t TakenOver(ValueId write, size_t step) const;
  int32_t NewBuffer(ValueId first_value, RunSink* sink);
  Error StepError(size_t step, OpId op, const std::string& fault) const;

  const JointGraph& graph_;
  IdVector<ValueId, std::vector<ValueId>> in_place_of_;  // Reads whose memory it may take over.
  std::vector<Version> versions_;                        // In the order of making.
  std::vector<int32_t> dying_;                           // Versions, by the step at which they die.
  std::vector<int32_t> dying_starts_;   // Those of step k stand in [starts[k], starts[k + 1]).
  IdVector<ValueId, int32_t> current_;  // The newest version of each value, or -1.
  IdVector<OpId, int32_t> run_count_;
  std::vector<int32_t> living_in_;  // How many live versions are in each buffer.
};

}  // namespace ckplan
