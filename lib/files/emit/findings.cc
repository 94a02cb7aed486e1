#include "lib/files/emit/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/base/hash.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

namespace {

// Escapes a message or a property of a workflow command as GitHub's own toolkit does.
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

// Makes the text printable first, since XML 1.0 forbids most control characters even if escaped.
std::string XmlEscaped(std::string_view text) { return XmlText(PrintableMessage(text)); }

std::string TitleOf(const Finding& finding) { return "ckplan " + finding.subject; }

// `seen` counts the earlier findings with the same identity.
void WriteCodeQuality(const FindingsReport& report, const Finding& finding,
                      std::map<std::string, int>* seen, JsonWriter* json) {
  std::string identity = fmt::format("{}\n{}\n{}\n{}", finding.check, report.plan_path,
                                     report.model, finding.identity);
  // Passed checks count, too, so that fixing one fault does not change the fingerprint of another.
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

std::string StripNumbers(std::string_view text) {
  std::string rest;
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted || c < '0' || c > '9') rest += c;
  }
  return rest;
}

namespace {

void WriteInspection(JsonWriter& json, const Inspection& one) {
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("name").Text(one.model.name);
  json.Key("sha256").Text(one.model.sha256);
  json.Key("opsets").BeginObject(JsonLayout::kInline);
  for (const auto& [domain, version] : one.model.opsets) json.Key(domain).Integer(version);
  json.End();
  WriteField("dims", one.request, &json);
  for (const RequestField& field : RequestFields()) {
    if (DescribesModel(field, one.request)) WriteField(field, one.request, &json);
  }
  json.Key("node_count").Integer(one.node_count);
  json.Key("tensor_count").Integer(one.tensor_count);
  json.Key("activation_bytes").Amount(one.activations);
  json.Key("statistic_bytes").Amount(one.statistics);
  json.Key("saved_for_backward_bytes").Amount(one.saved_for_backward);
  json.Key("keep_all_peak_bytes").Amount(one.keep_all_peak);
  if (one.prediction) {
    json.Key("prediction_bytes").BeginObject(JsonLayout::kInline);
    json.Key("none").Amount(one.prediction->none);
    json.Key("inplace").Amount(one.prediction->inplace);
    json.Key("sharing").Amount(one.prediction->sharing);
    json.End();
  }
  WriteConstants(one.constants, one.optimizer_state, &json);
  json.Key("forward_cost").Amount(one.forward_cost);
  json.Key("backward_cost").Amount(one.backward_cost);
  json.Key("operators").BeginArray(JsonLayout::kLines);
  for (const OperatorRow& row : one.operators) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("op").Text(row.op).Key("count").Integer(row.count);
    json.Key("output_bytes").Amount(row.outputs);
    json.Key("forward_cost").Amount(row.forward_cost);
    json.Key("backward_cost").Amount(row.backward_cost).End();
  }
  json.End();
  json.Key("largest_tensors").BeginArray(JsonLayout::kLines);
  for (const TensorRow& row : one.largest) {
    json.BeginObject(JsonLayout::kInline);
    json.Key("name").Text(row.name).Key("producer_op").Text(row.producer);
    json.Key("bytes").Amount(row.bytes).End();
  }
  json.End();
  if (!one.restored.empty()) {
    json.Key("restored_operators").BeginArray(JsonLayout::kLines);
    for (const RestoredRow& row : one.restored) {
      json.BeginObject(JsonLayout::kInline);
      json.Key("op").Text(row.op).Key("origin").Text(row.origin);
      json.Key("replaced").BeginArray(JsonLayout::kInline);
      for (const std::string& op : row.replaced) json.Text(op);
      json.End();
      json.Key("count").Integer(row.count).End();
    }
    json.End();
  }
  json.Key("warnings").BeginArray(JsonLayout::kLines);
  for (const std::string& warning : one.warnings) json.Text(warning);
  json.End();
  if (one.accounting) {
    json.Key("accounting");
    WriteAccounting(*one.accounting, one.request.memory, JsonLayout::kLines, &json);
  }
  if (!one.verdicts.empty()) {
    json.Key("limits").BeginArray(JsonLayout::kLines);
    for (const Verdict& verdict : one.verdicts) WriteVerdict(verdict, &json);
    json.End();
  }
  json.End();
}

}  // namespace

bool DescribesModel(const RequestField& field, const PlanRequest& request) {
  using InFile = RequestField::InFile;
  if (field.part != RequestField::Part::kGraph || field.name == "align") return false;
  return field.in_file != InFile::kUnlessDefault || !IsDefault(field, request);
}

std::string InspectionJson(const std::vector<Inspection>& inspections) {
  JsonWriter json;
  const bool is_list = inspections.size() > 1;
  if (is_list) json.BeginArray(JsonLayout::kLines);
  for (const Inspection& one : inspections) WriteInspection(json, one);
  if (is_list) json.End();
  return std::move(json).Finish();
}

}  // namespace ckplan
