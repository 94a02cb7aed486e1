#include "lib/planning/plan/diff.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/diff_summary.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {
namespace {

constexpr NodeAction kKeep = NodeAction::kKeep;
constexpr NodeAction kRecompute = NodeAction::kRecompute;
constexpr NodeAction kTransient = NodeAction::kTransient;

PlanDigest::Row RowOf(std::string name, NodeAction action, int64_t bytes, int32_t recomputed = 0) {
  std::string tensor = name + ":0";
  return {std::move(name),         std::move(tensor), "Conv",
          {action, 0, recomputed}, Bytes(bytes),      Bytes(0)};
}

PlanDigest::Row AtPeak(PlanDigest::Row row, int64_t bytes) {
  row.at_peak = Bytes(bytes);
  return row;
}

PlanDigest DigestWith(std::vector<PlanDigest::Row> rows) {
  PlanDigest digest;
  digest.rows = std::move(rows);
  digest.rest.emplace();
  return digest;
}

Plan PlanOf(const TensorGraph& graph, const KeptSet& kept) {
  return AssemblePlan(graph, LowerStrategy(graph, kept),
                      IdVector<NodeId, int32_t>(graph.nodes().size()));
}

// The graph with all tensors and nodes renumbered, and some with other names and sizes.
TensorGraph Changed(Rng& rng, const TensorGraph& graph) {
  TensorGraphParts parts = PartsOf(graph);
  for (Tensor& tensor : parts.tensors) {
    tensor.file_id += 1000;
    if (rng.Chance(20)) tensor.name += "_renamed";
    if (rng.Chance(20)) tensor.bytes += Bytes(rng.Between(0, 9));
  }
  for (Node& node : parts.nodes) {
    if (rng.Chance(20)) node.name += "_renamed";
  }
  return TensorGraph::Create(std::move(parts)).value();
}

Bytes SumOf(const PlanDiff& diff) {
  Bytes sum = diff.rest->sum();
  for (const NodeChange& change : diff.changes) sum += change.at_peak;
  return sum;
}

}  // namespace

TEST_CASE("diff: a plan does not differ from itself") {
  const PlanDigest plan = DigestWith({RowOf("a", kKeep, 4), RowOf("b", kRecompute, 3, 1)});
  const PlanDiff diff = DiffPlans(plan, plan);
  CHECK_FALSE(diff.has_changes);
  CHECK(diff.changes.empty());
  CHECK(diff.has_same_model);
  CHECK(diff.has_same_costs);
  CHECK(diff.old_kept == 1);
  CHECK(diff.rest == RestAtPeak{});
}

TEST_CASE("diff: results held and no longer held, the most bytes first") {
  const PlanDigest older = DigestWith({RowOf("a", kKeep, 4), RowOf("b", kRecompute, 30, 1),
                                       RowOf("c", kRecompute, 5, 1), RowOf("d", kKeep, 9)});
  const PlanDigest newer = DigestWith({RowOf("a", kRecompute, 4, 1), RowOf("b", kKeep, 30),
                                       RowOf("c", kRecompute, 5, 2), RowOf("d", kTransient, 9)});
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 4);
  CHECK(diff.changes[0].name == "b");
  CHECK(diff.changes[0].kind == NodeChange::Kind::kKept);
  CHECK(diff.changes[0].held == Bytes(30));
  CHECK(diff.changes[1].name == "d");
  CHECK(diff.changes[1].kind == NodeChange::Kind::kNotKept);
  CHECK(diff.changes[1].held == Bytes(-9));
  CHECK(diff.changes[2].name == "a");
  CHECK(diff.changes[3].name == "c");
  CHECK(diff.changes[3].kind == NodeChange::Kind::kRecomputed);
  CHECK(diff.changes[3].old_runs == 2);
  CHECK(diff.changes[3].new_runs == 3);
  CHECK(diff.old_kept == 2);
  CHECK(diff.new_kept == 1);
}

TEST_CASE("diff: the most changed bytes come first, held or at the peak; the rest is no change") {
  PlanDigest older = DigestWith(
      {AtPeak(RowOf("a", kKeep, 4), 4), RowOf("b", kKeep, 30), AtPeak(RowOf("c", kKeep, 7), 7)});
  PlanDigest newer = DigestWith(
      {RowOf("a", kRecompute, 4, 1), RowOf("b", kRecompute, 30, 1), RowOf("c", kKeep, 7)});
  older.rest->gradients = Bytes(5);
  newer.rest->workspace = Bytes(2);
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 2);
  CHECK(diff.changes[0].name == "b");  // It lives at no peak, but it is larger.
  CHECK(diff.changes[0].at_peak == Bytes(0));
  CHECK(diff.changes[1].at_peak == Bytes(-4));
  CHECK(diff.rest == RestAtPeak{Bytes(-7), Bytes(-5), Bytes(2)});
  CHECK(SumOf(diff) == Bytes(-14));
  newer.rest.reset();
  CHECK_FALSE(DiffPlans(older, newer).rest.has_value());
  CHECK(DiffPlans(older, newer).changes[0].name == "b");
}

struct Summarised {
  DiffSummary summary;
  PlanDiff diff;

  Summarised(const PlanDigest& older, const PlanDigest& newer, const ModulesOfRows& modules = {})
      : diff(DiffPlans(older, newer, modules, modules, &summary)) {}
};

// The summary's groups as text: "module; a 1 0->1 -4 -4".
std::string GroupsIn(const Summarised& found) {
  std::string text(NameOf(found.summary.grouped_by));
  for (const GroupChange& group : found.summary.groups) {
    text += "; " + group.name + " " + std::to_string(group.changed) + " " +
            std::to_string(group.old_reruns) + "->" + std::to_string(group.new_reruns) + " " +
            std::to_string(group.held.count()) + " " + std::to_string(group.at_peak.count());
  }
  return text;
}

PlanDigest::Row InSegment(PlanDigest::Row row, int32_t segment) {
  row.decision.segment = segment;
  return row;
}

TEST_CASE("diff: changes are added up by modules, with nodes that are treated as before") {
  const PlanDigest older = DigestWith({RowOf("/a/x", kKeep, 4), RowOf("/a/y", kKeep, 5),
                                       AtPeak(RowOf("/b/x", kKeep, 7), 7), RowOf("/c/x", kKeep, 1),
                                       RowOf("z", kKeep, 2)});
  const PlanDigest newer =
      DigestWith({RowOf("/a/x", kRecompute, 4, 2), RowOf("/a/y", kTransient, 5),
                  RowOf("/b/x", kKeep, 7), RowOf("/c/x", kKeep, 1), RowOf("z", kRecompute, 2, 1)});
  const Summarised found(older, newer);
  CHECK(GroupsIn(found) == "module; /a 2 0->2 -9 0; /b 0 0->0 0 -7; (no module) 1 0->1 -2 0");
  const std::vector<size_t>& group_of = found.summary.group_of;
  REQUIRE(group_of.size() == 3);
  CHECK(found.summary.groups[group_of[0]].name == "/a");
  CHECK(found.summary.groups[group_of[2]].name == "(no module)");
}

TEST_CASE("diff: modules that a model names count, and not the names of nodes") {
  const PlanDigest older = DigestWith({RowOf("x/a", kKeep, 4), RowOf("x/b", kKeep, 5)});
  const PlanDigest newer = DigestWith({RowOf("x/a", kTransient, 4), RowOf("x/b", kTransient, 5)});
  const ModulesOfRows modules = {{"net", "net.1"}, {"net", "net.2"}};
  CHECK(GroupsIn(Summarised(older, newer, modules)) ==
        "module; net.2 1 0->0 -5 0; net.1 1 0->0 -4 0");
}

TEST_CASE("diff: nodes in no modules are added up by segments, or else by runs") {
  std::vector<PlanDigest::Row> kept, dropped, in_segments;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "n" + std::to_string(i);
    kept.push_back(RowOf(name, kKeep, 1));
    dropped.push_back(RowOf(name, kTransient, 1));
    in_segments.push_back(InSegment(RowOf(name, kTransient, 1), i / 10));
  }
  CHECK(GroupsIn(Summarised(DigestWith(kept), DigestWith(in_segments))) ==
        "segment; segment 0 10 0->0 -10 0; segment 1 10 0->0 -10 0; segment 2 10 0->0 -10 0");
  // The segments of the older plan, if the newer one has none.
  CHECK(Summarised(DigestWith(in_segments), DigestWith(kept)).summary.grouped_by ==
        GroupKind::kSegment);
  const DiffSummary diff = Summarised(DigestWith(kept), DigestWith(dropped)).summary;
  CHECK(diff.grouped_by == GroupKind::kRun);
  REQUIRE(diff.groups.size() == 10);
  CHECK(diff.groups.front().name == "n0 ... n2");
  // Many segments are combined.
  for (int i = 0; i < 30; ++i) in_segments[static_cast<size_t>(i)].decision.segment = i;
  const DiffSummary many = Summarised(DigestWith(kept), DigestWith(in_segments)).summary;
  CHECK(many.groups.size() == 8);
  CHECK(many.groups.front().name == "segments 0-3");
}

TEST_CASE("diff: the checkpoints of either side and of both, the largest first") {
  const PlanDigest older =
      DigestWith({RowOf("a", kKeep, 4), RowOf("b", kKeep, 5), RowOf("c", kKeep, 6)});
  const PlanDigest newer = DigestWith({RowOf("a", kRecompute, 4, 1), RowOf("b", kRecompute, 5, 1),
                                       RowOf("c", kKeep, 7), RowOf("d", kKeep, 2)});
  const DiffSummary diff = Summarised(older, newer).summary;
  CHECK(diff.old_only.names == std::vector<std::string>{"b", "a"});
  CHECK(diff.old_only.bytes == Bytes(9));
  CHECK(diff.new_only.names == std::vector<std::string>{"d"});
  CHECK(diff.both.names == std::vector<std::string>{"c"});
  CHECK(diff.both.bytes == Bytes(7));
}

TEST_CASE("diff: the verdict says which plan needs less, and which takes less") {
  PlanDigest older = DigestWith({});
  PlanDigest newer = DigestWith({});
  older.figures.forward_cost = newer.figures.forward_cost = Cost(100);
  older.figures.peak = Bytes(10);
  newer.figures.peak = Bytes(8);
  newer.figures.overhead = Cost(5);
  const PlanVerdict verdict = Summarised(older, newer).summary.verdict;
  CHECK(verdict.memory == Lesser::kNewer);
  CHECK(verdict.peak == Bytes(-2));
  CHECK(verdict.time == Lesser::kOlder);
  CHECK(verdict.longer == doctest::Approx(0.05));
  CHECK(Summarised(newer, older).summary.verdict.time == Lesser::kNewer);
  CHECK(Summarised(older, older).summary.verdict.memory == Lesser::kNeither);
  CHECK(Summarised(older, older).summary.verdict.time == Lesser::kNeither);
  // Plans of different models are compared by their whole steps.
  newer.model.sha256 = "2";
  newer.figures.forward_cost = Cost(195);
  CHECK(Summarised(older, newer).summary.verdict.longer == doctest::Approx(1));
  newer.request.cost_unit = "ns";
  CHECK_FALSE(Summarised(older, newer).summary.verdict.time.has_value());
}

TEST_CASE("diff: of plans of nodes and of operations, only the figures compare") {
  Rng rng(1);
  const TensorGraph graph = RandomTensorGraph(rng, RandomGraphOptions());
  const Expansion expansion = ExpandTensorGraph(graph);
  const Schedule kept = KeepAllInOwnOrder(graph);
  const PlanDigest nodes =
      DigestOf(graph, AssemblePlan(graph, kept, IdVector<NodeId, int32_t>(graph.nodes().size())));
  const PlanDigest operations = DigestOf(
      expansion.graph, AssemblePlan(expansion.graph, ScheduleOfRuns(RunsOf(expansion, kept)), {}));
  CHECK_FALSE(nodes.is_joint);
  CHECK(operations.is_joint);
  for (const auto& [older, newer] : {std::pair(&nodes, &operations), {&operations, &nodes}}) {
    const PlanDiff diff = DiffPlans(*older, *newer);
    CHECK_FALSE(diff.compares_nodes);
    CHECK(diff.has_changes);
    CHECK(diff.changes.empty());
    CHECK_FALSE(diff.rest.has_value());
    REQUIRE_FALSE(diff.differences.empty());
    CHECK(diff.differences.back().find("only their figures are compared") != std::string::npos);
  }
  CHECK(DiffPlans(operations, operations).compares_nodes);
}

TEST_CASE("diff: nodes of a model that has grown are matched by name") {
  PlanDigest older = DigestWith({RowOf("a", kKeep, 4), RowOf("gone", kKeep, 7)});
  PlanDigest newer = DigestWith({RowOf("new", kKeep, 2), RowOf("a", kKeep, 8)});
  older.model.sha256 = "1";
  newer.model.sha256 = "2";
  const PlanDiff diff = DiffPlans(older, newer);
  CHECK_FALSE(diff.has_same_model);
  REQUIRE(diff.changes.size() == 3);
  CHECK(diff.changes[0].name == "gone");
  CHECK(diff.changes[0].new_runs == 0);
  CHECK(diff.changes[1].name == "a");  // Kept by both, but larger.
  CHECK(diff.changes[1].held == Bytes(4));
  CHECK(diff.changes[2].name == "new");
  CHECK(diff.changes[2].old_runs == 0);
}

TEST_CASE("diff: the name of the tensor decides, then that of the node") {
  PlanDigest older = DigestWith({RowOf("x", kKeep, 4), RowOf("y", kKeep, 7)});
  PlanDigest newer = DigestWith({RowOf("y", kKeep, 4), RowOf("x", kRecompute, 7, 1)});
  newer.rows[0].tensor = "x:0";  // The nodes have swapped their names.
  newer.rows[1].tensor = "y:0";
  const PlanDiff by_tensor = DiffPlans(older, newer);
  REQUIRE(by_tensor.changes.size() == 1);
  CHECK(by_tensor.changes[0].name == "x");
  CHECK(by_tensor.changes[0].held == Bytes(-7));

  newer.rows = {RowOf("y", kKeep, 7), RowOf("x", kKeep, 4)};
  newer.rows[0].tensor = "output";  // No tensor of the older plan.
  CHECK(DiffPlans(older, newer).changes.empty());
}

TEST_CASE("diff: nodes that share all names are matched in their order") {
  const PlanDigest older = DigestWith({RowOf("x", kKeep, 4), RowOf("x", kKeep, 7)});
  const PlanDigest newer = DigestWith({RowOf("x", kKeep, 4), RowOf("x", kRecompute, 7, 1)});
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 1);
  CHECK(diff.changes[0].held == Bytes(-7));
}

TEST_CASE("diff: a figure alone makes a difference, another cost model is reported") {
  const PlanDigest older = DigestWith({RowOf("a", kKeep, 4)});
  PlanDigest newer = older;
  newer.figures.overhead = Cost(1);
  CHECK(DiffPlans(older, newer).has_changes);
  CHECK(DiffPlans(older, newer).changes.empty());
  newer.request.cost_model = "unit";
  CHECK_FALSE(DiffPlans(older, newer).has_same_costs);
}

// Keep-all's peak is at the backward of d, with all four results and the gradients of d and of c:
// 750 + 100 + 400. Without a, the peak stays there and is 200 less.
TEST_CASE("diff: what a chain frees at its peak") {
  const TensorGraph graph = GraphFromText("a:200@1 -> b:50@3 -> c:400@5 -> d:100@7");
  KeptSet all{IdVector<NodeId, bool>(4, true)};
  KeptSet some = all;
  some.is_kept[NodeId(0)] = false;
  const PlanDigest older = DigestOf(graph, PlanOf(graph, all));
  const PlanDigest newer = DigestOf(graph, PlanOf(graph, some));
  CHECK(older.figures.peak == Bytes(1250));
  CHECK(newer.figures.peak == Bytes(1050));
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 1);
  CHECK(diff.changes[0].name == "a");
  CHECK(diff.changes[0].at_peak == Bytes(-200));
  CHECK(diff.rest == RestAtPeak{});
}

// Recomputing all of it frees nothing at the peak, which is at the backward of b: a, b and their
// gradients must be there.
TEST_CASE("diff: a result that is no longer held may still be at the peak") {
  const TensorGraph graph = GraphFromText("a:400@1 -> b:200@3 -> c:100@5 -> d:50@7");
  const PlanDigest older = DigestOf(graph, PlanOf(graph, {IdVector<NodeId, bool>(4, true)}));
  const PlanDigest newer = DigestOf(graph, PlanOf(graph, {IdVector<NodeId, bool>(4, false)}));
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 4);
  CHECK(diff.changes[0].held == Bytes(-400));
  for (const NodeChange& change : diff.changes) CHECK(change.at_peak == Bytes(0));
  CHECK(newer.figures.peak == Bytes(1200));
}

TEST_CASE("diff: on random graphs, all lines together are the change of the peak, there and back") {
  int64_t changes = 0, tensors = 0, gradients = 0, workspace = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 15));
    const TensorGraph old_graph = RandomTensorGraph(rng, options);
    const TensorGraph new_graph = rng.Chance(50) ? old_graph : Changed(rng, old_graph);
    const PlanDigest older = DigestOf(old_graph, PlanOf(old_graph, RandomKeptSet(rng, old_graph)));
    const PlanDigest newer = DigestOf(new_graph, PlanOf(new_graph, RandomKeptSet(rng, new_graph)));
    const PlanDiff diff = DiffPlans(older, newer);
    const PlanDiff back = DiffPlans(newer, older);
    REQUIRE(diff.rest.has_value());
    CHECK(SumOf(diff) == newer.figures.peak - older.figures.peak);
    CHECK(SumOf(back) == older.figures.peak - newer.figures.peak);
    CHECK(back.changes.size() == diff.changes.size());
    changes += static_cast<int64_t>(diff.changes.size());
    tensors += diff.rest->tensors != Bytes(0);
    gradients += diff.rest->gradients != Bytes(0);
    workspace += diff.rest->workspace != Bytes(0);
  }
  // Every kind of line occurred.
  CHECK(changes > 1000);
  CHECK(tensors > 100);
  CHECK(gradients > 100);
  CHECK(workspace > 50);
}

}  // namespace ckplan
