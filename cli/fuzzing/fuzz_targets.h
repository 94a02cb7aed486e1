// Fuzz targets: functions that are given arbitrary bytes, and must come back whatever these are.
//
//   bytes ── target ──▶ returns: the input was refused, or what was made of it has been checked
//
// A fault is a report of a sanitizer, a CKPLAN_CHECK that does not hold, an exception, a hang, or
// more memory than scripts/fuzz grants. The same functions are run in two ways: by clang's
// libFuzzer, which invents inputs (libfuzzer_main.cc, one program for each target), and by an
// ordinary test over the inputs in testdata/fuzz/NAME (seeds_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ckplan {

using FuzzInput = std::span<const uint8_t>;

void FuzzAlgorithms(FuzzInput input);   // Random graphs, planned by every algorithm.
void FuzzConfig(FuzzInput input);       // ckplan.toml
void FuzzConstraints(FuzzInput input);  // Files of patterns that plans obey.
void FuzzCosts(FuzzInput input);        // costs.json
void FuzzDecisions(FuzzInput input);    // decisions.json, judged for a graph.
void FuzzGraph(FuzzInput input);        // graph.json
void FuzzJointGraph(FuzzInput input);   // Joint graphs, planned by quick algorithms.
void FuzzJointPlan(FuzzInput input);    // plan.json, judged for a joint graph.
void FuzzModel(FuzzInput input);        // ONNX files: loading, lowering, planning, annotating.
void FuzzPatterns(FuzzInput input);     // Patterns against names.
void FuzzPlan(FuzzInput input);         // plan.json, judged for a graph.
void FuzzSettings(FuzzInput input);     // ckplan.toml, up to what a command would run with.
void FuzzSizes(FuzzInput input);        // Sizes, budgets and durations, and the flags of a request.
#ifdef CKPLAN_HAS_CPU
void FuzzKernels(FuzzInput input);  // Operators with any attributes and shapes on the CPU backend.
#endif

struct FuzzTarget {
  std::string_view name;  // Its inputs are in testdata/fuzz/NAME.
  void (*run)(FuzzInput input) = nullptr;
};

inline constexpr FuzzTarget kFuzzTargets[] = {
    {"algorithms", FuzzAlgorithms},
    {"config", FuzzConfig},
    {"constraints", FuzzConstraints},
    {"costs", FuzzCosts},
    {"decisions", FuzzDecisions},
    {"graph", FuzzGraph},
    {"joint_graph", FuzzJointGraph},
    {"joint_plan", FuzzJointPlan},
#ifdef CKPLAN_HAS_CPU
    {"kernels", FuzzKernels},
#endif
    {"model", FuzzModel},
    {"patterns", FuzzPatterns},
    {"plan", FuzzPlan},
    {"settings", FuzzSettings},
    {"sizes", FuzzSizes},
};

inline std::string_view TextOf(FuzzInput input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

}  // namespace ckplan
