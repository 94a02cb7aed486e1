#include "lib/files/emit/json_compare.h"

#include <utility>

#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

void WriteFigures(const Plan& plan, JsonWriter* json) {
  const PlanFigures& figures = plan.figures;
  json->BeginObject(JsonLayout::kInline);
  json->Key("status").Text(figures.is_optimal ? "optimal" : "feasible");
  json->Key("guarantee").Text(figures.guarantee);
  WriteField("budget", plan.request, json);
  json->Key("peak_bytes").Amount(figures.peak);
  json->Key("baseline_peak_bytes").Amount(figures.baseline_peak);
  json->Key("arena_bytes").Amount(figures.arena);
  json->Key("overhead_cost").Amount(figures.overhead);
  if (figures.offload) {
    json->Key("stall_cost").Amount(figures.offload->stall);
    json->Key("host_peak_bytes").Amount(figures.offload->host_peak);
    json->Key("transfer_bytes").Amount(figures.offload->transferred);
  }
  json->Key("forward_cost").Amount(figures.forward_cost);
  json->Key("backward_cost").Amount(figures.backward_cost);
  json->Key("lower_bound_cost").Amount(figures.lower_bound_cost);
  if (figures.certificate) {
    json->Key("gap_cost").Amount(figures.certificate->gap);
    json->Key("bound_scope").Text(NameOf(figures.certificate->scope));
    json->Key("least_peak_bytes").Amount(figures.certificate->peak.bytes);
    json->Key("least_peak_scope").Text(NameOf(figures.certificate->peak.scope));
  }
  json->Key("paper").BeginObject(JsonLayout::kInline);
  json->Key("budget_bytes").Amount(figures.paper.budget);
  json->Key("peak_bytes").Amount(figures.paper.peak);
  json->Key("overhead_cost").Amount(figures.paper.overhead);
  json->End().End();
}

void WriteDims(const DimSizes& dims, JsonWriter* json) {
  json->Key("dims").BeginObject(JsonLayout::kInline);
  for (const auto& [dim, size] : dims) json->Key(dim).Integer(size);
  json->End();
}

void WriteRow(const ComparisonHead& head, const ComparedRow& row, JsonWriter* json) {
  json->BeginObject(JsonLayout::kLines);
  json->Key("model").Text(head.model.name);
  WriteDims(head.request.dims, json);
  WriteTableFields(FieldScope::InTables::kPatterns, head.request, json);
  WriteTableFields(FieldScope::InTables::kCounting, head.request, json);
  json->Key("algorithm").Text(row.algorithm);
  if (!head.budget_field.empty()) json->Key(head.budget_field).Text(row.budget_text);
  json->Key("budget_bytes").Amount(row.budget);
  json->Key("guarantee").Text(row.guarantee);
  json->Key("result");
  if (row.plan) {
    WriteFigures(*row.plan, json);
  } else {
    json->Null();
  }
  json->Key("failure");
  if (row.plan) {
    json->Null();
  } else {
    json->Text(row.failure);
  }
  json->Key("least_bytes").Amount(row.min_budget);
  json->End();
}

void WriteComparison(const ComparisonHead& head, const std::vector<ComparedRow>& rows,
                     JsonWriter* json) {
  json->BeginObject(JsonLayout::kLines);
  json->Key("schema_version").Text("1.0");
  json->Key("model").BeginObject(JsonLayout::kInline);
  json->Key("name").Text(head.model.name);
  json->Key("sha256").Text(head.model.sha256);
  json->End();
  WriteField("cost_model", head.request, json);
  WriteField("cost_unit", head.request, json);
  json->Key("baseline_peak_bytes").Amount(head.baseline_peak);
  json->Key("rows").BeginArray(JsonLayout::kLines);
  for (const ComparedRow& row : rows) WriteRow(head, row, json);
  json->End().End();
}

void WriteUnread(const ComparedModel& model, JsonWriter* json) {
  json->BeginObject(JsonLayout::kLines);
  json->Key("schema_version").Text("1.0");
  json->Key("model").BeginObject(JsonLayout::kInline);
  json->Key("name").Text(model.head.model.name);
  json->End();
  WriteDims(model.head.request.dims, json);
  json->Key("failure").Text(model.failure);
  json->End();
}

}  // namespace

std::string WriteCompareJson(const ComparisonHead& head, const std::vector<ComparedRow>& rows) {
  JsonWriter json;
  WriteComparison(head, rows, &json);
  return std::move(json).Finish();
}

std::string WriteCompareJson(const std::vector<ComparedModel>& models) {
  JsonWriter json;
  json.BeginArray(JsonLayout::kLines);
  for (const ComparedModel& model : models) {
    if (model.failure.empty()) {
      WriteComparison(model.head, model.rows, &json);
    } else {
      WriteUnread(model, &json);
    }
  }
  json.End();
  return std::move(json).Finish();
}

}  // namespace ckplan
