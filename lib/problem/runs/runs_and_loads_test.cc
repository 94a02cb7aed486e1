#include "lib/problem/runs/runs_and_loads.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "lib/problem/graph/joint_graph.h"

namespace ckplan {
namespace {

// a -> b -> c -> C -> B, where C reads b as well, and B reads a. Each value has 4 bytes.
JointGraph ChainWithGradients() {
  JointGraphParts parts;
  const auto add = [&](const std::string& name, std::vector<int> reads) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.name = name;
    value.bytes = Bytes(4);
    Operation op;
    op.file_id = value.file_id;
    op.name = name;
    op.cost = Cost(1);
    for (const int read : reads) op.reads.emplace_back(read);
    op.writes.push_back(parts.values.push_back(std::move(value)));
    parts.ops.push_back(std::move(op));
  };
  add("a", {});
  add("b", {0});
  add("c", {1});
  add("C", {2, 1});
  add("B", {3, 0});
  parts.results = {ValueId(4)};
  return JointGraph::Create(std::move(parts)).value();
}

std::string TextOf(const RunProblem& problem, const RunsAndLoads& steps) {
  const std::string names = "abcCB";
  std::string text;
  for (const int32_t step : steps) {
    const bool is_load = IsLoad(problem, step);
    text += is_load ? '<' : ' ';
    text += names[static_cast<size_t>(is_load ? LoadedBy(problem, step) : step)];
  }
  return text;
}

}  // namespace

TEST_CASE("loads: what is not kept is loaded or made again right before its reader") {
  const JointGraph graph = ChainWithGradients();
  const RunProblem problem(graph);
  OffloadChoice choice{OwnOrder(graph), 3, {false, false, true, false, false}};
  choice.loaded.assign(5, false);
  CHECK(TextOf(problem, ExpandChoice(problem, choice)) == " a b c a b C B");
  choice.loaded[0] = true;
  CHECK(TextOf(problem, ExpandChoice(problem, choice)) == " a b c<a b C B");
  choice.loaded[1] = true;
  CHECK(TextOf(problem, ExpandChoice(problem, choice)) == " a b c<b C<a B");
  choice.kept[0] = true;
  CHECK(TextOf(problem, ExpandChoice(problem, choice)) == " a b c<b C B");
}

TEST_CASE("loads: a value that can be neither loaded nor made again is kept") {
  JointGraphParts parts = PartsOf(ChainWithGradients());
  parts.ops[OpId(0)].may_repeat = false;
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const RunProblem problem(graph);
  const std::vector<bool> none(5, false);
  CHECK(TextOf(problem, ExpandChoice(problem, {OwnOrder(graph), 3, none, none})) ==
        " a b c b c C B");
}

TEST_CASE("loads: a value is away from its last read before the load to the first one after it") {
  const JointGraph graph = ChainWithGradients();
  const RunProblem problem(graph);
  const RunsAndLoads steps = {0, 1, 2, LoadOf(problem, 1), 3, LoadOf(problem, 0), 4};
  const CopyTask task = CopyTaskOf(problem, steps);
  CHECK(task.bytes == std::vector<int64_t>{4, 8, 8, 12, 12});
  CHECK(PeakOf(task) == 12);
  REQUIRE(task.absences.size() == 2);
  const Absence& b = task.absences[0];
  CHECK(b.value == 1);
  CHECK(b.made == 1);
  CHECK(b.last_read == 2);
  CHECK(b.gone_by == 3);
  CHECK(b.first_read == 3);
  const Absence& a = task.absences[1];
  CHECK(a.value == 0);
  CHECK(a.last_read == 1);
  CHECK(a.first_read == 4);
  CHECK(RunsIn(problem, steps) == OwnOrder(graph));
}

}  // namespace ckplan
