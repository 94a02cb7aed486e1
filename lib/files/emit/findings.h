// The results of `ckplan check`, in the forms that continuous integration systems show beside a
// change.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/files/emit/json_writer.h"
#include "lib/planning/explain/inspection.h"
#include "lib/planning/plan/threshold.h"

namespace ckplan {

struct Finding {
  std::string check;    // The kind: "checker", "peak-limit"
  std::string subject;  // What was checked: "peak>16GiB", "checker: node \"conv1\""
  std::string message;
  bool is_fault = true;  // False for a check that passed, which only JUnit reports show.
  // Identifies a finding among those of its kind across runs: a name without numbers.
  std::string identity = {};
};

struct FindingsReport {
  std::string plan_path;
  std::string model;
  std::vector<Finding> findings;
};

// Each of the following shows the reports of several plans, in their order.
using FindingsReports = std::span<const FindingsReport>;

// GitHub workflow commands, one line for each fault: ::error file=plan.json,title=...::message
std::string GithubAnnotations(FindingsReports reports);

// GitLab Code Quality: a list of faults. A fingerprint is the SHA-256 of check, plan, model and
// identity, so it stays the same from run to run while figures and limits change. Findings that
// agree in all four are distinguished by their order.
std::string GitlabCodeQuality(FindingsReports reports);

// JUnit XML: one test suite for each plan, one test case for each finding.
std::string JunitReport(FindingsReports reports);

// Writes {"limit": "peak>16GiB", "ok": true, "why": "..."}.
void WriteVerdict(const Verdict& verdict, JsonWriter* json);

// `text` without digits, except those of names in quotes.
std::string WithoutNumbers(std::string_view text);

// Writes the figures of models as JSON (schemas/inspect.schema.json).

// Returns whether figures of a model depend on the field, so that its readers must know it.
bool DescribesModel(const RequestField& field, const PlanRequest& request);

// Writes a JSON object for one model, and an array of objects for several.
std::string InspectionJson(const std::vector<Inspection>& inspections);

}  // namespace ckplan
