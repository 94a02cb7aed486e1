#include "lib/planning/plan/certificate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lib/planning/plan/assemble.h"
#include "lib/planning/plan/check.h"
#include "lib/problem/schedule/lower.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

// a → b → c → d with b dropped, which costs 3. The plan needs 100 bytes above the proven minimum.
struct CertifiedExample {
  TensorGraph graph = GraphFromText("a:400@1 -> b:200@3 -> c:100@5 -> d:50@17");
  Plan plan;

  CertifiedExample() {
    KeptSet kept{IdVector<NodeId, bool>(4, true)};
    kept.is_kept[NodeId(1)] = false;
    plan = AssemblePlan(graph, LowerStrategy(graph, kept), IdVector<NodeId, int32_t>(4));
    plan.request.algorithm = kBestAlgorithm;
    plan.figures.lower_bound_cost = Cost(2);
    plan.figures.certificate = {
        OverheadProof::kMoments,
        BoundScope::kOwnOrder,
        Cost(1),
        {plan.figures.peak - Bytes(100), PeakProof::kWorkingSet, BoundScope::kAnyOrder},
        Bytes(100)};
  }
};

struct Damage {
  const char* part_of_message;
  std::function<void(PlanFigures*)> apply;
};

const Damage kDamages[] = {
    {"certificate: missing", [](PlanFigures* f) { f->certificate.reset(); }},
    {"certificate: lower_bound_cost is null", [](PlanFigures* f) { f->lower_bound_cost.reset(); }},
    {"gap_cost: the plan says 1, the replay finds 2",
     [](PlanFigures* f) { f->lower_bound_cost = Cost(1); }},
    {"gap_cost: the plan says 0, the replay finds 1",
     [](PlanFigures* f) { f->certificate->gap = Cost(0); }},
    {"gap_bytes: the plan says 99, the replay finds 100",
     [](PlanFigures* f) { f->certificate->peak_gap = Bytes(99); }},
    {"bytes is not a lower bound of the peak",
     [](PlanFigures* f) {
       f->certificate->peak.bytes = f->peak + Bytes(1);
       f->certificate->peak_gap = Bytes(-1);
     }},
    {"overhead.proof: run-once cannot prove 2",
     [](PlanFigures* f) { f->certificate->proof = OverheadProof::kRunOnce; }},
    {"overhead.proof: moments cannot prove 0",
     [](PlanFigures* f) {
       f->lower_bound_cost = Cost(0);
       f->certificate->gap = Cost(3);
     }},
    {"overhead.scope: any-order does not match the proof moments",
     [](PlanFigures* f) { f->certificate->scope = BoundScope::kAnyOrder; }},
    {"overhead.scope: own-order does not match the proof order-cut",
     [](PlanFigures* f) { f->certificate->proof = OverheadProof::kOrderCut; }},
    {"overhead.scope: the plan's order is the graph's own",
     [](PlanFigures* f) { f->certificate->scope = BoundScope::kPlanOrder; }},
    {"peak.scope: own-order does not match the proof working-set",
     [](PlanFigures* f) { f->certificate->peak.scope = BoundScope::kOwnOrder; }},
    {"peak.scope: any-order does not match the proof moments",
     [](PlanFigures* f) { f->certificate->peak.proof = PeakProof::kMoments; }},
};

void ExpectNamed(const CertifiedExample& example, const Damage& damage) {
  CAPTURE(std::string(damage.part_of_message));
  const std::vector<std::string> faults = CheckPlan(example.graph, example.plan);
  CHECK(std::any_of(faults.begin(), faults.end(), [&](const std::string& fault) {
    return fault.find(damage.part_of_message) != std::string::npos;
  }));
}

}  // namespace

TEST_CASE("certificate: everything that does not fit the plan is found and named") {
  const CertifiedExample whole;
  REQUIRE(CheckPlan(whole.graph, whole.plan).empty());
  for (const Damage& damage : kDamages) {
    CertifiedExample example;
    damage.apply(&example.plan.figures);
    ExpectNamed(example, damage);
  }
}

TEST_CASE("certificate: no other algorithm's plan has one") {
  CertifiedExample example;
  example.plan.request.algorithm = "exact-dp";
  CHECK(CheckPlan(example.graph, example.plan) ==
        std::vector<std::string>{"certificate: only the algorithm best has one"});
}

TEST_CASE("curve: it is monotone, and the plan is the point that is chosen on it") {
  CertifiedExample whole;
  const CurvePoint own{whole.plan.figures.peak, whole.plan.figures.overhead};
  const std::vector<CurvePoint> curve = {
      {own.peak - Bytes(10), Cost(30)}, own, {own.peak + Bytes(400), Cost(2)}};
  whole.plan.figures.curve = curve;
  REQUIRE(CheckPlan(whole.graph, whole.plan).empty());
  const Damage damages[] = {
      {"curve: point 2 must have more memory and less time than the one before",
       [](PlanFigures* f) { f->curve[2].overhead = Cost(3); }},
      {"curve: point 1 must have more memory", [](PlanFigures* f) { f->curve[0] = f->curve[1]; }},
      {"curve: does not contain the plan",
       [](PlanFigures* f) { f->curve.erase(f->curve.begin() + 1); }},
      {"curve: another point that adds at most 10 % has a lower peak",
       [](PlanFigures* f) { f->curve[0].overhead = Cost(4); }},
  };
  for (const Damage& damage : damages) {
    CertifiedExample example;
    example.plan.figures.curve = curve;
    damage.apply(&example.plan.figures);
    ExpectNamed(example, damage);
  }
  whole.plan.request.budget = Budget::Of(own.peak);
  ExpectNamed(whole, {"curve: only plans by best without a budget have one", {}});
}

TEST_CASE("curve: no point of its front is dominated by another") {
  CHECK(FrontOf({}).empty());
  const std::vector<CurvePoint> front = FrontOf({{Bytes(9), Cost(1)},
                                                 {Bytes(5), Cost(4)},
                                                 {Bytes(7), Cost(4)},
                                                 {Bytes(5), Cost(6)},
                                                 {Bytes(9), Cost(1)},
                                                 {Bytes(11), Cost(2)}});
  CHECK(front == std::vector<CurvePoint>{{Bytes(5), Cost(4)}, {Bytes(9), Cost(1)}});
}

}  // namespace ckplan
