// Finds consecutive operators of a program that can run as one.
//
//   BatchNormalization ─ y ─▶ Relu ─ r ─▶      r overwrites y, so one kernel reads x and writes r
//
// A fused run does its work when its last operator is due. Every buffer still begins and ends when
// the program says so, so everything that the operators read must still be in memory by then. A
// result isn't written if it isn't needed later: if another operator of the chain overwrites it, or
// if it is released before the next operator outside the chain runs.
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
  std::vector<ChainedOp> ops;   // Without prepared operators.
  // The calls of these actions without the unused buffers: results that aren't needed later, inputs
  // that the chain computes, and workspaces.
  std::vector<Call> calls;
};

// Returns how many of the operators, counted from the first, can run as one:
// Backend::FusibleLength.
using FusibleLength = std::function<size_t(std::span<const ChainedOp>)>;

// Returns disjoint fusions in the order of their actions.
std::vector<Fusion> FindFusions(const Program& program, const StepGraph& step,
                                const FusibleLength& fusible);

// A program's fusions on a backend, ready to run.
class FusedProgram {
 public:
  FusedProgram() = default;  // No fusions.
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
  const std::vector<Group>& groups() const { return groups_; }

 private:
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_action_;  // Empty without fusions; -1 for actions outside fusions.
};

}  // namespace ckplan
