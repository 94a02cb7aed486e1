#include "lib/planning/plan/constraints.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/planning/plan/check_constraints.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

PlanRequest ConstrainedRequest(NamePatterns keep, NamePatterns recompute,
                               NamePatterns never_rerun) {
  PlanRequest request;
  request.keep = std::move(keep);
  request.recompute = std::move(recompute);
  request.never_rerun = std::move(never_rerun);
  return request;
}

std::string Marks(const IdVector<NodeId, bool>& flags) {
  std::string marks;
  for (const bool flag : flags) marks += flag ? 'x' : '-';
  return marks;
}

// Steps as letters: lower case for nodes forward, "!" for the loss, capitals for nodes backward.
Schedule StepsOf(const std::string& letters) {
  Schedule schedule;
  for (const char letter : letters) {
    schedule.steps.push_back(letter == '!'  ? Step::Loss()
                             : letter < 'a' ? Step::Backward(NodeId(letter - 'A'))
                                            : Step::Forward(NodeId(letter - 'a')));
  }
  return schedule;
}

std::string LettersOf(const Schedule& schedule) {
  std::string letters;
  for (const Step& step : schedule.steps) {
    const char first = step.kind == StepKind::kBackward ? 'A' : 'a';
    letters += step.kind == StepKind::kLoss ? '!' : static_cast<char>(first + step.index);
  }
  return letters;
}

// A forward operation a, a view of it, and an operation that reads the view backward.
JointGraph ViewGraph(Phase last) {
  JointGraphParts parts;
  const auto add = [&](std::string name, std::vector<ValueId> reads, ValueId base, Phase phase) {
    Value value;
    value.file_id = static_cast<int64_t>(parts.values.size());
    value.name = "v_" + name;
    value.bytes = Bytes(4);
    value.alias_of = base;
    Operation op;
    op.file_id = static_cast<int64_t>(parts.ops.size());
    op.name = name;
    op.op = "t_" + name;
    op.phase = phase;
    op.reads = std::move(reads);
    op.writes = {parts.values.push_back(std::move(value))};
    parts.ops.push_back(std::move(op));
    return ValueId(static_cast<int32_t>(parts.values.size()) - 1);
  };
  const ValueId a = add("a", {}, ValueId(), Phase::kForward);
  const ValueId view = add("view", {a}, a, Phase::kForward);
  parts.results = {add("grad", {view}, ValueId(), last)};
  return JointGraph::Create(std::move(parts)).value();
}

TEST_CASE("constraints: nodes are matched by name, by tensor name and by type") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const Constraints none = ConstraintsOf(graph, PlanRequest()).value();
  CHECK(none.empty());
  const Constraints some = ConstraintsOf(graph, ConstrainedRequest({"a"}, {"b"}, {"c"})).value();
  CHECK(Marks(some.runs_once) == "x-x");
  CHECK(Marks(some.is_recomputed) == "-x-");
  CHECK(Marks(ConstraintsOf(graph, ConstrainedRequest({"!b"}, {}, {}))->runs_once) == "x-x");
}

TEST_CASE("constraints: patterns without a match and contradictions are refused by name") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const struct {
    PlanRequest request;
    std::string part;
  } kRows[] = {
      {ConstrainedRequest({"x*"}, {}, {}), "no node or tensor is called \"x*\""},
      {ConstrainedRequest({}, {"op:Relu"}, {}), "no node or tensor is of the type \"Relu\""},
      {ConstrainedRequest({}, {}, {"d"}), "no operation is called \"d\""},
      {ConstrainedRequest({"a", "b"}, {"b", "c"}, {}), "\"b\" must both be recomputed and be kept"},
      {ConstrainedRequest({}, {"c"}, {"*"}), "\"c\" must both be recomputed and never run again"},
  };
  for (const auto& row : kRows) {
    const Result<Constraints> constraints = ConstraintsOf(graph, row.request);
    REQUIRE_FALSE(constraints.ok());
    CHECK(constraints.error().code == ErrorCode::kUsage);
    CAPTURE(constraints.error().message);
    CHECK(constraints.error().message.find(row.part) != std::string::npos);
  }
}

TEST_CASE("constraints: a schedule is checked, and changed to obey") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@5");
  const struct {
    PlanRequest request;
    std::string steps;
    std::string constrained;
    std::vector<std::string> broken;
  } kRows[] = {
      {ConstrainedRequest({"a"}, {}, {}), "abc!CBA", "abc!CBA", {}},
      {ConstrainedRequest({"a"}, {}, {}),
       "abc!abCBA",
       "abc!bCBA",
       {"constraints: \"a\" runs twice, but must be kept"}},
      {ConstrainedRequest({}, {}, {"a", "b"}),
       "abc!abCBA",
       "abc!CBA",
       {"constraints: \"a\" runs twice, but must never run again",
        "constraints: \"b\" runs twice, but must never run again"}},
      {ConstrainedRequest({}, {"a"}, {}),
       "abc!CBA",
       "abc!CaBA",
       {"constraints: step 5: \"b\" reads the forward pass's \"a\", which must be recomputed",
        "constraints: step 6: \"a\" reads the forward pass's \"a\", which must be recomputed"}},
      {ConstrainedRequest({}, {"a", "b"}, {}),
       "abc!bCBA",
       "abc!abCBA",
       {"constraints: step 4: \"b\" reads the forward pass's \"a\", which must be recomputed",
        "constraints: step 6: \"b\" reads the forward pass's \"a\", which must be recomputed",
        "constraints: step 7: \"a\" reads the forward pass's \"a\", which must be recomputed"}},
      // A second run before the loss does not serve the backward pass.
      {ConstrainedRequest({}, {"b"}, {}),
       "abbc!CBA",
       "abbc!bCBA",
       {"constraints: step 5: \"c\" reads the forward pass's \"b\", which must be recomputed",
        "constraints: step 6: \"b\" reads the forward pass's \"b\", which must be recomputed"}},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.steps);
    const ScheduleRules rules(graph, ConstraintsOf(graph, row.request).value());
    const Schedule steps = StepsOf(row.steps);
    CHECK(BrokenConstraints(graph, row.request, steps) == row.broken);
    CHECK(rules.AreSatisfiedBy(steps) == row.broken.empty());
    const Schedule constrained = rules.ConstrainedTo(steps);
    CHECK(LettersOf(constrained) == row.constrained);
    CHECK(BrokenConstraints(graph, row.request, constrained).empty());
  }
}

TEST_CASE("constraints: in a joint graph, aliases are recomputed with their base") {
  const JointGraph graph = ViewGraph(Phase::kBackward);
  const PlanRequest request = ConstrainedRequest({}, {"v_a"}, {});
  const Constraints constraints = ConstraintsOf(graph, request).value();
  CHECK(Marks(constraints.is_recomputed) == "xx-");
  Schedule once;
  for (const OpId id : graph.ops().ids()) once.steps.push_back(Step::Run(id));
  CHECK(BrokenConstraints(graph, request, once).size() == 1);
  CHECK(ConstraintsOf(graph, ConstrainedRequest({"grad"}, {}, {})).error().code ==
        ErrorCode::kUsage);
  CHECK(Marks(ConstraintsOf(graph, ConstrainedRequest({}, {}, {"op:t_*"}))->runs_once) == "xxx");
  CHECK(ConstraintsOf(graph, ConstrainedRequest({"view"}, {"a"}, {}))
            .error()
            .message.find("\"view\" must both be recomputed and run only once") !=
        std::string::npos);
}

TEST_CASE("constraints: without a backward pass nothing is recomputed for it") {
  const Result<Constraints> constraints =
      ConstraintsOf(ViewGraph(Phase::kForward), ConstrainedRequest({}, {"a"}, {}));
  REQUIRE_FALSE(constraints.ok());
  CHECK(constraints.error().message.find("phase backward") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
