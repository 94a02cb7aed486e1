#include "cli/ckexec/validation_report.h"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/ckexec/commands.h"
#include "cli/ckplan/commands.h"
#include "cli/common/files.h"
#include "lib/files/emit/schemas.h"
#include "lib/testing/schema_validator.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

using nlohmann::json;

constexpr const char* kModel = "testdata/models/tiny_mlp.onnx";

bool Accepts(std::string_view schema_name, const json& document) {
  const EmbeddedSchema* const embedded = FindSchema(schema_name);
  REQUIRE(embedded != nullptr);
  return SchemaValidator(embedded->text).Accepts(document);
}

void Execute(std::vector<std::string> arguments) {
  const Result<ExitCode> code = RunExec(std::move(arguments));
  REQUIRE_MESSAGE(code.ok(), code.error().message);
  CHECK(*code == ExitCode::kOk);
}

void MakePlan(const std::string& path) {
  const auto code = RunCommand(*FindCommand("plan"),
                               {kModel, "-D", "N=8", "--algo", "chen-sqrt", "-q", "-o", path});
  REQUIRE_MESSAGE(code.ok(), code.error().message);
}

json FileOf(const std::string& path) { return json::parse(*ReadWholeFile(path)); }

// Returns a report of gradients that differ, one of them because it is NaN.
ValidationReport FailedReport() {
  ValidationReport report;
  report.parameters = 2;
  report.keep_all.loss = std::numeric_limits<double>::infinity();
  report.differences = {{"w0", 3, 0.5}, {"b0", 1, std::numeric_limits<double>::quiet_NaN()}};
  report.notes = {"float16 is computed in float32"};
  report.failures = {MakeError(ErrorCode::kCheckFailed, "the gradients of 2 parameters differ")};
  return report;
}

}  // namespace

TEST_CASE("validation: the report of a real run conforms to its schema, and proves the plan") {
  const TemporaryFolder folder;
  MakePlan(folder / "plan.json");
  Execute({"validate", kModel, "--plan", folder / "plan.json", "--runs", "1", "--threads", "1",
           "-q", "-o", folder / "report.json"});
  json report = FileOf(folder / "report.json");
  CHECK(Accepts("validation", report));
  CHECK(report["ok"] == true);
  CHECK(report["gradients"]["parameters"] == 14);
  CHECK(report["gradients"]["differing"].empty());
  CHECK(report["constants"]["from_file"] > 0);
  CHECK(report["constants"]["from_seed"] == 0);
  CHECK(report["plan"]["counted_peak"]["total_bytes"] == report["plan"]["predicted_peak_bytes"]);
  CHECK(report["plan"]["predicted_peak_bytes"] < report["keep_all"]["predicted_peak_bytes"]);
  CHECK(report["plan"]["loss"] == report["keep_all"]["loss"]);
  CHECK(report["plan"]["seconds"] > 0);
  report["plan"].erase("counted_peak");
  CHECK(!Accepts("validation", report));
}

TEST_CASE("validation: the report of a plan that fails conforms to its schema") {
  const ValidateOptions options;
  const Plan plan;
  const ValidationContext context{plan, "cpu: 1 thread", options};
  json report = json::parse(ValidationJson(FailedReport(), context));
  CHECK(Accepts("validation", report));
  CHECK(report["ok"] == false);
  CHECK(report["keep_all"]["loss"].is_null());
  CHECK(report["plan"]["seconds"].is_null());
  CHECK(report["gradients"]["differing"][1]["largest"] == "nan");
  report["failures"] = "one";
  CHECK(!Accepts("validation", report));
}

TEST_CASE("validation: the text never calls a failed plan proven") {
  const ValidateOptions options;
  const Plan plan;
  const ValidationContext context{plan, "cpu: 1 thread", options};
  CHECK(ValidationText(FailedReport(), context).find("proven") == std::string::npos);
  ValidationReport report = FailedReport();
  report.failures.clear();
  CHECK(ValidationText(report, context).find("\nproven: ") != std::string::npos);
}

TEST_CASE("profile: costs.json conforms to its schema, and ckplan plans with it") {
  const TemporaryFolder folder;
  const std::string costs = folder / "costs.json";
  Execute({"profile", kModel, "-D", "N=8", "--runs", "1", "--threads", "1", "-q", "-o", costs});
  const json measured = FileOf(costs);
  CHECK(Accepts("costs", measured));
  CHECK(measured["nodes"].size() == 13);
  const auto code = RunCommand(
      *FindCommand("plan"),
      {kModel, "-D", "N=8", "--cost", "file:" + costs, "-q", "-o", folder / "plan.json"});
  REQUIRE_MESSAGE(code.ok(), code.error().message);
  CHECK(FileOf(folder / "plan.json")["result"]["peak_bytes"] > 0);
}

}  // namespace ckplan
