// ckplan as a library: plans which activations a training step keeps, recomputes or moves to the
// host, so that the step fits in memory. The program `ckplan plan` is built on this header.
//
//   #include <ckplan.h>
//
//   using namespace ckplan;
//
//   Result<std::string> PlanWithin(const std::string& model, Bytes peak) {
//     PlanRequest request = RequestAsPyTorchRuns();     // the question: see PlanRequest
//     request.dims["N"] = 64;
//     request.budget = Budget::Of(peak);
//     CKPLAN_ASSIGN_OR_RETURN(const Source source, LoadSource(model, request));
//     CKPLAN_ASSIGN_OR_RETURN(const Plan plan, MakePlan(source, source.request, {}));
//     return WritePlanJson(plan, source.step());        // the plan file that ckplan reads
//   }
//
// examples/embed is a complete program. In CMake, use find_package(ckplan) and link
// ckplan::ckplan; other build systems can use pkg-config.
//
// How data flows, and where each type is defined:
//
//   a file ── LoadSource ──▶ Source ── MakePlan ──▶ Plan ── WritePlanJson ──▶ a plan file
//                              │                     │ ▲                         │
//                            step()   FindPlanFaults ──┘ └───── ReadPlanFile ◀─────┘
//
//   PlanRequest   the question: sizes, a budget, an algorithm        lib/planning/plan/request.h
//   Source        a training step, and facts about its file          lib/planning/planner/source.h
//   Plan          decisions, every step, the peak, the added time,   lib/planning/plan/plan.h
//                 bounds on both, and a place for each buffer
//
// Functions return a Result: a value, or an Error that says what is wrong, where, and what to do.
// No function throws. Values own their contents, except that a TrainingStep refers to its Source.
// Threads can call all functions at once as long as no thread changes a value that another one
// uses. The same request for the same file gives the same plan, byte for byte, on every machine.
#pragma once

#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/plan/accounting.h"
#include "lib/planning/plan/plan.h"
#include "lib/planning/plan/request.h"
#include "lib/planning/planner/planner.h"
