// Feng & Huang's two tools for "kept tensors plus the largest segment" (Eq. 1).
//
// The accessibility graph. Positions 0 .. k along a sequence of k items; between two items lies a
// vertex that may be a checkpoint. An edge leads from a to b if everything between them fits the
// max term C, or if they are one item apart and that item can be divided further. The shortest path
// from 0 to k gives the smallest checkpoints:
//
//   items        3     2     4     1         C = 6: 0 ──▶ 2 ──▶ 4, checkpoint p2, kept 1
//   positions 0 ─── 1 ─── 2 ─── 3 ─── 4      (3 + 1 + 2 <= 6, 4 + 1 + 1 <= 6)
//   vertices       p1:1  p2:1  p3:1
//
// The search over C. Let f(C) be the least kept memory for segments of at most C. It never grows
// with C. If the solution at C has segments of at most B < C, it also solves every term in [B, C],
// which the search can skip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/units.h"
#include "lib/planning/algorithms/feng/division_tree.h"
#include "lib/planning/algorithms/feng/two_terminal.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

struct ChainItems {
  std::vector<Bytes> memory;    // The l of each item: the memory of a segment that
                                // consists of it alone.
  std::vector<Bytes> vertices;  // The memory of the vertex after each item but the last.
  // The least memory kept inside an item if it is divided.
  std::vector<std::optional<Bytes>> divided;
};

struct AccessiblePath {
  Bytes kept;                  // Memory of checkpoints, and kept inside divided items.
  std::vector<int32_t> stops;  // Positions in (0, k) that are checkpoints, ascending.
};

// Finds a shortest path. Returns nothing if an item neither fits `max_term` nor can be divided.
// Prefers the path whose last stops come first. O(k).
std::optional<AccessiblePath> ShortestAccessiblePath(const ChainItems& items, Bytes max_term);

// A solution for one max term.
struct MaxTermFigures {
  Bytes kept;
  Bytes largest;  // The largest segment; it does not exceed the given max term.
  Bytes objective() const { return kept + largest; }
};

struct BestMaxTerm {
  Bytes max_term;         // The largest segment of the best solution.
  bool is_proven = true;  // False after a stop with some terms untried.
};

// Finds the max term in [min_term, max_term] that minimises kept + largest. `evaluate(C)` solves
// for C.
//
// The search bisects the range, the most promising part first. Between two solved terms lo < hi,
// every solution costs more than f(hi) + lo. If that is no gain, or if f(lo) = f(hi), it skips the
// whole gap.
template <typename Evaluate>
BestMaxTerm FindBestMaxTerm(Bytes min_term, Bytes max_term, std::stop_token stop,
                            Evaluate evaluate);

template <typename Evaluate>
BestMaxTerm FindBestMaxTerm(Bytes min_term, Bytes max_term, std::stop_token stop,
                            Evaluate evaluate) {
  struct Gap {
    Bytes low, high;  // Both are solved; `high` is the largest segment of its solution.
    Bytes kept_low, kept_high;
    // Every solution whose largest segment lies strictly in between costs at least this.
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

// The solver shared by feng-acg and feng-linear. For a division tree and a max term C, it finds the
// least kept memory such that every segment holds at most C, and then the best C for Eq. 1 of Feng
// & Huang.
//
// least(S) of a close set S, kept inside it (Algorithm 5):
//   0                                           if all of S fits C: S stays one segment
//   sum of least(branch)                        branched
//   all inner vertices + sum of least(member)   non-branched
//   shortest path in the accessibility graph    splittable: its edges are runs of children that
//                                               fit C together, or one child that is divided
//
// Cost. O(size of the tree) per value of C tried.
class CloseSetSolver : public PreparedSolver {
 public:
  // Finds the best C. `class_name` names the divisions among which the result is optimal, for the
  // guarantee.
  CloseSetSolver(const Problem& problem, TwoTerminalGraph graph, DivisionTree tree,
                 std::string class_name, const SolveLimits& limits);

  Knob knob() const override;
  Result<SolveOutcome> Solve(int64_t setting, const SolveLimits& limits) override;

 private:
  // The children [first, last) of a close set, with the vertices between them.
  struct Segment {
    int32_t close_set = 0;
    size_t first = 0;
    size_t last = 0;
  };
  // A division with segments of at most C.
  struct Division {
    MaxTermFigures figures;         // Without the source and the target.
    std::vector<VertexId> kept;     // Without the source and the target, in no particular order.
    std::vector<Segment> segments;  // Empty if the whole graph is one segment.
    bool is_sequence = true;        // Only the root is divided.
  };

  void ComputeMinKept(Bytes max_term);
  AccessiblePath PathThrough(const CloseSet& set, Bytes max_term) const;
  Division Divide(Bytes max_term);
  void CutIntoRuns(int32_t index, Bytes max_term, Division& division,
                   std::vector<int32_t>& open) const;
  void AddSegment(Segment segment, Division& division) const;
  std::vector<VertexId> VerticesOf(const Segment& segment) const;
  LowerSetSequence SequenceOf(const Division& division) const;
  KeptSet KeptSetOf(const Division& division) const;
  Cost OverheadOf(const Division& division) const;
  IdVector<VertexId, int32_t> SegmentsOf(const Division& division) const;
  bool NeedsSegmentsAtOnce(NodeId node, const IdVector<VertexId, int32_t>& segment_of) const;
  std::string AssumptionNote(const Division& division) const;
  const CloseSet& close_set(int32_t index) const {
    return tree_.close_sets[static_cast<size_t>(index)];
  }

  const Problem& problem_;
  const TwoTerminalGraph graph_;
  const DivisionTree tree_;
  const std::string class_name_;
  IdVector<NodeId, VertexId> vertex_of_;
  // Set by ComputeMinKept for each close set: the memory kept inside it and, if it is splittable,
  // the checkpoints on its path.
  std::vector<Bytes> min_kept_;
  std::vector<std::vector<int32_t>> stops_;
  BestMaxTerm best_;
};

// Kept tensors plus the largest segment, for graphs of any shape.
//
//   Feng, Huang. "Cutting Down Training Memory by Re-forwarding", 2018, section 4, Algorithms 2-6
//   (the ACG solver; Algorithms 2-5 of the 2019 version).
//
// Idea. A segment may be any part of the graph with one source and one target (a close set), not
// only a stretch of the chain: one branch of a block, or a stretch of a branch. The division tree
// contains all of them (division_tree.h). For a max term C, a close set is divided only if it
// doesn't fit C, because dividing keeps vertices inside it. The best division over all C is the
// answer.
//
// Guarantee  optimal for Eq. 1 among divisions into close sets; by Eq. 1 never worse than
//            feng-linear. Segments with several sources or targets can do better
//            (docs/algorithms.md).
// Needs      any DAG. Several sources or targets are joined (two_terminal.h).
// Knob       C, the bytes that a segment may hold; without a budget the C that is best for Eq. 1.
// Cost       the division tree once, then O(tree) for each C that is tried.
// Paper      s_ij -> CloseSet, l(v) -> memory of a vertex, max term m -> max_term.
// Differs    terms are searched, not listed, as in feng-linear. A run of children of a splittable
//            close set may mix edges and close sets, as long as all fit C. Source and target are
//            left out of the objective, as in the authors' program. Assumption 2 (section 4.1 of
//            the 2019 version) says that the backward of an operation with several inputs does not
//            need their values: that of Add and Concat does not, that of Mul does. It is not
//            required here. If a division violates it, several segments are recomputed at once, the
//            simulated peak includes that, and the guarantee names the operation. The paper's
//            workaround, "to store all the input tensors of this multi-input operation", is outside
//            its objective and its algorithms; users can choose it by `given`.
Result<std::unique_ptr<PreparedSolver>> PrepareFengAcg(const Problem& problem,
                                                       const SolveLimits& limits);

// Kept tensors plus the largest segment, along the chain.
//
//   Feng, Huang. "Cutting Down Training Memory by Re-forwarding", 2018, section 3, Algorithm 1
//   (the LCG solver).
//
// Idea. Keep a set V_R of vertices of the chain, and recompute the segment between two of them
// before its backward: memory is l(V_R) plus the largest segment (Eq. 1). With the second term
// bounded by C, the best V_R is a shortest path in the accessibility graph. So find one path per
// max term C, and take the best.
//
// Guarantee  optimal for Eq. 1 among subsets of the chain's splitting vertices. Eq. 1 is not the
//            peak: it ignores gradients and tensors that are freed early.
// Needs      any DAG; the nodes between two splitting vertices are one block whose inner tensors
//            are segment memory. Without inner splitting vertices it keeps everything.
// Knob       C, the bytes that a segment may hold; without a budget the C that is best for Eq. 1.
// Cost       O(n) for each C that is tried, n splitting vertices; at most the O(n^2) terms of the
//            paper's list, in practice tens to hundreds.
// Paper      V_R -> kept, l(v) -> memory of a TwoTerminalGraph's vertex, C -> max_term.
// Differs    the terms are not listed: a search over C skips terms that cannot be better, which is
//            the paper's "skip B <= l < C" and a bound (feng.h). Zero is a term like
//            any other. Source and target are left out of the objective, as in the authors' ACG
//            program; the vertices between them count in the same way in both.
Result<std::unique_ptr<PreparedSolver>> PrepareFengLinear(const Problem& problem,
                                                          const SolveLimits& limits);

}  // namespace ckplan
