// Finds operators of a program that run one after the other and can be run as one.
//
//   BatchNormalization ─ y ─▶ Relu ─ r ─▶      y is overwritten by r: one kernel reads x and writes
//   r
//
// A fused run does its work when it is the last operator's turn, and changes nothing else: every
// buffer begins and ends when the program says so. So all that the operators read must still be in
// memory then, and a result that is not needed later need not be written: one that another operator
// of the chain overwrites, or that is released before the next operator outside the chain runs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/program.h"
#include "lib/executor/core/step_operators.h"
#include "lib/files/model/step_graph.h"

namespace ckplan {

struct Fusion {
  std::vector<size_t> actions;  // Indices of the forward actions, ascending.
  std::vector<ChainedOp> ops;   // Without the prepared operators.
  // The calls of these actions without the buffers that are neither read nor written: results that
  // are not needed later, inputs that the chain makes, and workspaces.
  std::vector<Call> calls;
};

// Returns how many of the operators, from the first on, can be run as one: Backend::FusibleLength.
using FusibleLength = std::function<size_t(std::span<const ChainedOp>)>;

// The fusions in the order of their actions. No action is in two of them.
std::vector<Fusion> FindFusions(const Program& program, const StepGraph& step,
                                const FusibleLength& fusible);

// The fusions of a program on a backend, ready to be run.
class FusedProgram {
 public:
  FusedProgram() = default;  // Without fusions.
  FusedProgram(const Program& program, const StepGraph& step, const StepOperators& operators,
               Backend& backend);

  struct Group {
    Fusion fusion;
    std::unique_ptr<FusedForward> run;
    bool IsFirst(size_t action) const { return fusion.actions.front() == action; }
    bool IsLast(size_t action) const { return fusion.actions.back() == action; }
  };
  // Returns the group that this action is in, or null.
  const Group* GroupOf(size_t action) const;

 private:
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_action_;  // Empty without fusions; -1 where there is none.
};

}  // namespace ckplan
