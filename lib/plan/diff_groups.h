// The parts of a model by which a difference is added up: at most ten, so that all of them can be
// shown.
//
//   modules    at the deepest level at which there are at most ten with a change in them
//   segments   where nodes are in no modules: those of the newer plan, or else of the older one;
//              more than ten are taken together, "segments 4-7"
//   runs       of nodes that follow one another, "conv1 ... relu9", where there are no segments
//
// O(n x depth of the modules).
#pragma once

#include <string>
#include <vector>

#include "lib/plan/diff.h"
#include "lib/plan/diff_summary.h"

namespace ckplan {

// A node of both plans; null where one of them does not have it.
struct MatchedRows {
  const PlanDigest::Row* older = nullptr;
  const PlanDigest::Row* newer = nullptr;
  const std::vector<std::string>* modules = nullptr;  // Null or empty: those in its name.
};

struct RowGroups {
  GroupKind kind = GroupKind::kRun;
  std::vector<std::string> names;
  std::vector<size_t> group_of;  // For each of the nodes.
};

RowGroups GroupRows(const std::vector<MatchedRows>& nodes);

}  // namespace ckplan
