// The summary of a difference between two plans: a verdict, the checkpoints of either side, and the
// changes of the nodes added up by modules, or else by segments (diff_groups.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/planning/plan/diff.h"

namespace ckplan {

// The larger of the two sizes.
Bytes WorthOf(Bytes held, Bytes at_peak);

enum class GroupKind { kModule, kSegment, kRun };
std::string_view NameOf(GroupKind kind);  // "module", "segment", "run"

// All nodes of a module or segment together, those that are treated as before included.
struct GroupChange {
  std::string name;
  int64_t changed = 0;     // Nodes that are treated differently.
  int64_t old_reruns = 0;  // Forward runs beyond the first.
  int64_t new_reruns = 0;
  Bytes held;
  Bytes at_peak;
};

// Nodes whose results wait in memory for the backward pass.
struct ComparedCheckpoints {
  std::vector<std::string> names;  // The largest first, then in the order of the plan.
  Bytes bytes;
};

// Which of two plans has less of something.
enum class Lesser { kNeither, kOlder, kNewer };
std::string_view NameOf(Lesser lesser);  // "neither", "old", "new"

// Which plan needs less memory at its peak, and whose step takes less time.
struct PlanVerdict {
  Lesser memory = Lesser::kNeither;
  std::optional<Lesser> time;  // Absent if the plans' costs cannot be compared.
  Bytes peak;                  // New minus old.
  // How much longer the newer step takes: 0.05 for 5 % of a step without recomputation or, for
  // plans of different models, of the older step.
  double longer = 0;
};

struct DiffSummary {
  PlanVerdict verdict;
  ComparedCheckpoints old_only;
  ComparedCheckpoints new_only;
  ComparedCheckpoints both;  // With the bytes of the new plan.
  GroupKind grouped_by = GroupKind::kRun;
  std::vector<GroupChange> groups;  // The groups with a change in them, sorted as changes are.
  std::vector<size_t> group_of;     // The group of each of PlanDiff::changes.
};

// The modules of each row of a plan, the outermost first, for rows whose modules are not known by
// their names. Empty if there are no such rows.
using ModulesOfRows = std::vector<std::vector<std::string>>;

// Like DiffPlans in diff.h; `summary` receives the verdict, the checkpoints and the groups.
PlanDiff DiffPlans(const PlanDigest& older, const PlanDigest& newer,
                   const ModulesOfRows& older_modules, const ModulesOfRows& newer_modules,
                   DiffSummary* summary);

}  // namespace ckplan
