#include <optional>
#include <utility>

#include "cli/ckplan/explain_text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/plan/diff.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/training_step.h"

namespace ckplan {
namespace {

class ExplanationJson {
 public:
  explicit ExplanationJson(const TracedPlan& traced) : traced_(traced), graph_(traced.graph) {
    const Plan& plan = traced.plan;
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("schema_version").Text("1.0");
    json_.Key("model").Text(plan.model.name);
    json_.Key("sha256").Text(plan.model.sha256);
    json_.Key("algorithm").Text(plan.request.algorithm);
    json_.Key("budget_bytes").Amount(plan.request.budget.in_bytes());
    json_.Key("peak_bytes").Amount(plan.figures.peak);
    json_.Key("cost_unit").Text(plan.request.cost_unit);
    json_.Key("step_cost").Amount(plan.figures.forward_cost + plan.figures.backward_cost);
    json_.Key("overhead_cost").Amount(plan.figures.overhead);
    WriteBounds(plan.figures);
  }

  std::string Peak(const PeakExplanation& peak) && {
    json_.Key("peak").BeginObject(JsonLayout::kLines);
    json_.Key("step").Integer(static_cast<int64_t>(peak.step));
    json_.Key("step_name").Text(traced_.NameOfStep(peak.step));
    json_.Key("equal_steps").Integer(static_cast<int64_t>(peak.equal_steps));
    json_.Key("used_bytes").Amount(peak.used);
    if (peak.other_micro_batches > Bytes(0)) {
      json_.Key("other_micro_batches_bytes").Amount(peak.other_micro_batches);
    }
    json_.Key("by_kind").BeginObject(JsonLayout::kInline);
    for (size_t kind = 0; kind < ShownKinds(traced_.plan.schedule); ++kind) {
      const std::string_view name = NameOf(static_cast<MemoryKind>(kind));
      json_.Key(std::string(name) + "_bytes").Amount(peak.by_kind[kind]);
    }
    json_.End();
    json_.Key("largest_step").BeginObject(JsonLayout::kInline);
    json_.Key("step").Integer(static_cast<int64_t>(peak.largest.step));
    json_.Key("step_name").Text(traced_.NameOfStep(peak.largest.step));
    json_.Key("bytes").Amount(peak.largest.bytes).End();
    json_.Key("live").BeginArray(JsonLayout::kLines);
    for (const LiveAtPeak& item : peak.live) WriteLive(item);
    json_.End();
    json_.Key("releases").BeginArray(JsonLayout::kLines);
    for (const Release& release : peak.next) {
      const LiveAtPeak& item = peak.live[release.live];
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("tensor").Text(graph_.NameOf(item.tensor)).Key("bytes").Amount(item.bytes);
      WriteMeasured(release.then);
      if (release.is_moved) json_.Key("is_moved").Boolean(true);
      json_.End();
    }
    json_.End();
    json_.Key("unmeasured").Integer(static_cast<int64_t>(peak.unmeasured)).End();
    json_.Key("subjects").BeginArray(JsonLayout::kLines).End();
    json_.End();
    return std::move(json_).Finish();
  }

  std::string Subjects(const std::vector<ExplainedSubject>& subjects) && {
    json_.Key("peak").Null();
    json_.Key("subjects").BeginArray(JsonLayout::kLines);
    for (const ExplainedSubject& subject : subjects) WriteSubject(subject);
    json_.End().End();
    return std::move(json_).Finish();
  }

 private:
  void WriteBounds(const PlanFigures& figures) {
    const bool has_certificate = figures.certificate.has_value();
    json_.Key("bounds").BeginObject(JsonLayout::kInline);
    json_.Key("overhead_cost").Amount(figures.lower_bound_cost);
    json_.Key("overhead_scope");
    has_certificate ? json_.Text(NameOf(figures.certificate->scope)) : json_.Null();
    json_.Key("peak_bytes");
    has_certificate ? json_.Amount(figures.certificate->peak.bytes) : json_.Null();
    json_.Key("peak_scope");
    has_certificate ? json_.Text(NameOf(figures.certificate->peak.scope)) : json_.Null();
    json_.End();
  }

  void WriteMeasured(const Simulation& measured) {
    json_.Key("peak_bytes").Amount(measured.peak);
    json_.Key("overhead_cost").Amount(measured.overhead);
  }

  void WriteMeasured(std::string_view key, const std::optional<Simulation>& measured) {
    json_.Key(key);
    if (!measured) {
      json_.Null();
      return;
    }
    json_.BeginObject(JsonLayout::kInline);
    WriteMeasured(*measured);
    json_.End();
  }

  void WriteModules(NodeId node) {
    json_.Key("modules").BeginArray(JsonLayout::kInline);
    if (!node.is_none()) {
      for (const std::string& path : graph_.ModulesOf(node)) json_.Text(path);
    }
    json_.End();
  }

  void WriteLive(const LiveAtPeak& item) {
    const bool is_workspace = item.holds == BufferKind::kWorkspace;
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("holds").Text(is_workspace                          ? "workspace"
                            : item.holds == BufferKind::kGradient ? "gradient"
                                                                  : "tensor");
    json_.Key("kind").Text(NameOf(item.kind));
    json_.Key("tensor");
    is_workspace ? json_.Null() : json_.Text(graph_.NameOf(item.tensor));
    json_.Key("node");
    item.node.is_none() ? json_.Null() : json_.Text(graph_.NameOf(item.node));
    WriteModules(item.node);
    json_.Key("bytes").Amount(item.bytes);
    json_.Key("since_step").Integer(item.since).Key("until_step").Integer(item.until);
    json_.Key("next_read_step");
    item.next_read < 0 ? json_.Null() : json_.Integer(item.next_read);
    json_.Key("is_used").Boolean(item.is_used);
    json_.End();
  }

  static std::string_view KindOf(const Subject& subject) {
    if (!subject.node.is_none()) return "node";
    if (subject.absent == nullptr) return "tensor";
    switch (subject.absent->kind) {
      case AbsentValue::Kind::kView:
        return "view";
      case AbsentValue::Kind::kConstant:
        return "constant";
      case AbsentValue::Kind::kUnread:
        return "unread";
    }
    return "";
  }

  void WriteSubject(const ExplainedSubject& explained) {
    const Subject& subject = explained.subject;
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("kind").Text(KindOf(subject));
    json_.Key("name").Text(subject.name);
    json_.Key("tensors").BeginArray(JsonLayout::kLines);
    for (size_t i = 0; i < explained.tensors.size(); ++i) {
      WriteTensor(subject.tensors[i], explained.tensors[i]);
    }
    json_.End().End();
  }

  void WriteTensor(TensorId asked, const TensorExplanation& tensor) {
    const NodeId producer = graph_.ProducerOf(tensor.tensor);
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("name").Text(graph_.NameOf(tensor.tensor));
    json_.Key("alias");
    asked == tensor.tensor ? json_.Null() : json_.Text(graph_.NameOf(asked));
    json_.Key("bytes").Amount(graph_.BytesOf(tensor.tensor));
    json_.Key("node");
    producer.is_none() ? json_.Null() : json_.Text(graph_.NameOf(producer));
    json_.Key("op").Text(producer.is_none() ? "" : graph_.OpOf(producer));
    WriteModules(producer);
    json_.Key("action");
    producer.is_none() ? json_.Null() : json_.Text(NameOf(traced_.plan.decisions[producer].action));
    json_.Key("run_cost").Amount(producer.is_none() ? Cost(0) : graph_.RunCostOf(producer));
    json_.Key("reason").Text(NameOf(tensor.reason));
    json_.Key("stays").BeginArray(JsonLayout::kLines);
    for (const Stay& stay : tensor.stays) WriteStay(stay);
    json_.End();
    json_.Key("gap");
    if (tensor.gap) {
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("from_step").Integer(tensor.gap->from).Key("to_step").Integer(tensor.gap->to);
      json_.Key("is_at_peak").Boolean(tensor.gap->is_at_peak).End();
    } else {
      json_.Null();
    }
    WriteMeasured("if_freed", tensor.if_freed);
    json_.Key("again_step").Integer(tensor.again_at);
    WriteMeasured("if_kept", tensor.if_kept);
    if (!tensor.copies.empty()) WriteCopies(tensor.copies);
    json_.End();
  }

  void WriteCopies(const std::vector<LinkCopy>& copies) {
    json_.Key("copies").BeginArray(JsonLayout::kLines);
    for (const LinkCopy& copy : copies) {
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("way").Text(copy.way == CopyWay::kOut ? "out" : "in");
      json_.Key("step").Integer(copy.step);
      json_.Key("begin_cost").Amount(copy.begin).Key("end_cost").Amount(copy.end).End();
    }
    json_.End();
  }

  void WriteStay(const Stay& stay) {
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("kind").Text(NameOf(stay.kind));
    json_.Key("since_step").Integer(stay.since).Key("until_step").Integer(stay.until);
    json_.Key("read_steps").BeginArray(JsonLayout::kInline);
    for (const int32_t read : stay.reads) json_.Integer(read);
    json_.End();
    json_.Key("is_at_peak").Boolean(stay.is_at_peak).End();
  }

  const TracedPlan& traced_;
  const TrainingStep graph_;
  JsonWriter json_;
};

}  // namespace

std::string PeakJson(const TracedPlan& traced, const PeakExplanation& peak) {
  return ExplanationJson(traced).Peak(peak);
}

std::string SubjectsJson(const TracedPlan& traced, const std::vector<ExplainedSubject>& subjects) {
  return ExplanationJson(traced).Subjects(subjects);
}

}  // namespace ckplan
