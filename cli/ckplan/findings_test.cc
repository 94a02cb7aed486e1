#include "cli/ckplan/findings.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace ckplan {
namespace {

using nlohmann::json;

FindingsReport ReportOf(std::vector<Finding> findings) {
  return {"plans/a,b.json", "net.onnx", std::move(findings)};
}

std::string FingerprintOf(const Finding& finding) {
  return json::parse(GitlabCodeQuality(ReportOf({finding})))[0]["fingerprint"];
}

}  // namespace

TEST_CASE("findings: what is in order is annotated nowhere, and is a JUnit test that passed") {
  const FindingsReport report = ReportOf({{"checker", "", "ok", false}});
  CHECK(GithubAnnotations(report).empty());
  CHECK(json::parse(GitlabCodeQuality(report)) == json::array());
  CHECK(JunitReport(report).find("tests=\"1\" failures=\"0\"") != std::string::npos);
}

TEST_CASE("findings: GitHub's lines cannot be ended or extended by a message or a path") {
  const FindingsReport report = ReportOf({{"peak-limit", "peak", "100%\n::error::x", true}});
  CHECK(GithubAnnotations(report) ==
        "::error file=plans/a%2Cb.json,title=ckplan peak::100%25%0A::error::x\n");
}

TEST_CASE("findings: a fingerprint depends on check, model and subject, not on the message") {
  const Finding finding{"peak-limit", "peak", "17 GiB", true};
  Finding other = finding;
  other.message = "18 GiB";
  CHECK(FingerprintOf(finding) == FingerprintOf(other));
  other.check = "peak-growth";
  CHECK(FingerprintOf(finding) != FingerprintOf(other));
  other = finding;
  other.subject = "arena";
  CHECK(FingerprintOf(finding) != FingerprintOf(other));
}

TEST_CASE("findings: a limit that is moved, or a figure, leaves the fingerprint; a name does not") {
  const auto about = [](const std::string& subject) {
    return FingerprintOf({"checker", subject, "x", true});
  };
  CHECK(about("peak>16GiB") == about("peak>8GiB"));
  CHECK(about("step 3") == about("step 14"));
  CHECK(about("node \"conv1\"") != about("node \"conv2\""));
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

TEST_CASE("findings: XML is escaped, and has no characters that XML has not") {
  const std::string text =
      JunitReport(ReportOf({{"checker", "\x01", "\"<a>\" & \x1b[0m\xff\n", true}}));
  CHECK(text.find("message=\"&quot;&lt;a&gt;&quot; &amp; ?[0m\xef\xbf\xbd&#10;\"") !=
        std::string::npos);
  CHECK(text.find('\x01') == std::string::npos);
}

TEST_CASE("findings: subjects lose their numbers") {
  CHECK(WithoutNumbers("peak_bytes: says 12, finds 3") == "peak_bytes: says , finds ");
  CHECK(WithoutNumbers("node 7 \"a7\" has 12") == "node  \"a7\" has ");
}

}  // namespace ckplan
