#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/balance.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/plan/offload_terms.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/step_table.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

PlanRequest OverLink(const std::string& text) {
  PlanRequest request;
  request.algorithm = "keep-all";
  request.offload = ParseLink(text).value();
  return request;
}

PlanRequest TinyModel(const std::string& link) {
  PlanRequest request = OverLink(link);
  request.dims = {{"N", 8}};
  return request;
}

}  // namespace

TEST_CASE("offload: a model is planned as its joint graph, with the peak of the model") {
  const std::string model = "testdata/models/tiny_mlp.onnx";
  PlanRequest request = TinyModel("pcie4");
  for (const int64_t align : {1, 512}) {
    request.align_bytes = align;
    const Source source = LoadSource(model, request).value();
    REQUIRE(source.joint.has_value());
    CHECK(source.step().link() != nullptr);
    PlanRequest plain = request;
    plain.offload.reset();
    CHECK(KeepAllPeak(source.step()) == KeepAllPeak(LoadSource(model, plain).value().step()));
    const Plan plan = MakePlan(source, request, {}).value();
    CHECK(plan.figures.offload == OffloadFigures{});
    CHECK(CheckPlan(source.step(), plan).empty());
  }
}

TEST_CASE("offload: every algorithm answers, and those that only recompute move nothing") {
  PlanRequest request = TinyModel("pcie4");
  const Source source = LoadSource("testdata/models/tiny_mlp.onnx", request).value();
  int answered = 0;
  for (const SolverInfo& info : AllSolvers()) {
    if (info.prepare_offload != nullptr) continue;
    CAPTURE(info.name);
    request.algorithm = info.name;
    const Result<Plan> plan = MakePlan(source, request, {});
    if (!plan.ok()) continue;  // For chains, or without the solver of integer programs.
    ++answered;
    CHECK_FALSE(HasTransfers(plan->schedule));
    CHECK(CheckPlan(source.step(), *plan).empty());
  }
  CHECK(answered > 15);
}

TEST_CASE("offload: costs of a graph file are taken as nanoseconds, with a note") {
  for (const char* file : {"testdata/graphs/joint_small.json", "testdata/graphs/skips.json"}) {
    CAPTURE(file);
    const Source source = LoadSource(file, OverLink("pcie4")).value();
    CHECK(source.request.cost_unit == "ns");
    REQUIRE(source.warnings.size() == 1);
    CHECK(source.warnings[0].find("its costs are taken as nanoseconds") != std::string::npos);
    PlanRequest units = OverLink("pcie4");
    units.cost_model = "unit";
    CHECK_FALSE(LoadSource(file, units).ok());
  }
  PlanRequest request = TinyModel("pcie4");
  CHECK(LoadSource("testdata/models/tiny_mlp.onnx", request)->warnings.empty());
  request.cost_model = "paper";
  const Error error = LoadSource("testdata/models/tiny_mlp.onnx", request).error();
  CHECK(error.code == ErrorCode::kUsage);
  CHECK(error.remedy.settings.front().name == "cost_model");
}

TEST_CASE("offload: a stage and divided constants are refused by their names") {
  PlanRequest request = TinyModel("pcie4");
  request.sharding = Sharding{ShardingSystem::kFsdp, 8};
  CHECK(LoadSource("testdata/models/tiny_mlp.onnx", request).error().message.find("gather") !=
        std::string::npos);
  request.sharding.reset();
  request.pipeline = PipelineStage{2, 0};
  request.micro_batches = 4;
  CHECK(LoadSource("testdata/models/tiny_mlp.onnx", request).error().message.find("in flight") !=
        std::string::npos);
}

TEST_CASE("offload: limits without a link, and a forward graph with one, are refused") {
  const JointGraph graph = GraphOfOps({{"a", 8, 1, {}}, {"b", 2, 1, {0}}}, 1);
  PlanRequest request;
  request.algorithm = "keep-all";
  request.host_budget = Bytes(5);
  CHECK(MakePlan(graph, request, {}).error().remedy.settings.front().name == "offload");
  request.host_budget.reset();
  request.never_offload = {"a"};
  CHECK(MakePlan(graph, request, {}).error().remedy.settings.front().name == "offload");
  request = TinyModel("pcie4");
  const Source source = LoadSource("testdata/models/tiny_mlp.onnx", request).value();
  CHECK(MakePlan(TrainingStep(source.graph), request, {}).error().code == ErrorCode::kUsage);
}

TEST_CASE("offload: what is kept, recomputed or named stays on the device") {
  JointGraphParts parts = PartsOf(
      GraphOfOps({{"a", 8, 1, {}}, {"b", 8, 1, {0}}, {"c", 8, 1, {1}}, {"d", 8, 1, {0, 2}}}, 3));
  parts.values[ValueId(1)].alias_of = ValueId(0);
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  const auto may_move = [&](NamePatterns PlanRequest::*field, const std::string& pattern) {
    PlanRequest request = OverLink("pcie4");
    if (!pattern.empty()) request.*field = {pattern};
    const OffloadTerms terms = OffloadTermsOf(graph, request).value();
    return std::vector<bool>(terms.may_move.begin(), terms.may_move.end());
  };
  // b is in the memory of a, and d is the result.
  CHECK(may_move(&PlanRequest::keep, "") == std::vector<bool>{true, false, true, false});
  CHECK(may_move(&PlanRequest::keep, "c") == std::vector<bool>{true, false, false, false});
  CHECK(may_move(&PlanRequest::keep, "b") == std::vector<bool>{false, false, true, false});
  CHECK(may_move(&PlanRequest::recompute, "c") == std::vector<bool>{true, false, false, false});
  CHECK(may_move(&PlanRequest::never_offload, "op:b") ==
        std::vector<bool>{false, false, true, false});
  PlanRequest request = OverLink("pcie4");
  request.never_offload = {"nothing"};
  CHECK(OffloadTermsOf(graph, request).error().code == ErrorCode::kUsage);
}

TEST_CASE("offload: best claims no proof that copies could refute") {
  PlanRequest request = OverLink("c2c");
  request.algorithm = kBestAlgorithm;
  request.effort = SearchEffort::kQuick;
  const Source source = LoadSource("testdata/graphs/joint_small.json", request).value();
  for (const Budget::Kind kind :
       {Budget::Kind::kMin, Budget::Kind::kBalanced, Budget::Kind::kNone}) {
    request.budget = {kind, Bytes(0), 0};
    const Plan plan = MakePlan(source, request, {}).value();
    // A faster link brings the peak down to this, so no proof may exclude it. What a plan without a
    // link is proven to need, or to add, is more.
    CHECK(plan.figures.certificate->peak.bytes <= Bytes(12'000));
    PlanRequest fast = request;
    fast.offload = ParseLink("c2c:1000000,latency=0").value();
    fast.budget = Budget::Of(plan.figures.peak);
    const Source nearby = LoadSource("testdata/graphs/joint_small.json", fast).value();
    CHECK(plan.figures.lower_bound_cost >=
          MakePlan(nearby, fast, {}).value().figures.lower_bound_cost);
    CHECK(plan.figures.lower_bound_cost <= plan.figures.overhead);
  }
  request.budget = Budget::Of(Bytes(4'000));
  const Error refused = MakePlan(source, request, {}).error();
  // A working set is a proof about plans with copies, too.
  const std::string proof = "each needs at least 11.72 KiB (12000 bytes)";
  for (const std::string& note : refused.notes) CHECK(note.find(proof) != std::string::npos);
}

TEST_CASE("offload: more effort never makes a plan worse") {
  struct Row {
    std::string link;
    int64_t percent = 0;
  };
  // By itself, the larger effort finds a worse plan for each of these.
  for (const Row& row : std::vector<Row>{{"pcie4:2", 40}, {"pcie4:25", 30}, {"pcie4:25", 35}}) {
    CAPTURE(row.link);
    CAPTURE(row.percent);
    PlanRequest request = OverLink(row.link);
    request.algorithm = kBestAlgorithm;
    request.effort = SearchEffort::kQuick;
    const Source source = LoadSource("testdata/graphs/joint_layers.json", request).value();
    const Bytes all = Simulator(source.step()).Run(OwnOrder(source.step().joint())).value().peak;
    request.budget = Budget::Of(Bytes(all.count() * row.percent / 100));
    const PlanFigures quick = MakePlan(source, request, {}).value().figures;
    request.effort = SearchEffort::kNormal;
    const PlanFigures normal = MakePlan(source, request, {}).value().figures;
    CHECK(normal.overhead.count() <= quick.overhead.count());
    CHECK(normal.lower_bound_cost >= quick.lower_bound_cost);
  }
}

TEST_CASE("offload: best finds the least peak with copies, and a refusal names it") {
  PlanRequest request = OverLink("pcie4:1000,latency=1");
  request.algorithm = kBestAlgorithm;
  request.effort = SearchEffort::kQuick;
  const Source source = LoadSource("testdata/graphs/joint_small.json", request).value();
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  const Plan least = MakePlan(source, request, {}).value();
  CHECK(least.figures.peak == Bytes(12'000));
  CHECK(HasTransfers(least.schedule));
  CHECK(least.figures.certificate->peak.bytes == Bytes(12'000));
  CHECK(CheckPlan(source.step(), least).empty());
  request.budget = Budget::Of(Bytes(12'000));
  CHECK(MakePlan(source, request, {}).value().figures.overhead <= least.figures.overhead);
  request.budget = Budget::Of(Bytes(11'999));
  const Error refused = MakePlan(source, request, {}).error();
  CHECK(refused.code == ErrorCode::kInfeasible);
  CHECK(refused.remedy.settings.front().value == "12000");
  // The search within this budget comes no nearer than 16,000 bytes; others find less.
  request.budget = Budget::Of(Bytes(4'000));
  request.offload = ParseLink("pcie4:100,latency=1").value();
  const Source far = LoadSource("testdata/graphs/joint_small.json", request).value();
  CHECK(MakePlan(far, request, {}).error().remedy.settings.front().value == "12000");
}

TEST_CASE("offload: without an amount of memory, best is no worse than without a link") {
  int moving = 0;
  for (const std::string link : {"pcie4:1000,latency=1", "pcie4:30,latency=1", "pcie4:1"}) {
    CAPTURE(link);
    PlanRequest request = OverLink(link);
    request.algorithm = kBestAlgorithm;
    request.effort = SearchEffort::kQuick;
    PlanRequest plain = request;
    plain.offload.reset();
    const Source source = LoadSource("testdata/graphs/joint_small.json", request).value();
    for (const Budget::Kind kind :
         {Budget::Kind::kMin, Budget::Kind::kBalanced, Budget::Kind::kNone}) {
      CAPTURE(static_cast<int>(kind));
      request.budget = plain.budget = {kind, Bytes(0), 0};
      const PlanFigures with = MakePlan(source, request, {}).value().figures;
      const PlanFigures without = MakePlan(source, plain, {}).value().figures;
      moving += with.offload->transferred > Bytes(0) ? 1 : 0;
      if (kind == Budget::Kind::kBalanced) {
        const Balance balance{source.step().cost(), Bytes(0)};
        CHECK_FALSE(balance.IsBetter({without.peak, without.overhead}, {with.peak, with.overhead}));
      } else {
        CHECK(std::pair(with.peak, with.overhead) <= std::pair(without.peak, without.overhead));
      }
    }
  }
  CHECK(moving >= 2);
}

TEST_CASE("offload: decisions that need more of the host than is allowed are refused") {
  PlanRequest request = OverLink("pcie4");
  request.algorithm = std::string(kGivenAlgorithm);
  request.decisions =
      ReadDecisionsJson(ReadWholeFile("testdata/decisions/joint_small_offload.json").value(), "d")
          .value();
  const Source source = LoadSource("testdata/graphs/joint_small.json", request).value();
  request.host_budget = Bytes(8'000);
  CHECK(MakePlan(source, request, {}).value().figures.offload->host_peak == Bytes(8'000));
  request.host_budget = Bytes(7'999);
  const Error error = MakePlan(source, request, {}).error();
  CHECK(error.code == ErrorCode::kInfeasible);
  CHECK(error.remedy.settings.front().value == "8000");
}

// Each case has random steps, and the figures of another program that replays them; null if that
// program finds a rule broken.
TEST_CASE("offload: saved schedules have the figures that another program finds") {
  const auto cases =
      nlohmann::json::parse(ReadWholeFile("testdata/regress/offload_cases.json").value());
  CHECK(cases.size() == 20);
  for (size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    const auto& link = cases[i]["link"];
    PlanRequest request;
    request.algorithm = std::string(kGivenAlgorithm);
    request.offload =
        Link{link["link"], link["out_bytes_per_second"], link["in_bytes_per_second"],
             link["latency_ns"], link["duplex"] == "half" ? Duplex::kHalf : Duplex::kFull};
    request.decisions =
        ReadDecisionsJson(nlohmann::json{{"order", cases[i]["steps"]}}.dump(), "steps").value();
    const JointGraph graph = ReadJointGraphJson(cases[i]["graph"].dump(), "graph").value();
    const Result<Plan> plan = MakePlan(graph, request, {});
    const auto& want = cases[i]["want"];
    REQUIRE(plan.ok() != want.is_null());
    if (want.is_null()) continue;
    CHECK(plan->figures.peak.count() == want["peak_bytes"]);
    CHECK(plan->figures.offload->host_peak.count() == want["host_peak_bytes"]);
    CHECK((plan->figures.overhead + graph.cost()).count() == want["makespan"]);
    CHECK(plan->figures.offload->stall.count() == want["stall_cost"]);
    CHECK(plan->figures.offload->transferred.count() == want["transfer_bytes"]);
  }
}

TEST_CASE("offload: gradients that are added up in place stay, since a copy would meet the sum") {
  const PlanRequest request = OverLink("pcie4");
  const Source source = LoadSource("testdata/graphs/skips.json", request).value();
  const OffloadTerms terms = OffloadTermsOf(source.step(), request).value();
  const IdVector<ValueId, bool> movable = MovableValues(*source.joint);
  int held_back = 0;
  for (const ValueId id : movable.ids()) {
    CHECK((movable[id] || !terms.may_move[id]));
    held_back += movable[id] && !terms.may_move[id];
  }
  CHECK(held_back > 0);
}

}  // namespace ckplan
