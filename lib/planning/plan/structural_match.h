// Pairs the nodes of two plans whose models use different names, such as two exporters' models.
//
// Both plans list their nodes in the order in which they run, so two exports of one network are
// nearly the same sequence of operators and sizes. Between nodes that are paired by name, the
// longest common subsequence (Myers, 1986) pairs the others: first those with equal operators and
// sizes, then those with equal operators. Operators alone decide if they pair clearly more, as for
// a different batch size. Branches in a different order are paired where an operator and size occur
// once in each plan, and then by their neighbours.
//
// A pair is kept only if the nearest paired node before it, or after it, is the same in both plans.
// Unless half of the smaller plan is paired in the end, the networks are different and nothing is
// paired by structure.
//
// O(n log n + n d) for n nodes, d of which only one plan has; d is limited to 500 per alignment.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "lib/planning/plan/diff.h"

namespace ckplan {

// For each row of the older plan, its partner in the newer one.
inline constexpr size_t kNoPartner = std::numeric_limits<size_t>::max();
using RowPartners = std::vector<size_t>;

// Removes wrong pairs by name: those with different operators, and all pairs if more than a third
// are wrong. Exporters that number their tensors give the same number to different nodes.
void DropWrongNamePairs(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners);

// Pairs rows that have no partner. Returns the number of new pairs.
size_t PairByStructure(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners);

}  // namespace ckplan
