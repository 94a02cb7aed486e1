#include "lib/problem/runs/run_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

// a, b and c run forward, each reading the one before; B reads b and c, A reads a, b and the result
// of B.
RunRules ChainRules() {
  RunRules rules;
  rules.producers = {{}, {0}, {1}, {1, 2}, {0, 1, 3}};
  rules.is_backward = {false, false, false, true, true};
  rules.runs_once.resize(5);
  rules.is_recomputed.resize(5);
  return rules;
}

Runs LetterRuns(const std::string& letters) {
  Runs runs;
  for (const char letter : letters) {
    runs.emplace_back(static_cast<int32_t>(std::string("abcBA").find(letter)));
  }
  return runs;
}

std::string Letters(const Runs& runs) {
  std::string letters;
  for (const OpId op : runs) letters += "abcBA"[op.index()];
  return letters;
}

std::string Constrained(const RunRules& rules, const std::string& letters) {
  return Letters(ConstrainedTo(rules, LetterRuns(letters)));
}

TEST_CASE("run rules: a forbidden second run is left out, and the runs only for it") {
  RunRules rules = ChainRules();
  CHECK(Constrained(rules, "abcbBabA") == "abcbBabA");
  rules.runs_once[1] = true;
  CHECK(Satisfies(rules, LetterRuns("abcBA")));
  CHECK_FALSE(Satisfies(rules, LetterRuns("abcbBA")));
  CHECK(Constrained(rules, "abcbBA") == "abcBA");
  CHECK(Constrained(rules, "abcbBabA") == "abcBaA");
}

TEST_CASE("run rules: what is recomputed runs again before the backward pass reads it") {
  RunRules rules = ChainRules();
  rules.is_recomputed[1] = true;
  CHECK_FALSE(Satisfies(rules, LetterRuns("abcBA")));
  CHECK(Constrained(rules, "abcBA") == "abcbBA");
  CHECK(Constrained(rules, "abcbBA") == "abcbBA");
  rules.is_recomputed[0] = true;  // The second run of b is also in the backward pass.
  CHECK(Constrained(rules, "abcBA") == "abcabBA");
  // A second run in the forward pass does not count as recomputation for the backward pass.
  CHECK(Constrained(rules, "ababcBA") == "ababcabBA");
  CHECK(Constrained(rules, "abbcBA") == "abbcabBA");
}

TEST_CASE("run rules: the forward pass ends before the first run of the backward pass") {
  RunRules rules = ChainRules();
  CHECK(LastOfForwardPass(rules, LetterRuns("abacBA")) == OpId(2));
  CHECK(LastOfForwardPass(rules, LetterRuns("abcbBA")) == OpId(2));
  CHECK(LastOfForwardPass(rules, LetterRuns("")).is_none());
  // B reads nothing and runs first; second runs after it are in the backward pass.
  rules.producers[3] = {};
  rules.is_recomputed[1] = true;
  CHECK(LastOfForwardPass(rules, LetterRuns("BabcA")).is_none());
  CHECK(Constrained(rules, "BabcA") == "BabcbA");
}

TEST_CASE("run rules: operations run again if the backward pass reads them, also indirectly") {
  RunRules rules = ChainRules();
  const std::vector<bool> all(5, true);
  CHECK(FindForcedReruns(rules, all) == std::vector<bool>(5));
  rules.is_recomputed = {true, true, false, false, false};
  CHECK(FindForcedReruns(rules, all) == rules.is_recomputed);
  rules.producers[4] = {1, 3};  // No backward operation reads a, but b does, and b is repeated.
  CHECK(FindForcedReruns(rules, all) == rules.is_recomputed);
  CHECK(FindForcedReruns(rules, {true, true, true, false, false}) == std::vector<bool>(5));
}

TEST_CASE("run rules: random plans that are made to obey are plans, and obey") {
  int changed = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(2, 14));
    options.never_repeat = 0;
    JointGraphParts parts = PartsOf(RandomJointGraph(rng, options));
    const auto half = static_cast<int32_t>(parts.ops.size() / 2);
    for (const OpId id : parts.ops.ids()) {
      parts.ops[id].phase = id.index() < half ? Phase::kForward : Phase::kBackward;
    }
    const JointGraph graph = JointGraph::Create(std::move(parts)).value();
    RunRules rules = RulesOf(graph, RunProblem(graph));
    for (size_t op = 0; op < rules.producers.size(); ++op) {
      rules.runs_once[op] = rng.Chance(30);
      rules.is_recomputed[op] = !rules.is_backward[op] && !rules.runs_once[op] && rng.Chance(40);
    }
    const Runs runs = RandomRuns(rng, graph);
    const Runs constrained = ConstrainedTo(rules, runs);
    CHECK(Satisfies(rules, constrained));
    CHECK((constrained == runs) == Satisfies(rules, runs));
    const Result<Simulation> simulation = Simulator(graph).Run(constrained);
    REQUIRE_MESSAGE(simulation.ok(), simulation.error().message);
    changed += constrained == runs ? 0 : 1;
    // Checks that operations that must run twice do.
    std::vector<bool> ran(rules.producers.size());
    for (const OpId op : constrained) ran[static_cast<size_t>(op.index())] = true;
    const std::vector<bool> forced = FindForcedReruns(rules, ran);
    for (size_t op = 0; op < forced.size(); ++op) {
      const OpId id(static_cast<int32_t>(op));
      if (forced[op]) CHECK(std::count(constrained.begin(), constrained.end(), id) >= 2);
    }
  }
  CHECK(changed > 1000);
}

}  // namespace
}  // namespace ckplan
