// A user's own decisions about a graph, by the names of nodes and tensors. The algorithm `given`
// turns them into a plan. They take one of five forms:
//
//   kept            tensors that stay in memory; others are recomputed when backward needs them
//   checkpoints     ends of segments; a segment is recomputed when its backward begins
//   mirror_counts   how often each node may be rerun (Chen et al. 2016, Alg. 2)
//   lower_sets      L_1 < L_2 < ... (Kusumoto et al. 2019), each complete or as its increment
//   order           every step of the training step
//
// lib/planning/algorithms/given/given.h defines the plan for each form.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/problem/schedule/schedule.h"

namespace ckplan {

// A node or tensor by name or, if the name is empty, by its number in the graph file.
struct NameOrId {
  std::string name;
  int64_t id = -1;

  bool operator==(const NameOrId&) const = default;
};

struct DecidedStep {
  StepKind kind = StepKind::kLoss;
  NameOrId what;  // The node, or for frees the tensor; not used for the loss.

  bool operator==(const DecidedStep&) const = default;
};

struct Decisions {
  enum class Form { kKept, kCheckpoints, kMirrorCounts, kLowerSets, kOrder };
  Form form = Form::kKept;
  // Only the members of `form` are used.
  std::vector<std::vector<NameOrId>> sets;  // One list; for kLowerSets, one for each set.
  std::vector<std::pair<NameOrId, int64_t>> mirror_counts;
  std::vector<DecidedStep> order;

  // True if the decisions say when to free tensors.
  bool has_frees() const {
    for (const DecidedStep& step : order) {
      if (Step{step.kind}.is_free()) return true;
    }
    return false;
  }
  bool operator==(const Decisions&) const = default;
};

}  // namespace ckplan
