// Pairs the nodes of two plans whose models name them differently, as two exporters do.
//
// Idea. Both plans list their nodes in the order in which they run, so two exports of one network
// are nearly the same sequence of operators and sizes. Between nodes that are paired by name,
// the longest common subsequence (Myers, 1986) pairs the others: first those with equal
// operators and sizes, then those with equal operators; by operators alone if that pairs clearly
// more, as for another batch. Branches that one exporter writes in another
// order are paired where operator and size occur once in each plan, and then by their neighbours.
//
// A pair is kept only if its nodes stand at the same place: the nearest paired node before them, or
// after them, is the same in both plans. Unless half of the smaller plan is paired in the end, the
// networks are different ones, and nothing is paired by structure.
//
// O(n log n + n d) for n nodes and d nodes that only one plan has; d counts up to 500 at a time.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "lib/planning/plan/diff.h"

namespace ckplan {

// The partner in the newer plan of each row of the older one.
inline constexpr size_t kNoPartner = std::numeric_limits<size_t>::max();
using RowPartners = std::vector<size_t>;

// Removes pairs by name that cannot be right: those of different operators, and all of them if more
// than a third are such pairs. Exporters that number their tensors give one number to different
// nodes.
void DropFalseNames(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners);

// Finds partners for rows that have none. Returns how many it found.
size_t PairByStructure(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners);

}  // namespace ckplan
