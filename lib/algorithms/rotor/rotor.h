// Optimal persistent schedules of a chain, recomputed as often as it pays.
//
//   Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova. "Optimal checkpointing for heterogeneous
//   chains: how to train deep neural networks with limited memory", 2019 (Inria RR-9302).
//
// Idea. Each run of a stage forward keeps nothing (F_none), its input (F_ck), or all that backward
// reads (F_all). Of a range of stages, either the first one saves all, or its input is kept, the
// forward pass goes on to a later stage whose input is kept next, and the stages passed over are
// run again when their backward comes. A dynamic program over (first stage, last stage, memory)
// finds the best of all such schedules (persistent_program.h).
//
// Guarantee  the least time of all persistent schedules of the chain, under the paper's
//            count of memory, with sizes rounded up to slots; exact up to 500 bytes. A schedule is
//            persistent if what is kept stays until its backward.
// Knob       B, the paper's memory limit; the least that has a schedule without a budget.
// Cost       O(500 n^3) time, O(500 n^2) memory for n <= 64 stages, for each B.
// Paper      stages, a, a-bar, delta, o_f and o_b as in stages.h; `result.paper.peak_bytes` is what
//            the schedule needs by that count, the overhead is that of all runs forward but the
//            first ones.
// Differs    - stages are blocks between splitting vertices, measured by the simulator; more than
//              64 of them are merged.
//            - the loss belongs to the last stage, not to one of its own.
//            - a run from s to k needs room for the stages s to k - 1, where the paper asks for
//              room for all up to t; the rest is asked for when it runs.
//            - results that no later step reads are not computed, so the real overhead may be below
//              the paper's; liveness frees inside a stage, so the real peak may be too.
#pragma once

#include <memory>

#include "lib/plan/solver.h"

namespace ckplan {

Result<std::unique_ptr<PreparedSolver>> PrepareRotor(const Problem& problem,
                                                     const SolveLimits& limits);

}  // namespace ckplan
