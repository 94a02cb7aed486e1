#include "lib/files/emit/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/hash.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

// Escapes as GitHub's own toolkit does: a message, or a property, which must not end early.
std::string GithubEscaped(std::string_view text, bool is_property) {
  std::string escaped;
  for (const char c : PrintableMessage(text)) {
    if (c == '%' || (is_property && (c == ':' || c == ','))) {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// XML 1.0 has no control characters except tabs and line ends, not even escaped, so the text is
// made printable first.
std::string XmlEscaped(std::string_view text) { return XmlText(PrintableMessage(text)); }

std::string TitleOf(const Finding& finding) { return "ckplan " + finding.subject; }

// `seen` counts the earlier findings with the same fingerprint before disambiguation.
void WriteCodeQuality(const FindingsReport& report, const Finding& finding,
                      std::map<std::string, int>* seen, JsonWriter* json) {
  std::string identity = fmt::format("{}\n{}\n{}\n{}", finding.check, report.plan_path,
                                     report.model, finding.identity);
  // Checks that passed count too: fixing one fault must not change the fingerprint of another.
  const int earlier = (*seen)[identity]++;
  if (!finding.is_fault) return;
  if (earlier > 0) identity += fmt::format("\n{}", earlier);
  json->BeginObject(JsonLayout::kLines);
  json->Key("description").Text(finding.message);
  json->Key("check_name").Text("ckplan/" + finding.check);
  json->Key("fingerprint").Text(Sha256Hex(identity));
  json->Key("severity").Text(finding.check == "checker" ? "critical" : "major");
  json->Key("location").BeginObject(JsonLayout::kInline);
  json->Key("path").Text(report.plan_path);
  json->Key("lines").BeginObject(JsonLayout::kInline);
  json->Key("begin").Integer(1).End();
  json->End().End();
}

std::string JunitSuite(const FindingsReport& report) {
  const auto faults = std::count_if(report.findings.begin(), report.findings.end(),
                                    [](const Finding& finding) { return finding.is_fault; });
  std::string text = fmt::format(
      "  <testsuite name=\"ckplan check {}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
      XmlEscaped(report.plan_path), report.findings.size(), faults);
  for (const Finding& finding : report.findings) {
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", XmlEscaped(report.model),
                        XmlEscaped(finding.subject));
    text += finding.is_fault ? fmt::format(">\n      <failure message=\"{}\"/>\n    </testcase>\n",
                                           XmlEscaped(finding.message))
                             : "/>\n";
  }
  return text + "  </testsuite>\n";
}

}  // namespace

std::string GithubAnnotations(FindingsReports reports) {
  std::string text;
  for (const FindingsReport& report : reports) {
    for (const Finding& finding : report.findings) {
      if (!finding.is_fault) continue;
      text +=
          fmt::format("::error file={},title={}::{}\n", GithubEscaped(report.plan_path, true),
                      GithubEscaped(TitleOf(finding), true), GithubEscaped(finding.message, false));
    }
  }
  return text;
}

std::string GitlabCodeQuality(FindingsReports reports) {
  std::map<std::string, int> seen;
  JsonWriter json;
  json.BeginArray(JsonLayout::kLines);
  for (const FindingsReport& report : reports) {
    for (const Finding& finding : report.findings) WriteCodeQuality(report, finding, &seen, &json);
  }
  json.End();
  return std::move(json).Finish();
}

std::string JunitReport(FindingsReports reports) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites>\n";
  for (const FindingsReport& report : reports) text += JunitSuite(report);
  return text + "</testsuites>\n";
}

void WriteVerdict(const Verdict& verdict, JsonWriter* json) {
  json->BeginObject(JsonLayout::kInline);
  json->Key("limit").Text(verdict.threshold);
  json->Key("ok").Boolean(verdict.holds);
  json->Key("why").Text(verdict.message);
  json->End();
}

std::string WithoutNumbers(std::string_view text) {
  std::string rest;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted || c < '0' || c > '9') rest += c;
  }
  return rest;
}

}  // namespace ckplan
