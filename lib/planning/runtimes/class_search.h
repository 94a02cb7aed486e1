// Finds the best plan of a class within a budget.
//
// A class has units, and each unit has options: a block of a model that is checkpointed or not, for
// example. A plan of the class chooses one option per unit. The plans are simulated
// (lib/problem/schedule/simulate.h), and the best one has the least overhead among those within the
// budget, and of equal ones the lowest peak. If none fits in the budget, the best one comes closest
// to it, in steps of a hundredth of the budget.
//
// If all choices can be simulated within kClassSearchSteps, the search finds the best: it tries
// choices by overhead, which is the sum of the units' overheads, until one fits. If the options are
// all that the runtime has, the answer is exact. Otherwise, it takes each unit's options that save
// the most memory for their time and applies them to one unit after another, cheapest first, and
// the first units of the graph first, because what they keep stays longest. It then improves the
// best of these choices by changing the options of one or two units at a time. This is a heuristic.
//
// Cost: up to kClassSearchSteps simulated steps, and twice as many for large classes.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/units.h"
#include "lib/problem/graph/joint_graph.h"
#include "lib/problem/schedule/step_table.h"

namespace ckplan {

// Measures the memory of a joint graph's plan when its backward pass begins.
class LiveBytes {
 public:
  explicit LiveBytes(const JointGraph& graph);  // Keeps a reference to the graph.

  // Memory before the first run of an operation with the phase `backward`; zero if there is none.
  // The runs must be a plan of the graph.
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
  // The graph of the runs.
  virtual const JointGraph& graph() const = 0;
  virtual size_t unit_count() const = 0;
  // Option 0 of every unit keeps everything.
  virtual int32_t OptionCount(size_t unit) const = 0;
  // Units of the same kind have equal options.
  virtual int32_t KindOf(size_t unit) const = 0;
  // True if the units' options are all that the runtime has, not only the best of them.
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

// The overhead of a choice must be the sum of its options' overheads.
ClassPlan FindClassPlan(const PlanClass& plans, Bytes budget, int64_t steps = kClassSearchSteps);

}  // namespace ckplan
