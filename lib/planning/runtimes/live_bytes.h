// Measures what a plan of a joint graph has in memory when its backward pass begins.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

class LiveBytes {
 public:
  explicit LiveBytes(const JointGraph& graph);  // Keeps a reference to the graph.

  // Before the first run of an operation of the phase `backward`; zero if there is none. The runs
  // must be a plan of the graph.
  Bytes BeforeBackward(const std::vector<OpId>& runs) const;

 private:
  const JointGraph& graph_;
  const StepTable table_;
};

}  // namespace ckplan
