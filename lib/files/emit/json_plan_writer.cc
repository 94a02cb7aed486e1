#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/emit/json_plan_words.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_request.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/plan/segment_peaks.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {

PlanIds PlanIdsOf(const TrainingStep& step) {
  PlanIds ids{step.name(), {}, {}, step.is_joint()};
  for (const NodeId id : step.node_ids()) ids.nodes.push_back(step.FileIdOf(id));
  for (const TensorId id : step.tensor_ids()) ids.tensors.push_back(step.FileIdOf(id));
  return ids;
}

namespace {

class PlanWriter {
 public:
  PlanWriter(const Plan& plan, PlanIds ids, std::vector<Bytes> segment_peaks)
      : plan_(plan), ids_(std::move(ids)), segment_peaks_(std::move(segment_peaks)) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("schema_version").Text(plan_.request.offload ? kOffloadVersion : kSchemaVersion);
    json_.Key("tool").BeginObject(JsonLayout::kInline);
    json_.Key("name").Text("ckplan").Key("version").Text(CKPLAN_VERSION).End();
    WriteModel();
    WriteRequest();
    WriteResult();
    json_.Key("nodes").BeginArray(JsonLayout::kLines);
    for (const NodeId id : ids_.nodes.ids()) WriteNode(id);
    json_.End();
    WriteSchedule();
    WritePeak();
    json_.Key("arena").BeginObject(JsonLayout::kLines);
    json_.Key("offset_bytes").BeginArray(JsonLayout::kWrapped);
    for (const Bytes offset : plan_.offsets) json_.Amount(offset);
    json_.End();
    if (plan_.request.offload) {
      json_.Key("host_offset_bytes").BeginArray(JsonLayout::kWrapped);
      for (const Bytes offset : plan_.host_offsets) json_.Amount(offset);
      json_.End();
    }
    json_.End();
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  void WriteModel() {
    const ModelIdentity& model = plan_.model;
    json_.Key("model").BeginObject(JsonLayout::kLines);
    json_.Key("name").Text(model.name);
    json_.Key("sha256").Text(model.sha256);
    WriteField("dims", plan_.request, &json_);
    json_.Key("opsets").BeginObject(JsonLayout::kInline);
    for (const auto& [domain, version] : OpsetsInFiles(model)) json_.Key(domain).Integer(version);
    json_.End();
    WriteField("input_shapes", plan_.request, &json_);
    WriteField("batch", plan_.request, &json_);
    json_.End();
  }

  void WriteRequest() {
    json_.Key("request").BeginObject(JsonLayout::kLines);
    for (const RequestField& field : RequestFields()) {
      if (field.part != RequestField::Part::kModel) WriteField(field, plan_.request, &json_);
    }
    json_.End();
  }

  void WriteResult() {
    const PlanFigures& figures = plan_.figures;
    json_.Key("result").BeginObject(JsonLayout::kLines);
    json_.Key("status").Text(figures.is_optimal ? kOptimal : kFeasible);
    json_.Key("guarantee").Text(figures.guarantee);
    json_.Key("peak_bytes").Amount(figures.peak);
    json_.Key("baseline_peak_bytes").Amount(figures.baseline_peak);
    if (figures.other_micro_batches > Bytes(0)) {
      json_.Key("other_micro_batches_bytes").Amount(figures.other_micro_batches);
    }
    json_.Key("arena_bytes").Amount(figures.arena);
    if (figures.static_allocations) {
      json_.Key("static_allocation_bytes").BeginObject(JsonLayout::kInline);
      json_.Key("none").Amount(figures.static_allocations->none);
      json_.Key("inplace").Amount(figures.static_allocations->inplace);
      json_.Key("sharing").Amount(figures.static_allocations->sharing);
      json_.End();
    }
    json_.Key("overhead_cost").Amount(figures.overhead);
    if (figures.offload) WriteOffload(*figures.offload);
    json_.Key("forward_cost").Amount(figures.forward_cost);
    json_.Key("backward_cost").Amount(figures.backward_cost);
    json_.Key("lower_bound_cost").Amount(figures.lower_bound_cost);
    if (figures.certificate) WriteCertificate(*figures.certificate);
    WriteCurve();
    WriteConstants(figures.constants, figures.optimizer_state, &json_);
    json_.Key("paper").BeginObject(JsonLayout::kInline);
    json_.Key("budget_bytes").Amount(figures.paper.budget);
    json_.Key("peak_bytes").Amount(figures.paper.peak);
    json_.Key("overhead_cost").Amount(figures.paper.overhead);
    if (!segment_peaks_.empty()) {
      json_.Key("segment_peak_bytes").BeginArray(JsonLayout::kInline);
      for (const Bytes peak : segment_peaks_) json_.Amount(peak);
      json_.End();
    }
    json_.End();
    if (figures.setting) {
      json_.Key("setting");
      WriteSetting(*figures.setting, &json_);
    }
    json_.End();
  }

  void WriteOffload(const OffloadFigures& offload) {
    json_.Key("stall_cost").Amount(offload.stall);
    json_.Key("host_peak_bytes").Amount(offload.host_peak);
    json_.Key("host_arena_bytes").Amount(offload.host_arena);
    json_.Key("transfer_bytes").Amount(offload.transferred);
  }

  void WriteCertificate(const Certificate& certificate) {
    json_.Key("certificate").BeginObject(JsonLayout::kLines);
    json_.Key("overhead").BeginObject(JsonLayout::kInline);
    json_.Key("proof").Text(NameOf(certificate.proof));
    json_.Key("scope").Text(NameOf(certificate.scope));
    json_.Key("gap_cost").Amount(certificate.gap);
    json_.End();
    json_.Key("peak").BeginObject(JsonLayout::kInline);
    json_.Key("lower_bound_bytes").Amount(certificate.peak.bytes);
    json_.Key("proof").Text(NameOf(certificate.peak.proof));
    json_.Key("scope").Text(NameOf(certificate.peak.scope));
    json_.Key("gap_bytes").Amount(certificate.peak_gap);
    json_.End().End();
  }

  void WriteCurve() {
    if (plan_.figures.curve.empty()) return;
    json_.Key("curve").BeginArray(JsonLayout::kLines);
    for (const CurvePoint& point : plan_.figures.curve) {
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("peak_bytes").Amount(point.peak);
      json_.Key("overhead_cost").Amount(point.overhead);
      if (point.least_peak) json_.Key("least_peak_bytes").Amount(*point.least_peak);
      json_.End();
    }
    json_.End();
  }

  void WriteNode(NodeId id) {
    const NodeLabel& label = plan_.labels[id];
    const NodeDecision& decision = plan_.decisions[id];
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(ids_.nodes[id]);
    json_.Key("name").Text(label.name);
    json_.Key("op").Text(label.op);
    json_.Key("action").Text(NameOf(decision.action));
    json_.Key("segment").Integer(decision.segment);
    json_.Key("recompute_count").Integer(decision.recompute_count);
    json_.Key("outputs").BeginArray(JsonLayout::kInline);
    for (const NodeLabel::Output& output : label.outputs) {
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("id").Integer(output.file_id);
      json_.Key("name").Text(output.name);
      json_.Key("bytes").Amount(output.bytes);
      json_.End();
    }
    json_.End().End();
  }

  void WriteSchedule() {
    const bool is_explicit = plan_.schedule.frees == FreePolicy::kExplicit;
    json_.Key("schedule").BeginObject(JsonLayout::kLines);
    json_.Key("frees").Text(is_explicit ? kExplicitFrees : kLivenessFrees);
    json_.Key("steps").BeginArray(JsonLayout::kWrapped);
    for (const Step& step : plan_.schedule.steps) WriteStep(step);
    json_.End().End();
  }

  void WriteStep(const Step& step) {
    json_.BeginArray(JsonLayout::kInline);
    switch (step.kind) {
      case StepKind::kForward:
        json_.Text(kForwardStep).Integer(ids_.nodes[step.node()]);
        break;
      case StepKind::kLoss:
        json_.Text(kLossStep);
        break;
      case StepKind::kBackward:
        json_.Text(kBackwardStep).Integer(ids_.nodes[step.node()]);
        break;
      case StepKind::kFree:
        json_.Text(kFreeStep).Integer(ids_.tensors[step.tensor()]);
        break;
      case StepKind::kFreeGradient:
        json_.Text(kFreeGradientStep).Integer(ids_.tensors[step.tensor()]);
        break;
      case StepKind::kRun:
        json_.Text(kRunStep).Integer(ids_.nodes[step.node()]);
        break;
      case StepKind::kOut:
        json_.Text(kOutStep).Integer(ids_.tensors[step.tensor()]);
        break;
      case StepKind::kDrop:
        json_.Text(kDropStep).Integer(ids_.tensors[step.tensor()]);
        break;
      case StepKind::kIn:
        json_.Text(kInStep).Integer(ids_.tensors[step.tensor()]);
        break;
    }
    json_.End();
  }

  void WritePeak() {
    if (!plan_.peak) return;
    json_.Key("peak").BeginObject(JsonLayout::kLines);
    json_.Key("step").Integer(plan_.peak->step);
    json_.Key("live").BeginArray(JsonLayout::kWrapped);
    for (const LiveBuffer& buffer : plan_.peak->live) {
      json_.BeginArray(JsonLayout::kInline);
      if (buffer.kind == BufferKind::kWorkspace) {
        json_.Text(kLiveWorkspace).Integer(ids_.nodes[buffer.node()]);
      } else {
        json_.Text(buffer.kind == BufferKind::kTensor ? kLiveTensor : kLiveGradient);
        json_.Integer(ids_.tensors[buffer.tensor()]);
      }
      json_.Amount(buffer.bytes).End();
    }
    json_.End().End();
  }

  const Plan& plan_;
  const PlanIds ids_;
  const std::vector<Bytes> segment_peaks_;
  JsonWriter json_;
};

}  // namespace

std::string WritePlanJson(const Plan& plan, const TrainingStep& step) {
  CKPLAN_CHECK(
      plan.decisions.size() == step.node_count() && plan.labels.size() == step.node_count(),
      "a plan has a decision and a label for every node of its graph");
  std::vector<Bytes> segment_peaks;
  if (!step.is_joint()) segment_peaks = SegmentPeaksOf(step.forward(), plan);
  return PlanWriter(plan, PlanIdsOf(step), std::move(segment_peaks)).Write();
}

}  // namespace ckplan
