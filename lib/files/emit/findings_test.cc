#include "lib/files/emit/findings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace ckplan {
namespace {

using nlohmann::json;

std::vector<FindingsReport> ReportOf(std::vector<Finding> findings) {
  return {{"plans/a,b.json", "net.onnx", std::move(findings)}};
}

std::string FingerprintOf(const Finding& finding) {
  return json::parse(GitlabCodeQuality(ReportOf({finding})))[0]["fingerprint"];
}

}  // namespace

TEST_CASE("findings: a check that passed is not annotated, and is a JUnit test that passed") {
  const std::vector<FindingsReport> report = ReportOf({{"checker", "", "ok", false}});
  CHECK(GithubAnnotations(report).empty());
  CHECK(json::parse(GitlabCodeQuality(report)) == json::array());
  CHECK(JunitReport(report).find("tests=\"1\" failures=\"0\"") != std::string::npos);
}

TEST_CASE("findings: GitHub's lines cannot be ended or extended by a message or a path") {
  const std::vector<FindingsReport> report =
      ReportOf({{"peak-limit", "peak", "100%\n::error::x", true}});
  CHECK(GithubAnnotations(report) ==
        "::error file=plans/a%2Cb.json,title=ckplan peak::100%25\\n::error::x\n");
}

TEST_CASE("findings: a fingerprint depends on check and identity, not on figures or limits") {
  const Finding finding{"peak-limit", "peak>16GiB", "17 GiB", true, "conv1"};
  Finding other = finding;
  other.message = "18 GiB";
  other.subject = "peak>900MiB";
  CHECK(FingerprintOf(finding) == FingerprintOf(other));
  other.check = "peak-growth";
  CHECK(FingerprintOf(finding) != FingerprintOf(other));
  other = finding;
  other.identity = "conv2";
  CHECK(FingerprintOf(finding) != FingerprintOf(other));
}

TEST_CASE("findings: a fingerprint depends on the plan and its model") {
  std::vector<FindingsReport> report = ReportOf({{"peak-limit", "peak>16GiB", "17 GiB", true}});
  const std::string first = GitlabCodeQuality(report);
  report.front().model = "other.onnx";
  const std::string second = GitlabCodeQuality(report);
  const auto fingerprint = [](const std::string& text) {
    return json::parse(text)[0]["fingerprint"].get<std::string>();
  };
  CHECK(fingerprint(first) != fingerprint(second));
  report.front().plan_path = "other.json";
  CHECK(fingerprint(second) != fingerprint(GitlabCodeQuality(report)));
}

TEST_CASE("findings: fingerprints are unique within a report, whatever else fails") {
  const Finding lower{"peak-limit", "peak>1GiB", "17 GiB", true};
  Finding upper{"peak-limit", "peak>16GiB", "17 GiB", true};
  const json both = json::parse(GitlabCodeQuality(ReportOf({lower, upper, upper})));
  REQUIRE(both.size() == 3);
  std::set<std::string> fingerprints;
  for (const json& row : both) fingerprints.insert(row["fingerprint"]);
  CHECK(fingerprints.size() == 3);
  Finding mended = lower;
  mended.is_fault = false;
  const json one = json::parse(GitlabCodeQuality(ReportOf({mended, upper})));
  REQUIRE(one.size() == 1);
  CHECK(one[0]["fingerprint"] == both[1]["fingerprint"]);
}

TEST_CASE("findings: several plans share one list and one document, with a suite for each") {
  std::vector<FindingsReport> reports = ReportOf({{"peak-limit", "peak>1GiB", "17 GiB", true}});
  reports.push_back(reports.front());
  reports.back().plan_path = "other.json";
  const json list = json::parse(GitlabCodeQuality(reports));
  REQUIRE(list.size() == 2);
  CHECK(list[0]["fingerprint"] != list[1]["fingerprint"]);
  CHECK(list[1]["location"]["path"] == "other.json");
  const std::string xml = JunitReport(reports);
  CHECK(xml.find("<testsuite name=\"ckplan check plans/a,b.json\"") <
        xml.find("<testsuite name=\"ckplan check other.json\""));
  CHECK(xml.find("</testsuites>\n") == xml.size() - 14);
  const std::string lines = GithubAnnotations(reports);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
}

TEST_CASE("findings: XML is escaped and has no characters that XML forbids") {
  const std::string text =
      JunitReport(ReportOf({{"checker", "\x01", "\"<a>\" & \x1b[0m\xff\n", true}}));
  CHECK(text.find("message=\"&quot;&lt;a&gt;&quot; &amp; \\x1b[0m\\xff\\n\"") != std::string::npos);
  CHECK(text.find('\x01') == std::string::npos);
}

TEST_CASE("findings: subjects lose their numbers") {
  CHECK(StripNumbers("peak_bytes: says 12, finds 3") == "peak_bytes: says , finds ");
  CHECK(StripNumbers("node 7 \"a7\" has 12") == "node  \"a7\" has ");
}

}  // namespace ckplan
