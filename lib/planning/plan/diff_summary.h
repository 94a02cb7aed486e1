// The summary of a difference between two plans: a verdict, each plan's checkpoints, and the nodes'
// changes summed up by module or else by segment (diff.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/plan/diff.h"

namespace ckplan {

// Returns the larger of the two sizes.
Bytes WorthOf(Bytes held, Bytes at_peak);

enum class GroupKind { kModule, kSegment, kRun };
std::string_view NameOf(GroupKind kind);  // "module", "segment", "run"

// All nodes of a module or segment, including those that are treated as before.
struct GroupChange {
  std::string name;
  int64_t changed = 0;     // Nodes treated differently.
  int64_t old_reruns = 0;  // Forward runs beyond the first.
  int64_t new_reruns = 0;
  Bytes held;
  Bytes at_peak;
};

// Nodes whose results stay in memory for the backward pass.
struct ComparedCheckpoints {
  std::vector<std::string> names;  // Largest first, then in the plan's order.
  Bytes bytes;
};

// Which of two plans has less of something.
enum class Lesser { kNeither, kOlder, kNewer };
std::string_view NameOf(Lesser lesser);  // "neither", "old", "new"

// Which plan has the lower peak, and which has the faster step.
struct PlanVerdict {
  Lesser memory = Lesser::kNeither;
  std::optional<Lesser> time;  // Absent if the plans' costs are not comparable.
  Bytes peak;                  // New minus old.
  // How much longer the newer step takes: 0.05 for 5 % of a step without recomputation. For plans
  // of different models, relative to the older step.
  double longer = 0;
};

struct DiffSummary {
  PlanVerdict verdict;
  ComparedCheckpoints old_only;
  ComparedCheckpoints new_only;
  ComparedCheckpoints both;  // With the bytes of the new plan.
  GroupKind grouped_by = GroupKind::kRun;
  std::vector<GroupChange> groups;  // Groups with a change, sorted like changes.
  std::vector<size_t> group_of;     // The group of each of PlanDiff::changes.
};

// The modules of each row of a plan, outermost first, for rows whose names don't contain them.
// Empty if there are none.
using ModulesOfRows = std::vector<std::vector<std::string>>;

// Like DiffPlans in diff.h. Also fills `summary`.
PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer,
                   const ModulesOfRows& older_modules, const ModulesOfRows& newer_modules,
                   DiffSummary* summary);

}  // namespace ckplan
