// Finds the best plan of a class within a budget.
//
// A class has units, and each unit has options: a block of a model that is checkpointed or not, for
// example. A plan of the class is a choice of one option for each unit. The plans are simulated
// (lib/problem/schedule/simulate.h), and the best one has the least overhead of those within the
// budget; of equal ones, the least peak. If none is within the budget, the best one comes nearest
// to it, in steps of a hundredth of the budget.
//
// If all choices can be simulated within kClassSearchSteps, the best of them is found: choices are
// tried by their overhead, which is the sum of those of the units, until one fits. If the options
// are all that the runtime has, the answer is exact. Otherwise the search
// takes, for each unit, the options that save most memory for their time, and gives them to one
// unit after another, the cheapest first, and the first units of the graph first, because what they
// keep is there the longest. From the best of these choices it goes on by changing the options of
// one unit or of two, as long as that is an improvement. This is a heuristic.
//
// Cost: as many simulated steps as kClassSearchSteps, and for large classes as many again.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

// Measures what a plan of a joint graph has in memory when its backward pass begins.
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

// About two seconds.
inline constexpr int64_t kClassSearchSteps = 20'000'000;

using Choice = std::vector<int32_t>;  // The option of each unit.

class PlanClass {
 public:
  virtual ~PlanClass() = default;
  // The graph that the runs are for.
  virtual const JointGraph& graph() const = 0;
  virtual size_t unit_count() const = 0;
  // Option 0 of every unit keeps everything.
  virtual int32_t OptionCount(size_t unit) const = 0;
  // Units of the same kind have equal options.
  virtual int32_t KindOf(size_t unit) const = 0;
  // Whether the options of the units are all that the runtime has, or only the best of them.
  virtual bool IsComplete() const = 0;
  virtual std::vector<OpId> RunsOf(const Choice& choice) const = 0;
};

struct ClassPlan {
  Choice choice;
  Bytes peak;
  Cost overhead;
  bool fits = false;
  bool is_exact = false;  // No plan of the class is better.
};

// The overhead of a choice must be the sum of the overheads of its options alone.
ClassPlan FindClassPlan(const PlanClass& plans, Bytes budget, int64_t steps = kClassSearchSteps);

}  // namespace ckplan
