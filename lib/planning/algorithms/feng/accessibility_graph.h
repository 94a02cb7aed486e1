// Feng & Huang's two tools for "kept tensors plus the largest segment" (Eq. 1).
//
// The accessibility graph. Positions 0 .. k along a sequence of k items; between two items lies a
// vertex that may be a checkpoint. An edge leads from a to b if everything between them fits the
// max term C, or if they are one item apart and that item can be divided further. The shortest path
// from 0 to k picks the checkpoints of least memory:
//
//   items        3     2     4     1         C = 6: 0 ──▶ 2 ──▶ 4, checkpoint p2, kept 1
//   positions 0 ─── 1 ─── 2 ─── 3 ─── 4      (3 + 1 + 2 <= 6, 4 + 1 + 1 <= 6)
//   vertices       p1:1  p2:1  p3:1
//
// The search over C. Let f(C) be the least kept memory with segments of at most C. It never grows
// with C. If the solution at C has segments of at most B < C, it is a solution for every term in
// [B, C], and these can be skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <stop_token>
#include <utility>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

struct ChainItems {
  std::vector<Bytes> memory;    // The l of each item: the memory of a segment that
                                // consists of it alone.
  std::vector<Bytes> vertices;  // The memory of the vertex after each item but the last.
  // The least memory kept inside an item if it is divided.
  std::vector<std::optional<Bytes>> divided;
};

struct AccessiblePath {
  Bytes kept;                  // Memory of the checkpoints, and kept inside divided items.
  std::vector<int32_t> stops;  // Positions in (0, k) that are checkpoints, ascending.
};

// Finds a shortest path. Returns nothing if some item neither fits `max_term` nor can be divided.
// Among equally short paths it prefers the one whose last stops come first. O(k).
std::optional<AccessiblePath> ShortestAccessiblePath(const ChainItems& items, Bytes max_term);

// A solution for one max term.
struct MaxTermFigures {
  Bytes kept;
  Bytes largest;  // The largest segment; it does not exceed the given max term.
  Bytes objective() const { return kept + largest; }
};

struct BestMaxTerm {
  Bytes max_term;         // The largest segment of the best solution.
  bool is_proven = true;  // False: a stop came before all terms were tried or skipped.
};

// Finds the max term in [min_term, max_term] that minimises kept + largest. `evaluate(C)` solves
// for C.
//
// The search halves the range, the most promising part first. Between two solved terms lo < hi,
// every solution costs more than f(hi) + lo; if that is no gain, or f(lo) = f(hi), the whole gap is
// skipped.
template <typename Evaluate>
BestMaxTerm FindBestMaxTerm(Bytes min_term, Bytes max_term, std::stop_token stop,
                            Evaluate evaluate);

template <typename Evaluate>
BestMaxTerm FindBestMaxTerm(Bytes min_term, Bytes max_term, std::stop_token stop,
                            Evaluate evaluate) {
  struct Gap {
    Bytes low, high;  // Both are solved; `high` is the largest segment of its solution.
    Bytes kept_low, kept_high;
    // Every solution whose largest segment lies in between costs at least this.
    Bytes bound() const { return kept_high + low + Bytes(1); }
    bool operator<(const Gap& other) const {
      return std::pair(bound(), low) > std::pair(other.bound(), other.low);
    }
  };
  const MaxTermFigures at_max = evaluate(max_term);
  const MaxTermFigures at_min = evaluate(min_term);
  MaxTermFigures best = at_min.objective() <= at_max.objective() ? at_min : at_max;
  std::priority_queue<Gap> gaps;  // The smallest bound on top.
  gaps.push({min_term, at_max.largest, at_min.kept, at_max.kept});
  while (!gaps.empty() && gaps.top().bound() < best.objective()) {
    const Gap gap = gaps.top();
    gaps.pop();
    if (gap.low + Bytes(1) >= gap.high || gap.kept_low == gap.kept_high) continue;
    if (stop.stop_requested()) return {best.largest, false};
    const Bytes middle = gap.low + Bytes((gap.high - gap.low).count() / 2);
    const MaxTermFigures found = evaluate(middle);
    if (found.objective() < best.objective()) best = found;
    gaps.push({middle, gap.high, found.kept, gap.kept_high});
    gaps.push({gap.low, found.largest, gap.kept_low, found.kept});
  }
  return {best.largest, true};
}

}  // namespace ckplan
