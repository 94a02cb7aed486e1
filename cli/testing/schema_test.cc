// What `ckplan check` and `ckplan modules` print as JSON fits the schemas that `ckplan schema`
// prints.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/testing/workplace.h"
#include "lib/testing/schema_judge.h"

namespace ckplan {
namespace {

std::string OutputOf(const Workplace& workplace, const std::string& command) {
  return workplace.Run({command, "", "", {}, Streams::kApart}).out;
}

// The judge accepts the document, but not without one of its keys, nor with null for its value.
void CheckFits(const SchemaJudge& judge, const nlohmann::json& document) {
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

TEST_CASE("check: its JSON fits its schema, which asks for every key") {
  const Workplace workplace;
  const std::string graph = "testdata/graphs/skips.json";
  OutputOf(workplace, "ckplan " + graph + " -a exact-dp -b 90% -q -o plan.json");
  const SchemaJudge judge(OutputOf(workplace, "ckplan schema check"));
  OutputOf(workplace, "sed 's/\"peak_bytes\": 20000/\"peak_bytes\": 1/' plan.json >damaged.json");
  for (const char* const arguments :
       {"plan.json", "plan.json --fail-on 'peak>1KiB' --fail-on 'overhead>50%'", "damaged.json"}) {
    CAPTURE(arguments);
    const std::string text =
        OutputOf(workplace, "ckplan check --format json " + std::string(arguments) + " " + graph);
    CheckFits(judge, nlohmann::json::parse(text));
  }
}

TEST_CASE("modules: its JSON fits its schema, which asks for every key") {
  const Workplace workplace;
  const std::string model = "testdata/models/resnet18.modules.onnx";
  const SchemaJudge judge(OutputOf(workplace, "ckplan schema modules"));
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

}  // namespace
}  // namespace ckplan
