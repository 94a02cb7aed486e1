// Optimal persistent schedules of a chain, recomputed as often as it pays.
//
//   Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova. "Optimal checkpointing for heterogeneous
//   chains: how to train deep neural networks with limited memory", 2019 (Inria RR-9302).
//
// Idea. Each run of a stage forward keeps nothing (F_none), its input (F_ck), or all that backward
// reads (F_all). In a range of stages, either the first one saves all, or its input is kept, the
// forward pass goes on to a later stage whose input is kept next, and the stages in between are
// recomputed before their backward. A dynamic program over (first stage, last stage, memory) finds
// the best of all such schedules (persistent_program.h).
//
// Guarantee  the least time of all persistent schedules of the chain, by the paper's memory model,
//            with sizes rounded up to slots; exact up to 500 bytes. A schedule is persistent if it
//            keeps every kept tensor until the backward of its stage.
// Knob       B, the paper's memory limit; without a budget the least B that has a schedule.
// Cost       O(500 n^3) time, O(500 n^2) memory for n <= 64 stages, for each B.
// Paper      stages, a, a-bar, delta, o_f and o_b as in stages.h; `result.paper.peak_bytes` is the
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

#include <memory>

#include "lib/planning/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
