// What `ckplan check` finds, in the forms that continuous integration shows beside a change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

struct Finding {
  std::string check;    // The kind: "checker", "peak-limit"
  std::string subject;  // What was looked at: "peak>16GiB", "checker: node \"conv1\""
  std::string message;
  bool is_fault = true;  // False: looked at and found in order, which JUnit alone shows.
  // Identifies a finding among those of its kind in every run: a name, without numbers.
  std::string identity = {};
};

struct FindingsReport {
  std::string plan_path;
  std::string model;
  std::vector<Finding> findings;
};

// GitHub workflow commands, one line for each fault: ::error file=plan.json,title=...::message
std::string GithubAnnotations(const FindingsReport& report);

// GitLab Code Quality: a list of faults. A fingerprint is the SHA-256 of check, plan, model and
// identity: the same from run to run while figures and limits move. Findings that agree in all of
// these are told apart by their order.
std::string GitlabCodeQuality(const FindingsReport& report);

// JUnit XML: one test case for each finding.
std::string JunitReport(const FindingsReport& report);

// `text` without its digits, but for those of names in quotes.
std::string WithoutNumbers(std::string_view text);

}  // namespace ckplan
