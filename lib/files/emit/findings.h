// Writes the results of `ckplan check` in formats that CI systems show next to a change.
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
  bool is_fault = true;  // False for a passed check, which only JUnit reports show.
  // Identifies the finding across runs, among those with the same check: a name without numbers.
  std::string identity = {};
};

struct FindingsReport {
  std::string plan_path;
  std::string model;
  std::vector<Finding> findings;
};

// One report per plan.
using FindingsReports = std::span<const FindingsReport>;

// GitHub workflow commands, one line for each fault: ::error file=plan.json,title=...::message
std::string GithubAnnotations(FindingsReports reports);

// GitLab Code Quality: a list of faults. A fingerprint is the SHA-256 of check, plan, model and
// identity, so it stays the same when figures and limits change. A number distinguishes findings
// that agree in all four.
std::string GitlabCodeQuality(FindingsReports reports);

// JUnit XML: one test suite for each plan, one test case for each finding.
std::string JunitReport(FindingsReports reports);

// Writes {"limit": "peak>16GiB", "ok": true, "why": "..."}.
void WriteVerdict(const Verdict& verdict, JsonWriter* json);

// Removes digits, except inside quoted names.
std::string StripNumbers(std::string_view text);

// Returns true if a model's figures depend on the field, so that InspectionJson must write it.
bool DescribesModel(const RequestField& field, const PlanRequest& request);

// Writes the figures of models (schemas/inspect.schema.json): an object for one model, an array for
// several.
std::string InspectionJson(const std::vector<Inspection>& inspections);

}  // namespace ckplan
