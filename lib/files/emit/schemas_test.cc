#include "lib/files/emit/schemas.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lib/base/rng.h"
#include "lib/files/emit/json_compare.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/files/emit/json_plan.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/schema_validator.h"

namespace ckplan {
namespace {

using nlohmann::json;

SchemaValidator ValidatorOf(std::string_view name) {
  const EmbeddedSchema* embedded = FindSchema(name);
  REQUIRE(embedded != nullptr);
  return SchemaValidator(embedded->text);
}

// Returns JSON pointers to all values in a document.
void ListPlaces(const json& value, const json::json_pointer& at,
                std::vector<json::json_pointer>* places) {
  places->push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) ListPlaces(member, at / key, places);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) ListPlaces(value[i], at / i, places);
  }
}

// Returns whether the value is only for human readers, so that ReadPlanJson ignores it.
bool IsIgnored(const json::json_pointer& place) { return place.to_string().starts_with("/tool"); }

// Damages every value of `document` in turn. The reader must reject whatever the schema rejects,
// and require exactly the keys that the schema requires. Returns the number of rejected documents.
template <typename Reads, typename Skips>
int CompareWithReader(const SchemaValidator& judge, const json& document, Reads reads,
                      Skips skips) {
  std::vector<json::json_pointer> places;
  ListPlaces(document, json::json_pointer(), &places);
  int refused = 0;
  for (const json::json_pointer& place : places) {
    if (skips(place)) continue;
    CAPTURE(place.to_string());
    for (const json& replacement : {json("text"), json(-1), json(1.5), json(nullptr), json(true),
                                    json::array(), json::object()}) {
      json damaged = document;
      damaged[place] = replacement;
      CAPTURE(replacement.dump());
      if (judge.Accepts(damaged)) continue;
      ++refused;
      CHECK_FALSE(reads(damaged.dump()));
    }
    if (place.empty() || !document[place.parent_pointer()].is_object()) continue;
    json damaged = document;
    damaged[place.parent_pointer()].erase(place.back());
    CHECK(judge.Accepts(damaged) == reads(damaged.dump()));
  }
  return refused;
}

}  // namespace

TEST_CASE("schemas: the embedded ones equal those in the folder") {
  const std::filesystem::directory_iterator files("schemas");
  CHECK(static_cast<size_t>(std::distance(begin(files), end(files))) == EmbeddedSchemas().size());
  for (const EmbeddedSchema& schema : EmbeddedSchemas()) {
    CAPTURE(schema.name);
    std::ifstream file("schemas/" + std::string(schema.name) + ".schema.json");
    std::stringstream text;
    text << file.rdbuf();
    const std::string whole = text.str();
    REQUIRE_FALSE(whole.empty());
    // The text from lib/files/emit/table_fields.json replaces this.
    const std::string marker = "\"<table_fields>\": true";
    const size_t at = whole.find(marker);
    if (at == std::string::npos) {
      CHECK(whole == schema.text);
    } else {
      CHECK(schema.text.starts_with(whole.substr(0, at) + "\"keep\": "));
      CHECK(schema.text.ends_with(whole.substr(at + marker.size())));
      CHECK(schema.text.find("\"stage_cuts\": ") != std::string_view::npos);
      CHECK(schema.text.find('<') == std::string_view::npos);
    }
    CHECK(json::parse(schema.text)["$schema"] == "http://json-schema.org/draft-07/schema#");
  }
  CHECK(FindSchema("plan")->name == "plan");
  CHECK(FindSchema("plam") == nullptr);
}

TEST_CASE("schemas: every graph and every plan that we write is valid") {
  const SchemaValidator graph_judge = ValidatorOf("graph");
  const SchemaValidator plan_judge = ValidatorOf("plan");
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    CHECK(graph_judge.Accepts(json::parse(WriteGraphJson(graph))));
    CHECK(plan_judge.Accepts(json::parse(WritePlanJson(RandomPlan(rng, graph), graph))));
  }
}

TEST_CASE("schemas: every joint graph that we write is valid") {
  const SchemaValidator judge = ValidatorOf("joint");
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    CHECK(judge.Accepts(json::parse(WriteJointGraphJson(RandomJointGraph(rng)))));
  }
}

TEST_CASE("schemas: every comparison that we write is valid") {
  const SchemaValidator judge = ValidatorOf("compare");
  for (uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    const Plan plan = RandomPlan(rng, graph);
    const std::vector<ComparedRow> rows = {
        {"a", "heuristic", Bytes(30), plan, "", std::nullopt},
        {"b", "baseline", std::nullopt, std::nullopt, "too \"large\"", Bytes(20)}};
    const json text = json::parse(WriteCompareJson({plan.model, plan.request, Bytes(17)}, rows));
    CHECK(judge.Accepts(text));
    CHECK(text["rows"][0]["result"]["peak_bytes"] == plan.figures.peak.count());
    json damaged = text;
    damaged["rows"][0]["result"].erase("peak_bytes");
    CHECK_FALSE(judge.Accepts(damaged));
    damaged = text;
    damaged.erase("cost_unit");
    CHECK_FALSE(judge.Accepts(damaged));
    damaged = text;
    damaged["rows"][1]["least_bytes"] = "20";
    CHECK_FALSE(judge.Accepts(damaged));
  }
}

TEST_CASE("schemas: every difference that we write is valid") {
  const SchemaValidator judge = ValidatorOf("diff");
  size_t changes = 0, with_peaks = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph old_graph = RandomTensorGraph(rng);
    const TensorGraph new_graph = rng.Chance(50) ? old_graph : RandomTensorGraph(rng);
    const PlanDigest older = DigestOf(old_graph, RandomPlan(rng, old_graph));
    const PlanDigest newer = DigestOf(new_graph, RandomPlan(rng, new_graph));
    DiffSummary summary;
    const PlanDiff diff = DiffPlans(older, newer, {}, {}, &summary);
    const json text = json::parse(WriteDiffJson(older, newer, diff, summary));
    CHECK(judge.Accepts(text));
    REQUIRE(text["changes"].size() == diff.changes.size());
    changes += diff.changes.size();
    CHECK(text["rest_at_peak_bytes"].is_null() == !diff.rest.has_value());
    if (!diff.rest) continue;
    ++with_peaks;
    int64_t sum = 0;
    for (const json& change : text["changes"]) sum += change["at_peak_bytes"].get<int64_t>();
    for (const json& rest : text["rest_at_peak_bytes"]) sum += rest.get<int64_t>();
    CHECK(sum ==
          text["new"]["peak_bytes"].get<int64_t>() - text["old"]["peak_bytes"].get<int64_t>());
  }
  CHECK(changes > 500);
  CHECK(with_peaks > 20);
}

TEST_CASE("schemas: the difference's schema misses every key, and refuses other kinds of values") {
  const SchemaValidator judge = ValidatorOf("diff");
  Rng rng(1);
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  Plan plan = RandomPlan(rng, graph);
  plan.peak = RandomPeak(rng, graph);
  PlanDigest older = DigestOf(graph, plan);
  PlanDigest newer = older;
  older.rows[0].decision = {NodeAction::kKeep, 0, 0};
  newer.rows[0].decision = {NodeAction::kRecompute, 0, 1};
  DiffSummary summary;
  const PlanDiff diff = DiffPlans(older, newer, {}, {}, &summary);
  const json text = json::parse(WriteDiffJson(older, newer, diff, summary));
  REQUIRE(judge.Accepts(text));
  REQUIRE(text["changes"].size() == 1);
  std::vector<json::json_pointer> places;
  ListPlaces(text, json::json_pointer(), &places);
  for (const json::json_pointer& place : places) {
    CAPTURE(place.to_string());
    json damaged = text;
    damaged[place] = 1.5;  // No field has this type.
    CHECK_FALSE(judge.Accepts(damaged));
    if (place.empty() || !text[place.parent_pointer()].is_object()) continue;
    damaged = text;
    damaged[place.parent_pointer()].erase(place.back());
    // Plans with a budget have no curve.
    CHECK(judge.Accepts(damaged) == (place.to_string() == "/curve"));
  }
  json damaged = text;
  damaged["changes"][0]["sign"] = "*";
  CHECK_FALSE(judge.Accepts(damaged));
  damaged = text;
  damaged["old"]["peak_bytes"] = -1;
  CHECK_FALSE(judge.Accepts(damaged));
}

TEST_CASE("schemas: the plan's schema and its reader refuse the same damage") {
  const SchemaValidator judge = ValidatorOf("plan");
  Rng rng(1);
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3");
  Plan random = RandomPlan(rng, graph);
  random.peak = RandomPeak(rng, graph);
  const json plan = json::parse(WritePlanJson(random, graph));
  REQUIRE(judge.Accepts(plan));
  const auto reads = [&](const std::string& text) {
    return ReadPlanJson(text, graph, "p.json").ok();
  };
  CHECK(CompareWithReader(judge, plan, reads, IsIgnored) > 300);
}

TEST_CASE("schemas: the graph's schema and its reader refuse the same damage, in both forms") {
  const SchemaValidator judge = ValidatorOf("graph");
  const auto reads = [&](const std::string& text) { return ReadGraphJson(text, "g.json").ok(); };
  const auto none = [](const json::json_pointer&) { return false; };
  Rng rng(1);
  RandomGraphOptions options;
  options.nodes = 3;
  options.in_place = 100;
  const json full = json::parse(WriteGraphJson(RandomTensorGraph(rng, options)));
  REQUIRE(judge.Accepts(full));
  CHECK(CompareWithReader(judge, full, reads, none) > 100);
  const json minimal = json::parse(
      R"({"schema_version": "1.0", "name": "m", "edges": [[0, 1]],
          "nodes": [{"id": 0, "name": "a", "op": "x", "bytes": 4, "time": 1},
                    {"id": 1, "bytes": 2, "time": 3, "backward_time": 2, "backward_reads": [0]}]})");
  REQUIRE(judge.Accepts(minimal));
  CHECK(CompareWithReader(judge, minimal, reads, none) > 50);
}

TEST_CASE(
    "schemas: the joint graph's schema and its reader refuse the same damage, in both forms") {
  const SchemaValidator judge = ValidatorOf("joint");
  const auto reads = [&](const std::string& text) {
    return ReadJointGraphJson(text, "g.json").ok();
  };
  const auto none = [](const json::json_pointer&) { return false; };
  Rng rng(3);
  RandomJointOptions options;
  options.ops = 4;
  options.in_place = options.alias = 100;
  const json full = json::parse(WriteJointGraphJson(RandomJointGraph(rng, options)));
  REQUIRE(judge.Accepts(full));
  CHECK(CompareWithReader(judge, full, reads, none) > 100);
  const json minimal = json::parse(
      R"({"schema_version": "1.0", "kind": "joint", "name": "m", "results": [0],
          "ops": [{"name": "a", "bytes": 4, "time": 1, "reads": []},
                  {"bytes": 2, "time": 3, "reads": [0]}]})");
  REQUIRE(judge.Accepts(minimal));
  CHECK(CompareWithReader(judge, minimal, reads, none) > 30);
}

TEST_CASE("schemas: the schema of decisions and their reader refuse the same damage") {
  const SchemaValidator judge = ValidatorOf("decisions");
  const auto reads = [&](const std::string& text) { return ReadDecisionsJson(text, "d").ok(); };
  const auto none = [](const json::json_pointer&) { return false; };
  int refused = 0;
  for (const char* const text :
       {R"({"schema_version": "1.0", "kept": ["a", 7]})", R"({"checkpoints": ["a"]})",
        R"({"mirror_counts": {"a": 2, "b": 0}})", R"({"lower_sets": [["a"], [0, "c"]]})",
        R"({"order": [["f", "a"], ["loss"], ["b", 0], ["free", "t"]]})"}) {
    CAPTURE(std::string(text));
    const json decisions = json::parse(text);
    REQUIRE(judge.Accepts(decisions));
    REQUIRE(reads(text));
    refused += CompareWithReader(judge, decisions, reads, none);
  }
  CHECK(refused > 100);
  for (const char* const text : {"{}", R"({"kept": [], "checkpoints": []})", R"({"kept": [""]})"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(judge.Accepts(json::parse(text)));
    CHECK_FALSE(reads(text));
  }
}

}  // namespace ckplan
