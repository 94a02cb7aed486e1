#include "lib/plan/diff.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ckplan {
namespace {

PlanDigest::Row RowOf(std::string name, NodeAction action, int64_t bytes, int32_t recomputed = 0) {
  return {std::move(name), "Conv", {action, 0, recomputed}, Bytes(bytes)};
}

PlanDigest DigestWith(std::vector<PlanDigest::Row> rows) {
  PlanDigest digest;
  digest.rows = std::move(rows);
  return digest;
}

constexpr NodeAction kKeep = NodeAction::kKeep;
constexpr NodeAction kRecompute = NodeAction::kRecompute;
constexpr NodeAction kTransient = NodeAction::kTransient;

TEST_CASE("diff: a plan does not differ from itself") {
  const PlanDigest plan = DigestWith({RowOf("a", kKeep, 4), RowOf("b", kRecompute, 3, 1)});
  const PlanDiff diff = DiffPlans(plan, plan);
  CHECK_FALSE(diff.has_changes);
  CHECK(diff.changes.empty());
  CHECK(diff.has_same_model);
  CHECK(diff.old_kept == 1);
}

TEST_CASE("diff: what is held and no longer held, the most bytes first") {
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

TEST_CASE("diff: nodes that share a name are matched in their order") {
  const PlanDigest older = DigestWith({RowOf("x", kKeep, 4), RowOf("x", kKeep, 7)});
  const PlanDigest newer = DigestWith({RowOf("x", kKeep, 4), RowOf("x", kRecompute, 7, 1)});
  const PlanDiff diff = DiffPlans(older, newer);
  REQUIRE(diff.changes.size() == 1);
  CHECK(diff.changes[0].held == Bytes(-7));
}

TEST_CASE("diff: a figure alone makes a difference") {
  const PlanDigest older = DigestWith({RowOf("a", kKeep, 4)});
  PlanDigest newer = older;
  newer.figures.overhead = Cost(1);
  const PlanDiff diff = DiffPlans(older, newer);
  CHECK(diff.has_changes);
  CHECK(diff.changes.empty());
}

}  // namespace
}  // namespace ckplan
