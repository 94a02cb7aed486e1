// Groups nodes to sum up their changes: at most ten groups, so that all can be shown.
//
//   modules    the deepest level with at most ten modules that contain a change
//   segments   for nodes without modules: the newer plan's, or else the older plan's; more than
//              ten are combined, as in "segments 4-7"
//   runs       of consecutive nodes, "conv1 ... relu9", if the plans have no segments
//
// O(n x depth of the modules).
#pragma once

#include <string>
#include <vector>

#include "lib/planning/plan/diff.h"
#include "lib/planning/plan/diff_summary.h"

namespace ckplan {

// A node of both plans. Null if a plan does not have it.
struct MatchedRows {
  const PlanDigest::Row* older = nullptr;
  const PlanDigest::Row* newer = nullptr;
  // The paths of its modules; if null or empty, taken from its name.
  const std::vector<std::string>* modules = nullptr;
};

struct RowGroups {
  GroupKind kind = GroupKind::kRun;
  std::vector<std::string> names;
  std::vector<size_t> group_of;  // Indexed by node.
};

RowGroups GroupRows(const std::vector<MatchedRows>& nodes);

}  // namespace ckplan
