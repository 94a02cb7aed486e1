// The groups of nodes by which a difference is added up: at most ten, so that all of them can be
// shown.
//
//   modules    at the deepest level at which at most ten modules contain a change
//   segments   for nodes without modules: those of the newer plan, or else of the older one; more
//              than ten are combined, "segments 4-7"
//   runs       of consecutive nodes, "conv1 ... relu9", if there are no segments
//
// O(n x depth of the modules).
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"

namespace ckplan {

// A node of both plans; null for a plan that does not have it.
struct MatchedRows {
  const PlanDigest::Row* older = nullptr;
  const PlanDigest::Row* newer = nullptr;
  // The paths of its modules; if null or empty, those in its name.
  const std::vector<std::string>* modules = nullptr;
};

struct RowGroups {
  GroupKind kind = GroupKind::kRun;
  std::vector<std::string> names;
  std::vector<size_t> group_of;  // Indexed by node.
};

RowGroups GroupRows(const std::vector<MatchedRows>& nodes);

}  // namespace ckplan
