#include "lib/files/emit/json_plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/testing/damaged_text.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

std::string PlanFaults(const std::string& text, const TensorGraph& graph) {
  return FaultsOf(ReadPlanJson(text, graph, "p.json"));
}

// a ──▶ b, where b is recomputed unnecessarily.
Plan SmallPlan() {
  Plan plan;
  plan.request.algorithm = "chen-sqrt";
  plan.request.budget = Budget::Of(Bytes(9));
  plan.request.cost_model = "unit";
  plan.request.cost_unit = "1";
  plan.request.objective = Objective::kTime;
  plan.request.dims = {{"N", 4}};
  plan.request.input_shapes = {{"x", {2, 3}}};
  plan.model = {"small.onnx", "00ff", {{"", 17}}};
  plan.figures.guarantee = "none";
  plan.figures.peak = Bytes(8);
  plan.figures.paper.peak = Bytes(6);
  plan.decisions.push_back({NodeAction::kKeep, 0, 0});
  plan.decisions.push_back({NodeAction::kRecompute, 1, 1});
  plan.labels.push_back({"a", "", {{0, "a", Bytes(4)}}});
  plan.labels.push_back({"b", "", {{1, "b", Bytes(2)}}});
  const NodeId a(0), b(1);
  plan.schedule.steps = {Step::Forward(a), Step::Forward(b),  Step::Loss(),
                         Step::Forward(b), Step::Backward(b), Step::Backward(a)};
  plan.peak =
      PeakMoment{4,
                 {LiveBuffer::Tensor(TensorId(0), Bytes(4)),
                  LiveBuffer::Gradient(TensorId(1), Bytes(2)), LiveBuffer::Workspace(b, Bytes(2))}};
  plan.offsets = {Bytes(0), Bytes(4)};
  return plan;
}

const char kSmallText[] = R"({
  "schema_version": "1.0",
  "tool": {"name": "ckplan", "version": "VERSION"},
  "model": {
    "name": "small.onnx",
    "sha256": "00ff",
    "dims": {"N": 4},
    "opsets": {"": 17},
    "input_shapes": {"x": [2, 3]}
  },
  "request": {
    "algorithm": "chen-sqrt",
    "objective": "time",
    "budget_bytes": 9,
    "paper_budget_bytes": null,
    "cost_model": "unit",
    "cost_unit": "1",
    "autograd": "minimal",
    "optimizer": "sgd",
    "align_bytes": 1,
    "liveness": true
  },
  "result": {
    "status": "feasible",
    "guarantee": "none",
    "peak_bytes": 8,
    "baseline_peak_bytes": 0,
    "arena_bytes": 0,
    "overhead_cost": 0,
    "forward_cost": 0,
    "backward_cost": 0,
    "lower_bound_cost": null,
    "constant_bytes": {"parameters": 0, "parameter_gradients": 0, "optimizer_state": 0, "inputs": 0},
    "paper": {"budget_bytes": null, "peak_bytes": 6, "overhead_cost": 0}
  },
  "nodes": [
    {"id": 0, "name": "a", "op": "", "action": "keep", "segment": 0, "recompute_count": 0, "outputs": [{"id": 0, "name": "a", "bytes": 4}]},
    {"id": 1, "name": "b", "op": "", "action": "recompute", "segment": 1, "recompute_count": 1, "outputs": [{"id": 1, "name": "b", "bytes": 2}]}
  ],
  "schedule": {
    "frees": "liveness",
    "steps": [
      ["f", 0], ["f", 1], ["loss"], ["f", 1], ["b", 1], ["b", 0]
    ]
  },
  "peak": {
    "step": 4,
    "live": [
      ["t", 0, 4], ["g", 1, 2], ["w", 1, 2]
    ]
  },
  "arena": {
    "offset_bytes": [
      0, 4
    ]
  }
}
)";

}  // namespace

TEST_CASE("json plan: a digest equals what the plan and its graph say together") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Plan plan = RandomPlan(rng, graph);
    const PlanDigest read = *ReadPlanDigest(WritePlanJson(plan, graph), "p.json");
    const PlanDigest made = DigestOf(graph, plan);
    CHECK(read.figures == made.figures);
    CHECK(read.request == made.request);
    CHECK(read.model == made.model);
    REQUIRE(read.rows.size() == made.rows.size());
    for (size_t i = 0; i < read.rows.size(); ++i) {
      CHECK(read.rows[i].name == made.rows[i].name);
      CHECK(read.rows[i].tensor == made.rows[i].tensor);
      CHECK(read.rows[i].op == made.rows[i].op);
      CHECK(read.rows[i].at_peak == made.rows[i].at_peak);
      CHECK(read.rows[i].decision == made.rows[i].decision);
      CHECK(read.rows[i].bytes == made.rows[i].bytes);
    }
    REQUIRE(read.rest.has_value() == made.rest.has_value());
    if (!read.rest) continue;
    CHECK(read.rest->gradients == made.rest->gradients);
    CHECK(read.rest->workspace == made.rest->workspace);
  }
}

TEST_CASE("json plan: a digest with impossible sums is refused") {
  const struct {
    std::string from, to, fault;
  } kRows[] = {
      {"\"peak_bytes\": 8", "\"peak_bytes\": 9",
       "/peak/live: these buffers add up to 1 bytes less than peak_bytes"},
      {"\"peak_bytes\": 8", "\"peak_bytes\": 7",
       "/peak/live/2: these buffers add up to more than peak_bytes"},
      {"[\"w\", 1, 2]", "[\"w\", 1, 9223372036854775807]",
       "/peak/live/2: these buffers add up to more than peak_bytes"},
      {"[\"t\", 0, 4]", "[\"t\", 9, 4]", "/peak/live/0/1: no node outputs this tensor"},
      {"\"bytes\": 2}", "\"bytes\": 72057594037927936}", "/nodes/1/outputs/0/bytes"},
  };
  REQUIRE(ReadPlanDigest(kSmallText, "p.json").ok());
  for (const auto& row : kRows) {
    CAPTURE(row.to);
    const Result<PlanDigest> digest =
        ReadPlanDigest(Replaced(kSmallText, row.from, row.to), "p.json");
    REQUIRE_FALSE(digest.ok());
    CHECK(digest.error().code == ErrorCode::kInvalidInput);
    CHECK(digest.error().message.find(row.fault) != std::string::npos);
  }
}

TEST_CASE("plan.json: read(write(plan)) is the plan, and writing it again gives the same bytes") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Plan plan = RandomPlan(rng, graph);
    const std::string text = WritePlanJson(plan, graph);
    const Result<Plan> again = ReadPlanJson(text, graph, "p.json");
    REQUIRE(again.ok());
    CHECK(*again == plan);
    CHECK(WritePlanJson(*again, graph) == text);
    const Result<PlanHeader> header = ReadPlanHeader(text, "p.json");
    CHECK(header->request == plan.request);
    CHECK(header->model == plan.model);
  }
}

TEST_CASE("plan.json: the written form, to the byte") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  const std::string written = WritePlanJson(SmallPlan(), graph);
  const std::string version = nlohmann::json::parse(written)["tool"]["version"];
  CHECK_FALSE(version.empty());
  CHECK(written == Replaced(kSmallText, "VERSION", version));
}

TEST_CASE("plan.json: a plan of ten thousand nodes stays below 5 MB") {
  Rng rng(1);
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t v = 0; v < 10'000; ++v) {
    const std::string name = fmt::format("/model/layers.{}/self_attn/q_proj/MatMul_output_0", v);
    vertices.push_back({name, Bytes(123'456'789), Cost(1'234'567)});
    if (v > 0) edges.emplace_back(v - 1, v);
  }
  const TensorGraph graph = GraphFromVertices("large", vertices, edges);
  Plan plan = RandomPlan(rng, graph);
  plan.offsets.assign(50'000, Bytes(12'345'678'901));
  plan.peak.emplace();
  for (const TensorId id : graph.tensors().ids()) {
    plan.peak->live.push_back(LiveBuffer::Tensor(id, Bytes(123'456'789)));
  }
  CHECK(plan.schedule.steps.size() > 30'000);
  CHECK(WritePlanJson(plan, graph).size() < 5'000'000);
}

TEST_CASE("plan.json: a reader accepts a missing peak or writer, and ignores new keys") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  nlohmann::json json = nlohmann::json::parse(WritePlanJson(SmallPlan(), graph));
  for (const char* key : {"tool", "peak"}) json.erase(key);
  json["unknown"] = {{"later", 1.5}};
  json["schema_version"] = "1.9";
  Plan expected = SmallPlan();
  expected.peak.reset();
  CHECK(*ReadPlanJson(json.dump(), graph, "p.json") == expected);
}

TEST_CASE("plan.json: every fixed key is missed by name") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  const nlohmann::json json = nlohmann::json::parse(WritePlanJson(SmallPlan(), graph));
  for (const char* path : {"/schema_version",
                           "/model",
                           "/model/name",
                           "/model/sha256",
                           "/model/dims",
                           "/model/opsets",
                           "/model/input_shapes",
                           "/request",
                           "/request/algorithm",
                           "/request/objective",
                           "/request/budget_bytes",
                           "/request/paper_budget_bytes",
                           "/request/cost_model",
                           "/request/cost_unit",
                           "/request/autograd",
                           "/request/optimizer",
                           "/request/align_bytes",
                           "/request/liveness",
                           "/result",
                           "/result/status",
                           "/result/guarantee",
                           "/result/peak_bytes",
                           "/result/baseline_peak_bytes",
                           "/result/arena_bytes",
                           "/result/overhead_cost",
                           "/result/forward_cost",
                           "/result/backward_cost",
                           "/result/lower_bound_cost",
                           "/result/constant_bytes",
                           "/result/constant_bytes/parameters",
                           "/result/constant_bytes/parameter_gradients",
                           "/result/constant_bytes/optimizer_state",
                           "/result/constant_bytes/inputs",
                           "/result/paper",
                           "/result/paper/budget_bytes",
                           "/result/paper/peak_bytes",
                           "/result/paper/overhead_cost",
                           "/nodes",
                           "/nodes/1/id",
                           "/nodes/1/name",
                           "/nodes/1/op",
                           "/nodes/1/outputs",
                           "/nodes/1/outputs/0/id",
                           "/nodes/1/outputs/0/name",
                           "/nodes/1/outputs/0/bytes",
                           "/nodes/1/action",
                           "/nodes/1/segment",
                           "/nodes/1/recompute_count",
                           "/schedule",
                           "/schedule/frees",
                           "/schedule/steps",
                           "/arena",
                           "/arena/offset_bytes",
                           "/peak/step",
                           "/peak/live"}) {
    CAPTURE(path);
    const nlohmann::json::json_pointer pointer{std::string(path)};
    nlohmann::json damaged = json;
    damaged[pointer.parent_pointer()].erase(pointer.back());
    const std::string parent =
        pointer.parent_pointer().empty() ? "/" : pointer.parent_pointer().to_string();
    const std::string fault = parent + ": the key \"" + pointer.back() + "\" is missing";
    CHECK(PlanFaults(damaged.dump(), graph) == "p.json: " + fault);
  }
}

TEST_CASE("plan.json: faults are reported with their places") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  const struct {
    std::string from, to, fault;
  } kRows[] = {
      {"\"1.0\"", "\"2.0\"",
       "p.json: /schema_version: unknown version \"2.0\"; this ckplan reads 1.x"},
      {"\"time\"", "\"speed\"",
       "/request/objective: \"speed\" is unknown; it must be one of: auto, time, memory"},
      {"\"budget_bytes\": 9", "\"budget_bytes\": 9.0",
       "/request/budget_bytes: is a number that is no"},
      {"\"budget_bytes\": 9", "\"budget_bytes\": -9", "/request/budget_bytes: -9 is out of range"},
      {"\"align_bytes\": 1", "\"align_bytes\": 0", "/request/align_bytes: 0 is out of range"},
      {"\"feasible\"", "\"best\"", "/result/status: \"best\" is unknown"},
      {"\"segment\": 1", "\"segment\": 2147483648", "/nodes/1/segment: 2147483648 is out of range"},
      {"\"keep\"", "\"drop\"", "/nodes/0/action: \"drop\" is unknown"},
      {"\"id\": 1, \"name\": \"b\", \"op\"", "\"id\": 0, \"op\"",
       "/nodes/1: this node already has a row"},
      {"\"id\": 1, \"name\": \"b\", \"op\"", "\"id\": 8, \"op\"",
       "/nodes/1/id: the graph \"text\" has no node 8; the plan is for another graph"},
      {"[\"loss\"]", "[\"loss\", 1]", "/schedule/steps/2: has 2 members, must have 1"},
      {"[\"loss\"]", "[]", "/schedule/steps/2: member 0 is missing"},
      {"[\"b\", 1]", "[\"b\"]", "/schedule/steps/4: member 1 is missing"},
      {"[\"b\", 1]", "[\"x\", 1]", "/schedule/steps/4/0: \"x\" is unknown"},
      {"[\"b\", 1]", "[\"b\", 2]", "/schedule/steps/4/1: the graph \"text\" has no node 2"},
      {"[\"b\", 1]", "[\"free\", 2]", "/schedule/steps/4/1: the graph \"text\" has no tensor 2"},
      {"[\"t\", 0, 4]", "[\"t\", 0]", "/peak/live/0: member 2 is missing"},
      {"[\"t\", 0, 4]", "[\"t\", 0, 4, 4]", "/peak/live/0: has 4 members, must have 3"},
      {"[\"t\", 0, 4]", "[\"f\", 0, 4]", "/peak/live/0/0: \"f\" is unknown"},
      {"[\"g\", 1, 2]", "[\"g\", 7, 2]", "/peak/live/1/1: the graph \"text\" has no tensor 7"},
      {"[\"w\", 1, 2]", "[\"w\", 7, 2]", "/peak/live/2/1: the graph \"text\" has no node 7"},
      {"[\"w\", 1, 2]", "[\"w\", 1, -2]", "/peak/live/2/2: -2 is out of range"},
      {"\"N\": 4", "\"N\": \"4\"", "/model/dims/N: is a string, must be an integer"},
      {"[2, 3]", "[2, null]", "/model/input_shapes/x/1: is null, must be an integer"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.to);
    const std::string faults = PlanFaults(Replaced(kSmallText, row.from, row.to), graph);
    CAPTURE(faults);
    CHECK(faults.find(row.fault) != std::string::npos);
  }
}

TEST_CASE("plan.json: a plan for a graph of another size says so first") {
  const TensorGraph larger = GraphFromText("a:4@1 -> b:2@3 -> c:1@1");
  CHECK(PlanFaults(kSmallText, larger) ==
        "p.json: /nodes: has 2 rows, but the graph \"text\" has 3 nodes; the plan is for another "
        "graph");
}

TEST_CASE("plan.json: rows that are not in the order of the graph do not pass as its rows") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1@1");
  Rng rng(3);
  auto file = nlohmann::json::parse(WritePlanJson(RandomPlan(rng, graph), graph));
  std::swap(file["nodes"][1], file["nodes"][2]);
  const Result<Plan> plan = ReadPlanJson(file.dump(), graph, "p.json");
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().code == ErrorCode::kCheckFailed);
  CHECK(plan.error().message ==
        "p.json: /nodes/1 is the row of node 2, expected 1: rows must be in the order of "
        "the graph");
}

TEST_CASE("plan.json: an unknown major version is the only fault of a file") {
  CHECK(PlanFaults(R"({"schema_version": "2.0"})", GraphFromText("a:1@1")).find('\n') ==
        std::string::npos);
  CHECK_FALSE(ReadPlanHeader(R"({"schema_version": "2.0"})", "p.json").ok());
}

TEST_CASE("plan.json: cut off anywhere, it is an error and nothing else") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  const std::string text = kSmallText;
  REQUIRE(ReadPlanJson(text, graph, "p.json").ok());
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(ReadPlanJson(text.substr(0, length), graph, "p.json").ok());
    CHECK_FALSE(ReadPlanHeader(text.substr(0, length), "p.json").ok());
  }
}

TEST_CASE("plan.json: random damage is an error or another plan, never a crash") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  const PlanDigest sound = *ReadPlanDigest(kSmallText, "p.json");
  int errors = 0, plans = 0, digests = 0;
  for (uint64_t seed = 0; seed < Instances(8000); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::string text = DamageRandomly(rng, kSmallText);
    if (const Result<PlanDigest> digest = ReadPlanDigest(text, "p.json"); digest.ok()) {
      ++digests;
      const PlanDiff diff = DiffPlans(sound, *digest);
      Bytes sum = diff.rest ? diff.rest->sum() : digest->figures.peak - sound.figures.peak;
      for (const NodeChange& change : diff.changes) sum += change.at_peak;
      CHECK(sum == digest->figures.peak - sound.figures.peak);
    }
    const Result<Plan> plan = ReadPlanJson(text, graph, "p.json");
    if (!plan.ok()) {
      ++errors;
      CHECK(plan.error().code == ErrorCode::kInvalidInput);
      CHECK(plan.error().message.find("p.json: ") == 0);
    } else {
      ++plans;
      const std::string written = WritePlanJson(*plan, graph);
      CHECK(*ReadPlanJson(written, graph, "p.json") == *plan);
    }
  }
  CHECK((errors > Instances(1000) && plans > Instances(100) && digests > Instances(100)));
}

}  // namespace ckplan
