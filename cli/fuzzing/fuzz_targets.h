// Fuzz targets: functions that accept arbitrary bytes and must always return.
//
//   bytes ── target ──▶ returns: the input was rejected, or its result was checked
//
// A fault is a sanitizer report, a failed CKPLAN_CHECK, an exception, a hang, or more memory than
// scripts/fuzz grants. The same functions run in two ways: under clang's libFuzzer, which invents
// inputs (libfuzzer_main.cc, one program per target), and in an ordinary test with the inputs in
// testdata/fuzz/NAME.txt (seeds_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ckplan {

using FuzzInput = std::span<const uint8_t>;

void FuzzAlgorithms(FuzzInput input);   // Plans random graphs with every algorithm.
void FuzzConfig(FuzzInput input);       // Reads ckplan.toml.
void FuzzConstraints(FuzzInput input);  // Reads pattern files and plans with them.
void FuzzCosts(FuzzInput input);        // Reads costs.json.
void FuzzDecisions(FuzzInput input);    // Reads decisions.json and checks it for a graph.
void FuzzGraph(FuzzInput input);        // Reads graph.json.
void FuzzInference(FuzzInput input);    // Loads a node with any ONNX operator.
void FuzzJointGraph(FuzzInput input);   // Plans joint graphs with quick algorithms.
void FuzzJointPlan(FuzzInput input);    // Reads plan.json and checks it for a joint graph.
void FuzzModel(FuzzInput input);        // Loads, lowers, plans and annotates ONNX files.
void FuzzPatterns(FuzzInput input);     // Matches patterns against names.
void FuzzPlan(FuzzInput input);         // Reads plan.json and checks it for a graph.
void FuzzSettings(FuzzInput input);     // Reads ckplan.toml, up to a command's settings.
void FuzzSizes(FuzzInput input);        // Parses sizes, budgets, durations and request flags.
#ifdef CKPLAN_HAS_CPU
void FuzzKernels(
    FuzzInput input);  // Runs operators with any attributes and shapes on the CPU backend.
#endif

struct FuzzTarget {
  std::string_view name;  // Its inputs are in testdata/fuzz/NAME.txt.
  void (*run)(FuzzInput input) = nullptr;
};

inline constexpr FuzzTarget kFuzzTargets[] = {
    {"algorithms", FuzzAlgorithms},
    {"config", FuzzConfig},
    {"constraints", FuzzConstraints},
    {"costs", FuzzCosts},
    {"decisions", FuzzDecisions},
    {"graph", FuzzGraph},
    {"inference", FuzzInference},
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
