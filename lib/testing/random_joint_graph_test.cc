#include "lib/testing/random_joint_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/problem/schedule/simulate.h"

namespace ckplan {

TEST_CASE("random joint graphs: the seed determines the graph and the plan") {
  Rng first(7), second(7), other(8);
  const JointGraph graph = RandomJointGraph(first);
  CHECK(graph == RandomJointGraph(second));
  CHECK(graph != RandomJointGraph(other));
  CHECK(RandomRuns(first, graph) == RandomRuns(second, graph));
}

TEST_CASE("random joint graphs: a hundred of them show every feature, and all plans are valid") {
  int second_write = 0, no_write = 0, alias = 0, in_place = 0, never = 0, gradients = 0;
  int given_results = 0, repeats = 0, dropped = 0, reordered = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    for (const Value& value : graph.values()) {
      alias += value.alias_of.is_none() ? 0 : 1;
      gradients += value.kind == ValueKind::kParameterGradient;
      given_results += value.is_result && value.maker.is_none();
    }
    for (const Operation& op : graph.ops()) {
      second_write += op.writes.size() > 1;
      no_write += op.writes.empty();
      in_place += op.in_place.empty() ? 0 : 1;
      never += op.may_repeat ? 0 : 1;
    }
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const std::set<OpId> different(runs.begin(), runs.end());
    repeats += runs.size() > different.size();
    dropped += different.size() < graph.ops().size();
    reordered += std::is_sorted(runs.begin(), runs.end()) ? 0 : 1;
    CHECK(Simulator(graph).Run(runs).ok());
  }
  for (const int count :
       {second_write, alias, in_place, never, gradients, repeats, dropped, reordered}) {
    CHECK(count > 10);
  }
  CHECK((no_write > 0 && given_results > 0));
}

}  // namespace ckplan
