#include "lib/files/emit/json_inspection.h"

#include <utility>

#include "lib/files/emit/findings.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
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
  json.Key("constant_bytes").BeginObject(JsonLayout::kInline);
  json.Key("parameters").Amount(one.constants.parameters);
  json.Key("parameter_gradients").Amount(one.constants.parameter_gradients);
  json.Key("optimizer_state").Amount(one.optimizer_state);
  json.Key("inputs").Amount(one.constants.inputs);
  if (one.constants.unsharded > Bytes(0)) {
    json.Key("unsharded").Amount(one.constants.unsharded);
  }
  json.End();
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
