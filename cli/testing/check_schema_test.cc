// What `ckplan check --format json` prints fits the schema that `ckplan schema check` prints.
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
    const nlohmann::json verdict = nlohmann::json::parse(text);
    CHECK(judge.Accepts(verdict));
    for (const auto& field : verdict.items()) {
      const std::string& key = field.key();
      CAPTURE(key);
      nlohmann::json damaged = verdict;
      damaged.erase(key);
      CHECK_FALSE(judge.Accepts(damaged));
      damaged[key] = nullptr;
      CHECK_FALSE(judge.Accepts(damaged));
    }
  }
}

}  // namespace
}  // namespace ckplan
