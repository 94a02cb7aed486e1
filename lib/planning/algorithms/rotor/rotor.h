// Optimal persistent schedules of a chain. Stages may be recomputed several times.
//
//   Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova. "Optimal checkpointing for heterogeneous
//   chains: how to train deep neural networks with limited memory", 2019 (Inria RR-9302).
//
// Idea. Each forward run of a stage keeps nothing (F_none), its input (F_ck), or all that backward
// reads (F_all). In a range of stages, either the first one saves everything, or its input is kept,
// the forward pass continues to a later stage whose input is kept next, and the stages in between
// are recomputed before their backward. A dynamic program over (first stage, last stage, memory)
// finds the best of all such schedules.
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

// A graph as the chain of stages that rotor plans.
//
// The stages are the blocks between splitting vertices (lib/problem/graph/vertex_graph.h). The
// simulator measures their memory on a training step that runs its forward pass twice: the first
// pass keeps nothing, and the second saves everything that backward reads.

// All figures are in bytes, or in slots of memory. Peaks don't include the stage's input, which is
// the previous stage's result.
struct Stage {
  int64_t time = 0;         // u_F: the time of one forward run.
  int64_t output = 0;       // a: the size of the tensors that the next stage reads.
  int64_t saved = 0;        // a-bar: memory in use after F_all, including the output.
  int64_t gradient = 0;     // delta: the output's gradient; 0 for the last stage, where the loss
                            // produces it.
  int64_t forward = 0;      // Peak of a run that keeps nothing, without the input.
  int64_t forward_all = 0;  // Peak of a run that saves all, without the input.
  int64_t backward = 0;  // Peak of the backward run without the input, including saved tensors and
                         // gradients.
};

// The maximum number of stages; longer chains get neighbouring blocks merged.
inline constexpr int32_t kMaxChainStages = 64;

struct StageChain {
  std::vector<Stage> stages;  // In bytes.
  // The nodes of each stage in forward order. Together, the lists are a topological order.
  std::vector<std::vector<NodeId>> nodes;
  // Nodes without a gradient whose results later stages read, such as an attention mask: they run
  // once, and their results are kept.
  IdVector<NodeId, bool> runs_once;
};

// O(nodes + edges).
StageChain FindStages(const TensorGraph& graph, const VertexGraph& vertices);

// The dynamic program over persistent schedules of a chain, for one amount of memory.
//
// C(s, t, m) is the least forward time to run stages s to t forward and backward with m slots of
// memory in addition to the input of s, given the gradient of t's output. The paper's recursion, in
// our notation:
//
//   C(s, s, m) = u_s                                             F_all s, backward s
//   C(s, t, m) = min of
//     u_s + C(s+1, t, m - saved_s)                               F_all s, ..., backward s
//     u_s + ... + u_{k-1} + C(k, t, m - output_{k-1}) + C(s, k-1, m)   for s < k <= t
//                                                                F_ck s, F_none to k - 1, ...
//
// Each case requires that its stages fit in m. Backward runs take the same time in all cases.
//
// Cost: O(n^3 m) time, O(n^2 m) memory for n stages.

// A run of a stage, forward or backward.
struct StageRun {
  size_t stage = 0;
  bool is_backward = false;
};

// MinMemory returns the least memory for a persistent schedule of the stages; MemoryToSaveAll, the
// memory for F_all of every stage. Both are in the unit of the stages.
int64_t MinMemory(std::span<const Stage> stages);
int64_t MemoryToSaveAll(std::span<const Stage> stages);

class PersistentProgram {
 public:
  // `stages` are measured in slots, and must not be empty.
  PersistentProgram(std::vector<Stage> stages, int64_t slots);

  bool is_feasible() const { return time() < kInfinite; }
  // Returns the total time of all forward runs, including each stage's first.
  int64_t time() const { return At(0, count_ - 1, slots_); }
  // Returns the runs of an optimal schedule, in order. Prefers F_all, then the earliest k.
  std::vector<StageRun> Runs() const;
  // Returns the memory of this schedule by the same rules, for the same stages in another unit.
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
  void TryChoice(size_t s, size_t t, size_t k, int64_t need, int64_t enough);
  // Returns the first choice of the optimum: kSaveAll, or the k that forward continues to.
  size_t ChoiceAt(size_t s, size_t t, int64_t slots) const;
  void AddRuns(size_t s, size_t t, int64_t slots, std::vector<StageRun>* runs) const;
  int64_t PeakOf(std::span<const Stage> stages, size_t s, size_t t, int64_t slots) const;

  const std::vector<Stage> stages_;
  const size_t count_;
  const int64_t slots_;
  std::vector<int64_t> time_before_;
  std::vector<int64_t> cost_;
  std::vector<int64_t> enough_;  // [s * count_ + t]: slots for F_all of all stages s to t.
};

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
