// Tests that the JSON of commands conforms to the schemas that `ckplan schema` prints.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/testing/work_folder.h"
#include "lib/planning/runtimes/region_class.h"
#include "lib/testing/schema_validator.h"

namespace ckplan {
namespace {

std::string OutputOf(const WorkFolder& workplace, const std::string& command) {
  return workplace.Run({command, "", "", {}, Streams::kApart}).out;
}

// The judge must accept the document, but not without one of its keys, nor with null as a key's
// value.
void CheckFits(const SchemaValidator& judge, const nlohmann::json& document) {
  CHECK(judge.Accepts(document));
  for (const auto& field : document.items()) {
    const std::string& key = field.key();
    CAPTURE(key);
    nlohmann::json damaged = document;
    damaged.erase(key);
    CHECK_FALSE(judge.Accepts(damaged));
    damaged[key] = nullptr;
    CHECK_FALSE(judge.Accepts(damaged));
  }
}

TEST_CASE("check: its JSON conforms to its schema, which requires every key") {
  const WorkFolder workplace;
  const std::string graph = "testdata/graphs/skips.json";
  OutputOf(workplace, "ckplan " + graph + " -a exact-dp -b 90% -q -o plan.json");
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema check"));
  OutputOf(workplace, "sed 's/\"peak_bytes\": 20000/\"peak_bytes\": 1/' plan.json >damaged.json");
  for (const char* const arguments :
       {"plan.json", "plan.json --fail-on 'peak>1KiB' --fail-on 'overhead>50%'", "damaged.json"}) {
    CAPTURE(arguments);
    const std::string text =
        OutputOf(workplace, "ckplan check --format json " + std::string(arguments) + " " + graph);
    CheckFits(judge, nlohmann::json::parse(text));
  }
  const std::string several = OutputOf(
      workplace, "ckplan check --format json plan.json absent.json plan.json --model " + graph);
  const auto verdicts = nlohmann::json::parse(several);
  REQUIRE(verdicts.size() == 3);
  CHECK(judge.Accepts(verdicts));
  for (size_t plan = 0; plan < verdicts.size(); ++plan) {
    CAPTURE(plan);
    for (const auto& field : verdicts[plan].items()) {
      CAPTURE(field.key());
      nlohmann::json damaged = verdicts;
      damaged[plan].erase(field.key());
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

TEST_CASE("modules: its JSON conforms to its schema, which requires every key") {
  const WorkFolder workplace;
  const std::string model = "testdata/models/resnet18.modules.onnx";
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema modules"));
  for (const char* const plan : {"-a keep-all", "-a chen-sqrt"}) {
    CAPTURE(plan);
    OutputOf(workplace, "ckplan " + model + " -D N=4 -q -o plan.json " + plan);
    const auto found = nlohmann::json::parse(
        OutputOf(workplace, "ckplan modules plan.json --format json " + model));
    CheckFits(judge, found);
    for (nlohmann::json damaged = found; !damaged["modules"].empty(); damaged["modules"].erase(0)) {
      damaged["modules"][0].erase("path");
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

TEST_CASE("modules --for: its JSON conforms to its schema for every kind, and requires every key") {
  const WorkFolder workplace;
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema runtime"));
  const std::string graph = "testdata/graphs/joint_layers.json";
  OutputOf(workplace, "ckplan " + graph + " --budget 70% -q -o plan.json");
  for (const RuntimeKindInfo& info : AllRuntimeKinds()) {
    CAPTURE(info.name);
    const std::string kind(info.name);
    const auto found = nlohmann::json::parse(
        OutputOf(workplace, "ckplan modules plan.json --format json --for " + kind + " " + graph));
    CheckFits(judge, found);
    REQUIRE_FALSE(found["regions"].empty());
    nlohmann::json damaged = found;
    damaged["regions"][0].erase("modules");
    CHECK_FALSE(judge.Accepts(damaged));
  }
}

TEST_CASE("messages: every line on standard error fits its schema, whatever happens") {
  const WorkFolder workplace;
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema message"));
  OutputOf(workplace, "ckplan testdata/graphs/skips.json -a exact-dp -b 90% -q -o plan.json");
  const std::string annotated = "check plan.json testdata/graphs/skips.json ";
  for (const std::string& arguments : std::vector<std::string>{
           "testdata/graphs/skips.json -b 12", "testdata/models/tiny_mlp.onnx -b 60%",
           "testdata/graphs/skips.json -b 60% --no-such", "no-such-word", "", "absent.onnx -b 60%",
           "testdata/graphs/skips.json -b 60% -o net.json --emit dot=net.dot",
           annotated + "--fail-on 'peak>1KiB'", annotated + "--fail-on 'peak>10%' -q",
           "check plan.json absent.json plan.json --model testdata/graphs/skips.json",
           "compare testdata/graphs/skips.json -a chen -b 1kB",
           "fit testdata/models/alexnet.onnx -a chen-sqrt --memory 600MiB",
           "fit testdata/models/resnet152.onnx --memory 24GiB --time-limit 1ms", "devices no-such",
           "schema no-such", "algos --format xml"}) {
    CAPTURE(arguments);
    const ProgramResult result =
        workplace.Run({"ckplan " + arguments + " --messages=json", "", "", {}, Streams::kApart});
    nlohmann::json last;
    for (size_t begin = 0; begin < result.err.size();) {
      const size_t end = result.err.find('\n', begin);
      REQUIRE(end != std::string::npos);
      last = nlohmann::json::parse(result.err.substr(begin, end - begin));
      CAPTURE(last.dump());
      CHECK(judge.Accepts(last));
      begin = end + 1;
    }
    REQUIRE(last.is_object());
    CHECK((result.status == 0) == (last["level"] != "error"));
    if (result.status != 0) CHECK(last["exit_code"] == result.status);
    for (const auto& field : last.items()) {
      CAPTURE(field.key());
      nlohmann::json damaged = last;
      damaged.erase(field.key());
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

TEST_CASE("devices: its JSON fits its schema, which asks for every key") {
  const WorkFolder workplace;
  const auto found = nlohmann::json::parse(OutputOf(workplace, "ckplan devices --format json"));
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema devices"));
  CheckFits(judge, found);
  for (const auto& field : found["devices"][0].items()) {
    CAPTURE(field.key());
    nlohmann::json damaged = found;
    damaged["devices"][0].erase(field.key());
    CHECK_FALSE(judge.Accepts(damaged));
  }
}

TEST_CASE("algos: its JSON fits its schema, which asks for every key") {
  const WorkFolder workplace;
  const auto found = nlohmann::json::parse(OutputOf(workplace, "ckplan algos --format json"));
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema algos"));
  CHECK(judge.Accepts(found));
  for (const auto& field : found.at(0).items()) {
    CAPTURE(field.key());
    nlohmann::json damaged = found;
    damaged[0].erase(field.key());
    CHECK_FALSE(judge.Accepts(damaged));
  }
}

// The schema must refuse null for each key of the object, and require each key but the optional
// ones.
void CheckNeeds(const SchemaValidator& judge, const nlohmann::json& document,
                const nlohmann::json::json_pointer& at, const std::set<std::string>& optional) {
  for (const auto& field : document[at].items()) {
    CAPTURE(field.key());
    nlohmann::json damaged = document;
    damaged[at][field.key()] = nullptr;
    CHECK_FALSE(judge.Accepts(damaged));
    damaged[at].erase(field.key());
    CHECK(judge.Accepts(damaged) == optional.contains(field.key()));
  }
}

TEST_CASE("inspect: its JSON fits its schema, for models, graphs, joint graphs and several") {
  const WorkFolder workplace;
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema inspect"));
  const std::set<std::string> optional = {
      "prediction_bytes", "limits",        "sharding",   "gradients",         "freeze",
      "pipeline",         "micro_batches", "stage_cuts", "pipeline_schedule", "unsharded",
      "activation_type",  "fused",         "restored"};
  using Pointer = nlohmann::json::json_pointer;
  for (const char* const arguments :
       {"testdata/models/tiny_mlp.onnx -D N=8", "testdata/graphs/chain.json",
        "testdata/graphs/joint_net.json", "testdata/graphs/chain.json --fail-on 'peak>1KiB'",
        "testdata/models/tiny_mlp.onnx -D N=8 --shard zero2:4 --freeze w0 --activation-type bf16",
        "testdata/models/tiny_mlp.onnx -D N=8 --gradients arriving",
        "testdata/models/tiny_mlp.onnx -D N=8 --pipeline 2/1 --micro-batches 4 --schedule gpipe "
        "--stage-cuts gemm3"}) {
    CAPTURE(arguments);
    const auto found = nlohmann::json::parse(
        OutputOf(workplace, "ckplan inspect --format json " + std::string(arguments)));
    CHECK(judge.Accepts(found));
    CheckNeeds(judge, found, Pointer(), optional);
    CheckNeeds(judge, found, Pointer("/constant_bytes"), optional);
    CheckNeeds(judge, found, Pointer("/operators/0"), {});
    CheckNeeds(judge, found, Pointer("/largest_tensors/0"), {});
  }
  const auto several = nlohmann::json::parse(OutputOf(
      workplace,
      "ckplan inspect --format json testdata/graphs/chain.json testdata/graphs/joint_net.json"));
  REQUIRE(several.size() == 2);
  CHECK(judge.Accepts(several));
  CheckNeeds(judge, several, Pointer("/1"), optional);
}

// The schema must also refuse a wrong value for each key of each row.
void CheckRows(const SchemaValidator& judge, const nlohmann::json& document) {
  REQUIRE_FALSE(document["rows"].empty());
  for (size_t row = 0; row < document["rows"].size(); ++row) {
    CAPTURE(row);
    for (const auto& field : document["rows"][row].items()) {
      CAPTURE(field.key());
      nlohmann::json damaged = document;
      damaged["rows"][row][field.key()] = nlohmann::json::array({"nothing is so"});
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

TEST_CASE("fit: its JSON conforms to its schema, whether anything fits or not") {
  const WorkFolder workplace;
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema fit"));
  for (const char* const arguments :
       {"testdata/models/alexnet.onnx --memory rtx4090 --added-time 0,10",
        "testdata/models/alexnet.onnx --memory 1.2GiB --reserve 1GiB --optimizer adam"}) {
    CAPTURE(arguments);
    const auto found = nlohmann::json::parse(
        OutputOf(workplace, "ckplan fit --format json -a chen-sqrt " + std::string(arguments)));
    CHECK(judge.Accepts(found));
    for (const char* const key : {"model", "dim", "memory_bytes", "rows", "throughput_unit"}) {
      nlohmann::json damaged = found;
      damaged.erase(key);
      CHECK_FALSE(judge.Accepts(damaged));
    }
    CheckRows(judge, found);
  }
}

TEST_CASE(
    "pareto and compare: their JSON conforms to its schemas, and each row says what it is about") {
  const WorkFolder workplace;
  const std::string model = " testdata/models/tiny_mlp.onnx --format json -D N=";
  const auto curve = nlohmann::json::parse(
      OutputOf(workplace, "ckplan pareto -a chen-sqrt,exact-dp" + model + "8,16"));
  CheckFits(SchemaValidator(OutputOf(workplace, "ckplan schema pareto")), curve);
  CheckRows(SchemaValidator(OutputOf(workplace, "ckplan schema pareto")), curve);
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema compare"));
  for (const char* const budget : {"-b 70%", "-b min", ""}) {
    CAPTURE(budget);
    const auto table = nlohmann::json::parse(
        OutputOf(workplace, "ckplan compare -a chen,keep-all,exact-dp" + model + "8 " + budget));
    CheckFits(judge, table);
    CheckRows(judge, table);
    for (const auto& row : table["rows"]) {
      CHECK(row["model"] == "tiny_mlp.onnx");
      CHECK(row["dims"] == nlohmann::json{{"N", 8}});
      CHECK(row["budget_bytes"].is_null() == std::string(budget).empty());
      if (!row["result"].is_null() && !row["budget_bytes"].is_null()) {
        CHECK(row["result"]["budget_bytes"] == row["budget_bytes"]);
      }
    }
  }
}

TEST_CASE("compare: its JSON of several models, sizes and budgets fits its schema") {
  const WorkFolder workplace;
  const SchemaValidator judge(OutputOf(workplace, "ckplan schema compare"));
  const auto printed = [&](const std::string& arguments) {
    return nlohmann::json::parse(
        OutputOf(workplace, "ckplan compare -a chen,keep-all --format json " + arguments));
  };
  const auto one = printed("testdata/models/tiny_mlp.onnx -D N=8 --budget-total 99%,95%");
  CheckFits(judge, one);
  CheckRows(judge, one);
  REQUIRE(one["rows"].size() == 4);
  CHECK(one["rows"][1]["total_budget"] == "99%");
  CHECK(one["rows"][2]["total_budget"] == "95%");

  const auto several = printed(
      "testdata/models/tiny_mlp.onnx absent.onnx testdata/graphs/skips.json -D N=8,16 -b 70%");
  REQUIRE(several.size() == 5);
  CHECK(judge.Accepts(several));
  CHECK(several[1]["rows"][0]["dims"] == nlohmann::json{{"N", 16}});
  CHECK_FALSE(several[1]["rows"][0].contains("budget"));
  CHECK(several[2]["model"] == nlohmann::json{{"name", "absent.onnx"}});
  for (const size_t at : {size_t{0}, size_t{2}, size_t{4}}) {
    CAPTURE(at);
    for (const auto& field : several[at].items()) {
      CAPTURE(field.key());
      nlohmann::json damaged = several;
      damaged[at].erase(field.key());
      CHECK_FALSE(judge.Accepts(damaged));
      damaged[at][field.key()] = nullptr;
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
  CHECK_FALSE(judge.Accepts(several[2]));  // A single model that cannot be read has no document.
}

// Checks that the document or its rows have the patterns, and that the schema accepts only
// patterns.
void CheckPatterns(const SchemaValidator& judge, const nlohmann::json& document, bool is_in_rows) {
  CHECK(judge.Accepts(document));
  for (const char* const key : {"keep", "never_rerun", "freeze"}) {
    CAPTURE(key);
    nlohmann::json damaged = document;
    nlohmann::json& holder = is_in_rows ? damaged["rows"][0] : damaged;
    CHECK(holder[key].is_array());
    for (const nlohmann::json& wrong : {nlohmann::json("x"), nlohmann::json::array()}) {
      holder[key] = wrong;
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

using DocumentCheck = void (*)(const SchemaValidator& judge, const nlohmann::json& document,
                               bool is_in_rows);

// Checks the JSON of these commands with the flags against their schemas. `check` learns whether
// the settings that all plans share are in each row or in the document.
void CheckTables(const std::string& flags, DocumentCheck check) {
  const WorkFolder workplace;
  const auto judge = [&](const std::string& name) {
    return SchemaValidator(OutputOf(workplace, "ckplan schema " + name));
  };
  const auto printed = [&](const std::string& command) {
    return nlohmann::json::parse(OutputOf(
        workplace, "ckplan " + command +
                       " testdata/models/tiny_mlp.onnx --format json -a chen-sqrt " + flags));
  };
  check(judge("fit"), printed("fit --memory 1MiB --reserve 0"), /*is_in_rows=*/false);
  check(judge("pareto"), printed("pareto -D N=8"), /*is_in_rows=*/true);
  check(judge("compare"), printed("compare -D N=8"), /*is_in_rows=*/true);
}

TEST_CASE("fit, pareto and compare: their JSON has the constraints of its plans") {
  CheckTables("--keep op:Gemm --never-rerun '*' --freeze w0", CheckPatterns);
}

// Checks that the document or its rows have the stage, and that the schema accepts only stages.
void CheckStage(const SchemaValidator& judge, const nlohmann::json& document, bool is_in_rows) {
  CHECK(judge.Accepts(document));
  nlohmann::json damaged = document;
  nlohmann::json& holder = is_in_rows ? damaged["rows"][0] : damaged;
  CHECK(holder["pipeline"] == nlohmann::json{{"stages", 2}, {"index", 1}});
  CHECK(holder["micro_batches"] == 4);
  CHECK(holder["pipeline_schedule"] == "gpipe");
  CHECK(holder["stage_cuts"] == nlohmann::json{"gemm3"});
  CHECK(holder["sharding"] == nlohmann::json{{"system", "zero2"}, {"devices", 4}});
  for (const char* const key : {"pipeline", "pipeline_schedule", "stage_cuts", "sharding"}) {
    CAPTURE(key);
    const nlohmann::json right = holder[key];
    holder[key] = "x";
    CHECK_FALSE(judge.Accepts(damaged));
    holder[key] = right;
  }
}

TEST_CASE("fit, pareto and compare: their JSON has the device of its plans") {
  CheckTables(
      "--pipeline 2/1 --micro-batches 4 --schedule gpipe --stage-cuts gemm3 --shard zero2:4",
      CheckStage);
}

// Checks that the document or its rows have the link and the rows the peak on the host, and that
// the schema accepts only these.
void CheckLink(const SchemaValidator& judge, const nlohmann::json& document, bool is_in_rows) {
  CHECK(judge.Accepts(document));
  for (const auto& wrong : {nlohmann::json("x"), nlohmann::json(-1)}) {
    nlohmann::json damaged = document;
    nlohmann::json& row = damaged["rows"].back();
    nlohmann::json& host_peak = (row.contains("result") ? row["result"] : row)["host_peak_bytes"];
    CHECK(host_peak == 0);  // chen-sqrt moves nothing.
    host_peak = wrong;
    CHECK_FALSE(judge.Accepts(damaged));
  }
  nlohmann::json damaged = document;
  nlohmann::json& holder = is_in_rows ? damaged["rows"][0] : damaged;
  CHECK(holder["offload"]["link"] == "c2c");
  holder["offload"] = "c2c";
  CHECK_FALSE(judge.Accepts(damaged));
}

TEST_CASE("fit, pareto and compare: their JSON has the link of its plans and what is on the host") {
  CheckTables("--offload c2c", CheckLink);
}

}  // namespace
}  // namespace ckplan
