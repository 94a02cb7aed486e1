// The solver that feng-acg and feng-linear share. For a division tree and a max term C, it finds
// the least kept memory such that every segment holds at most C, and the best C for Eq. 1 of Feng &
// Huang.
//
// least(S) of a close set S, kept inside it (Algorithm 5):
//   0                                           if all of S fits C: S stays one segment
//   sum of least(branch)                        branched
//   all inner vertices + sum of least(member)   non-branched
//   shortest path in the accessibility graph    splittable: its edges are runs of children that
//                                               fit C together, or one child that is divided
//
// Cost. O(size of the tree) for each C that is tried.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/planning/algorithms/feng/accessibility_graph.h"
#include "lib/planning/algorithms/feng/division_tree.h"
#include "lib/planning/algorithms/feng/two_terminal.h"
#include "lib/planning/plan/solver.h"

namespace ckplan {

class CloseSetSolver : public PreparedSolver {
 public:
  // Finds the best C. `class_name` says for the guarantee among which divisions the result is
  // optimal.
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
    bool is_sequence = true;        // Only the root is divided, no other close set.
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
  // The results of the last ComputeMinKept, for each close set: the memory kept inside it, and, if
  // it is splittable, the checkpoints on its path.
  std::vector<Bytes> min_kept_;
  std::vector<std::vector<int32_t>> stops_;
  BestMaxTerm best_;
};

}  // namespace ckplan
