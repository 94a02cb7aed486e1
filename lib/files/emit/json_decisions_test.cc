#include "lib/files/emit/json_decisions.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

std::string Written(const Decisions& decisions) {
  JsonWriter writer;
  WriteDecisions(decisions, &writer);
  return std::move(writer).Finish();
}

TEST_CASE("decisions: each form is read, and read again as it was written") {
  const struct {
    std::string text;
    Decisions decisions;
  } kRows[] = {
      {R"({"kept": ["a", 7]})", {Decisions::Form::kKept, {{{"a", -1}, {"", 7}}}, {}, {}}},
      {R"({"schema_version": "1.0", "checkpoints": []})",
       {Decisions::Form::kCheckpoints, {{}}, {}, {}}},
      {R"({"mirror_counts": {"b": 2, "a": 0}})",
       {Decisions::Form::kMirrorCounts, {}, {{{"a", -1}, 0}, {{"b", -1}, 2}}, {}}},
      {R"({"lower_sets": [["a"], ["b", "c"]]})",
       {Decisions::Form::kLowerSets, {{{"a", -1}}, {{"b", -1}, {"c", -1}}}, {}, {}}},
      {R"({"order": [["f", "a"], ["loss"], ["b", 0], ["free", "t"]]})",
       {Decisions::Form::kOrder,
        {},
        {},
        {{StepKind::kForward, {"a", -1}},
         {StepKind::kLoss, {}},
         {StepKind::kBackward, {"", 0}},
         {StepKind::kFree, {"t", -1}}}}},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const Result<Decisions> read = ReadDecisionsJson(row.text, "d.json");
    REQUIRE(read.ok());
    CHECK(*read == row.decisions);
    CHECK(*ReadDecisionsJson(Written(*read), "again") == *read);
  }
}

TEST_CASE("decisions: a plan stands for its steps, by names that belong to one node alone") {
  const Result<Decisions> read = ReadDecisionsJson(R"({
    "nodes": [{"id": 4, "name": "conv", "outputs": [{"id": 9, "name": "x"}]},
              {"id": 5, "name": "same", "outputs": [{"id": 8, "name": "y"}]},
              {"id": 6, "name": "same", "outputs": [{"id": 7, "name": "z"}]}],
    "schedule": {"frees": "explicit",
                 "steps": [["f", 4], ["f", 5], ["loss"], ["b", 6], ["free", 9]]}})",
                                                   "plan.json");
  REQUIRE(read.ok());
  CHECK(*read == Decisions{Decisions::Form::kOrder,
                           {},
                           {},
                           {{StepKind::kForward, {"conv", -1}},
                            {StepKind::kForward, {"", 5}},
                            {StepKind::kLoss, {}},
                            {StepKind::kBackward, {"", 6}},
                            {StepKind::kFree, {"x", -1}}}});
}

TEST_CASE("decisions: anything else is refused with its place") {
  const struct {
    std::string text;
    std::string message;
  } kRows[] = {
      {"{}",
       "d.json: /: must be an object with one of kept, checkpoints, mirror_counts, lower_sets, "
       "order"},
      {R"({"kept": [], "order": []})", "has both kept and order; keep only one"},
      {R"({"kept": [""]})", "/kept/0: a name must not be empty"},
      {R"({"kept": [[]]})", "/kept/0: is an array, must be a string"},
      {R"({"mirror_counts": {"a": -1}})", "/mirror_counts/a"},
      {R"({"mirror_counts": ["a"]})", "/mirror_counts: is an array, must be an object"},
      {R"({"lower_sets": ["a"]})", "/lower_sets/0: is a string, must be an array"},
      {R"({"order": ["f"]})", "/order/0: must be a step"},
      {R"({"order": [["f"]]})", "/order/0: must have 2 entries"},
      {R"({"order": [["loss", 1]]})", "/order/0: must have 1 entries"},
      {R"({"order": [["g", "a"]]})", "/order/0/0: \"g\" is unknown"},
      {R"({"schedule": {}})", "nodes"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const Result<Decisions> read = ReadDecisionsJson(row.text, "d.json");
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == ErrorCode::kInvalidInput);
    CAPTURE(read.error().message);
    std::string reported = read.error().message;
    for (const std::string& note : read.error().notes) reported += "\n" + note;
    CHECK(reported.find(row.message) != std::string::npos);
  }
}

}  // namespace
}  // namespace ckplan
