// Optimal persistent schedules of a chain, recomputed as often as it pays.
//
//   Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova. "Optimal checkpointing for heterogeneous
//   chains: how to train deep neural networks with limited memory", 2019 (Inria RR-9302).
//
// Idea. Each run of a stage forward keeps nothing (F_none), its input (F_ck), or all that backward
// reads (F_all). In a range of stages, either the first one saves all, or its input is kept, the
// forward pass goes on to a later stage whose input is kept next, and the stages in between are
// recomputed before their backward. A dynamic program over (first stage, last stage, memory) finds
// the best of all such schedules (rotor.h).
//
// Guarantee  the least time of all persistent schedules of the chain, by the paper's memory model,
//            with sizes rounded up to slots; exact up to 500 bytes. A schedule is persistent if it
//            keeps every kept tensor until the backward of its stage.
// Knob       B, the paper's memory limit; without a budget the least B that has a schedule.
// Cost       O(500 n^3) time, O(500 n^2) memory for n <= 64 stages, for each B.
// Paper      stages, a, a-bar, delta, o_f and o_b as in rotor.h; `result.paper.peak_bytes` is the
//            peak by the paper's memory model, and the overhead is the time of all repeated forward
//            runs.
// Differs    - stages are blocks between splitting vertices, measured by the simulator; more than
//              64 of them are merged.
//            - the loss belongs to the last stage instead of a stage of its own.
//            - a run from s to k needs memory for the stages s to k - 1, where the paper requires
//              it for all stages up to t; here the others need it only when they run.
//            - results that no later step reads are not computed, so the real overhead may be below
//              the paper's; liveness frees inside a stage, so the real peak may be too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/planning/plan/solver.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/graph/vertex_graph.h"

namespace ckplan {

// A graph as the chain of stages that rotor.h decides on.
//
// The stages are the blocks between splitting vertices (lib/problem/graph/vertex_graph.h). The
// simulator measures their memory on a training step whose forward pass runs twice: in the first
// pass every stage keeps nothing, in the second one it saves all that backward reads.

// All figures are in bytes, or in slots of memory. Peaks do not count the stage's input, the result
// of the stage before.
struct Stage {
  int64_t time = 0;         // u_F: the time of one forward run.
  int64_t output = 0;       // a: the size of the tensors that the next stage reads.
  int64_t saved = 0;        // a-bar: memory that F_all leaves occupied, including the output.
  int64_t gradient = 0;     // delta: the output's gradient; 0 for the last stage, where the loss
                            // makes it.
  int64_t forward = 0;      // Peak of a run that keeps nothing, without the input.
  int64_t forward_all = 0;  // Peak of a run that saves all, without the input.
  int64_t backward = 0;  // Peak of the backward run without the input, including saved tensors and
                         // gradients.
};

// The most stages; neighbouring blocks are merged to stay within it.
inline constexpr int32_t kMaxChainStages = 64;

struct StageChain {
  std::vector<Stage> stages;  // In bytes.
  // The nodes of each stage in forward order; the lists together are a topological order.
  std::vector<std::vector<NodeId>> nodes;
  // Marks nodes that need no gradient and whose results later stages read, such as an attention
  // mask: they run once, and their results stay.
  IdVector<NodeId, bool> runs_once;
};

// O(nodes + edges).
StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices);

// The dynamic program over persistent schedules of a chain, for one amount of memory.
//
// C(s, t, m) is the least forward time to run stages s to t forward and backward with m slots of
// memory in addition to the input of s, given the gradient of t's output. The paper's recursion, in
// our words:
//
//   C(s, s, m) = u_s                                             F_all s, backward s
//   C(s, t, m) = min of
//     u_s + C(s+1, t, m - saved_s)                               F_all s, ..., backward s
//     u_s + ... + u_{k-1} + C(k, t, m - output_{k-1}) + C(s, k-1, m)   for s < k <= t
//                                                                F_ck s, F_none to k - 1, ...
//
// Each case requires that the stages it runs fit in m. The time of backward runs is the same in
// all.
//
// Cost: O(n^3 m) time, O(n^2 m) memory for n stages.

// A run of a stage, forward or backward.
struct StageRun {
  size_t stage = 0;
  bool is_backward = false;
};

// MinMemory returns the least memory in which the stages have a persistent schedule;
// MemoryToSaveAll returns the memory that F_all of every stage needs. Both are in the unit of the
// stages.
int64_t MinMemory(std::span<const Stage> stages);
int64_t MemoryToSaveAll(std::span<const Stage> stages);

class PersistentProgram {
 public:
  // `stages` is measured in slots; there must be at least one stage.
  PersistentProgram(std::vector<Stage> stages, int64_t slots);

  bool is_feasible() const { return time() < kInfinite; }
  // Returns the time of all forward runs, including each stage's first run.
  int64_t time() const { return At(0, count_ - 1, slots_); }
  // Returns the runs of an optimal schedule, in order. Among several it prefers F_all, then the
  // earliest k.
  std::vector<StageRun> Runs() const;
  // Returns the memory that this schedule needs by the same rules, for the same stages in another
  // unit.
  int64_t PeakOf(std::span<const Stage> stages) const;

 private:
  static constexpr int64_t kInfinite = int64_t{1} << 60;
  static constexpr size_t kSaveAll = 0;

  size_t Row(size_t s, size_t t) const {
    return (s * count_ + t) * static_cast<size_t>(slots_ + 1);
  }
  int64_t At(size_t s, size_t t, int64_t slots) const {
    return cost_[Row(s, t) + static_cast<size_t>(slots)];
  }
  int64_t TimeBetween(size_t begin, size_t end) const {
    return time_before_[end] - time_before_[begin];
  }
  void Fill(size_t s, size_t t);
  void Offer(size_t s, size_t t, size_t k, int64_t need, int64_t enough);
  // Returns the first choice of the optimum: kSaveAll, or the k up to which it runs forward.
  size_t ChoiceAt(size_t s, size_t t, int64_t slots) const;
  void AddRuns(size_t s, size_t t, int64_t slots, std::vector<StageRun>* runs) const;
  int64_t PeakOf(std::span<const Stage> stages, size_t s, size_t t, int64_t slots) const;

  const std::vector<Stage> stages_;
  const size_t count_;
  const int64_t slots_;
  std::vector<int64_t> time_before_;
  std::vector<int64_t> cost_;
  std::vector<int64_t> enough_;  // [s * count_ + t]: the slots in which stages s to t all save all.
};

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
