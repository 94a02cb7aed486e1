#include "lib/files/emit/json_compare.h"

#include <utility>

#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {

namespace {

void WriteCosts(const PlanFigures& figures, JsonWriter* json) {
  json->Key("overhead_cost").Amount(figures.overhead);
  if (figures.offload) {
    json->Key("stall_cost").Amount(figures.offload->stall);
    json->Key("host_peak_bytes").Amount(figures.offload->host_peak);
    json->Key("transfer_bytes").Amount(figures.offload->transferred);
  }
  json->Key("forward_cost").Amount(figures.forward_cost);
  json->Key("backward_cost").Amount(figures.backward_cost);
}

void WriteFigures(const Plan& plan, JsonWriter* json) {
  const PlanFigures& figures = plan.figures;
  json->BeginObject(JsonLayout::kInline);
  json->Key("status").Text(figures.is_optimal ? "optimal" : "feasible");
  json->Key("guarantee").Text(figures.guarantee);
  WriteField("budget", plan.request, json);
  json->Key("peak_bytes").Amount(figures.peak);
  json->Key("baseline_peak_bytes").Amount(figures.baseline_peak);
  json->Key("arena_bytes").Amount(figures.arena);
  WriteCosts(figures, json);
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

void WriteFailedModel(const ComparedModel& model, JsonWriter* json) {
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
      WriteFailedModel(model, &json);
    }
  }
  json.End();
  return std::move(json).Finish();
}

namespace {

void WriteSide(std::string_view key, const PlanDigest& plan, int64_t kept, JsonWriter* json) {
  const PlanFigures& figures = plan.figures;
  json->Key(key).BeginObject(JsonLayout::kLines);
  json->Key("model").Text(plan.model.name);
  json->Key("sha256").Text(plan.model.sha256);
  WriteField("algorithm", plan.request, json);
  WriteField("budget", plan.request, json);
  json->Key("peak_bytes").Amount(figures.peak);
  json->Key("arena_bytes").Amount(figures.arena);
  WriteField("cost_model", plan.request, json);
  WriteField("cost_unit", plan.request, json);
  WriteCosts(figures, json);
  json->Key("kept_nodes").Integer(kept);
  json->End();
}

void WriteVerdict(const PlanVerdict& verdict, JsonWriter* json) {
  json->Key("verdict").BeginObject(JsonLayout::kInline);
  json->Key("needs_less").Text(NameOf(verdict.memory));
  json->Key("takes_less");
  verdict.time ? json->Text(NameOf(*verdict.time)) : json->Null();
  json->End();
}

void WriteCheckpoints(const DiffSummary& diff, JsonWriter* json) {
  const std::pair<std::string_view, const ComparedCheckpoints&> sides[] = {
      {"old_only", diff.old_only}, {"new_only", diff.new_only}, {"both", diff.both}};
  json->Key("checkpoints").BeginObject(JsonLayout::kLines);
  for (const auto& [key, checkpoints] : sides) {
    json->Key(key).BeginObject(JsonLayout::kInline);
    json->Key("bytes").Amount(checkpoints.bytes);
    json->Key("nodes").BeginArray(JsonLayout::kInline);
    for (const std::string& name : checkpoints.names) json->Text(name);
    json->End().End();
  }
  json->End();
}

void WriteGroups(const DiffSummary& summary, bool has_peaks, JsonWriter* json) {
  json->Key("grouped_by").Text(NameOf(summary.grouped_by));
  json->Key("groups").BeginArray(JsonLayout::kLines);
  for (const GroupChange& group : summary.groups) {
    json->BeginObject(JsonLayout::kInline);
    json->Key("name").Text(group.name);
    json->Key("changed_nodes").Integer(group.changed);
    json->Key("old_reruns").Integer(group.old_reruns);
    json->Key("new_reruns").Integer(group.new_reruns);
    json->Key("held_bytes").Amount(group.held);
    json->Key("at_peak_bytes");
    has_peaks ? json->Amount(group.at_peak) : json->Null();
    json->End();
  }
  json->End();
}

void WriteChange(const NodeChange& change, const std::string& group, bool has_peaks,
                 JsonWriter* json) {
  const auto [sign, verb] = WordsOf(change);
  json->BeginObject(JsonLayout::kInline);
  json->Key("sign").Text(sign);
  json->Key("change").Text(verb);
  json->Key("node").Text(change.name);
  json->Key("old_runs").Integer(change.old_runs);
  json->Key("new_runs").Integer(change.new_runs);
  json->Key("held_bytes").Amount(change.held);
  json->Key("at_peak_bytes");
  has_peaks ? json->Amount(change.at_peak) : json->Null();
  if (change.moved != Bytes(0)) json->Key("moved_bytes").Amount(change.moved);
  json->Key("group").Text(group);
  json->End();
}

void WriteCurve(const std::vector<CurveChange>& curve, JsonWriter* json) {
  if (curve.empty()) return;
  json->Key("curve").BeginArray(JsonLayout::kLines);
  for (const CurveChange& change : curve) {
    json->BeginObject(JsonLayout::kInline).Key("peak_bytes").Amount(change.peak);
    json->Key("old_overhead_cost").Amount(change.older);
    json->Key("new_overhead_cost").Amount(change.newer);
    json->End();
  }
  json->End();
}

void WriteOtherMemoryAtPeak(const PlanDiff& diff, JsonWriter* json) {
  json->Key("rest_at_peak_bytes");
  if (!diff.rest) {
    json->Null();
    return;
  }
  json->BeginObject(JsonLayout::kInline);
  json->Key("tensors").Amount(diff.rest->tensors);
  json->Key("gradients").Amount(diff.rest->gradients);
  json->Key("workspace").Amount(diff.rest->workspace);
  if (diff.rest->other_micro_batches != Bytes(0)) {
    json->Key("other_micro_batches").Amount(diff.rest->other_micro_batches);
  }
  json->End();
}

void WriteTextOrNull(std::string_view key, const std::string& text, JsonWriter* json) {
  json->Key(key);
  text.empty() ? json->Null() : json->Text(text);
}

}  // namespace

ChangeWords WordsOf(const NodeChange& change) {
  if (change.old_runs == 0) return {"+", "new"};
  if (change.new_runs == 0) return {"-", "gone"};
  if (change.moved > Bytes(0)) return {"~", "move"};
  switch (change.kind) {
    case NodeChange::Kind::kKept: {
      const bool is_smaller = change.old_runs == change.new_runs && change.held < Bytes(0);
      return {is_smaller ? "-" : "+", "keep"};
    }
    case NodeChange::Kind::kNotKept:
      return {"-", "keep"};
    case NodeChange::Kind::kRecomputed:
      break;
  }
  return {"~", "recompute"};
}

std::string WriteDiffJson(const PlanDigest& older, const PlanDigest& newer, const PlanDiff& diff,
                          const DiffSummary& summary) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text(kSchemaVersion);
  json.Key("differs").Boolean(diff.has_changes);
  json.Key("same_model").Boolean(diff.has_same_model);
  if (!diff.compares_nodes) json.Key("compares_nodes").Boolean(false);
  if (diff.paired_by_structure > 0) {
    json.Key("paired_by_structure").Integer(diff.paired_by_structure);
  }
  WriteSide("old", older, diff.old_kept, &json);
  WriteSide("new", newer, diff.new_kept, &json);
  WriteVerdict(summary.verdict, &json);
  WriteCheckpoints(summary, &json);
  WriteGroups(summary, diff.rest.has_value(), &json);
  json.Key("changes").BeginArray(JsonLayout::kLines);
  for (size_t i = 0; i < diff.changes.size(); ++i) {
    WriteChange(diff.changes[i], summary.groups[summary.group_of[i]].name, diff.rest.has_value(),
                &json);
  }
  json.End();
  WriteOtherMemoryAtPeak(diff, &json);
  WriteCurve(diff.curve, &json);
  json.Key("request_differences").BeginArray(JsonLayout::kLines);
  for (const RequestDifference& difference : diff.request) {
    json.BeginObject(JsonLayout::kInline).Key("field").Text(difference.field);
    WriteTextOrNull("old", difference.older, &json);
    WriteTextOrNull("new", difference.newer, &json);
    json.End();
  }
  json.End();
  json.End();
  return std::move(json).Finish();
}

}  // namespace ckplan
