#include "lib/files/emit/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/planning/explain/memory_spans.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

std::string PrintableName(std::string_view name) { return Printable(name, kLongestName); }

template <typename Items, typename Write>
void WriteList(JsonWriter* json, std::string_view key, const Items& items, Write write) {
  json->Key(key).BeginArray(JsonLayout::kInline);
  for (const auto& item : items) write(item);
  json->End();
}

// Writes the data that all plans of a graph share. Nodes and tensors are rows, indexed by id.
class GraphText {
 public:
  explicit GraphText(const TracedPlan& traced) : traced_(traced), graph_(traced.graph) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("joint").Boolean(graph_.is_joint());
    WriteKinds();
    WriteNodes();
    WriteModules();
    WriteTensors();
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  // Writes the names of the kinds of memory in numeric order.
  void WriteKinds() {
    json_.Key("kinds").BeginArray(JsonLayout::kInline);
    for (size_t kind = 0; kind < ShownKinds(traced_.plan.schedule); ++kind) {
      json_.Text(traced_.NameOfKind(static_cast<MemoryKind>(kind)));
    }
    json_.End();
  }

  void WriteNodes() {
    std::vector<NodeId> nodes;
    for (size_t i = 0; i < graph_.node_count(); ++i) nodes.emplace_back(i);
    std::vector<std::string> ops;
    std::map<std::string, int64_t, std::less<>> number_of;
    WriteList(&json_, "nodes", nodes,
              [&](NodeId node) { json_.Text(PrintableName(graph_.NameOf(node))); });
    WriteList(&json_, "node_op", nodes, [&](NodeId node) {
      const std::string op = PrintableName(graph_.OpOf(node));
      const auto [found, is_new] = number_of.emplace(op, static_cast<int64_t>(ops.size()));
      if (is_new) ops.push_back(op);
      json_.Integer(found->second);
    });
    WriteList(&json_, "ops", ops, [&](const std::string& op) { json_.Text(op); });
    WriteList(&json_, "node_module", nodes, [&](NodeId node) { json_.Integer(ModuleOf(node)); });
    WriteList(&json_, "run_cost", nodes,
              [&](NodeId node) { json_.Amount(graph_.CostOf(graph_.RunOf(node))); });
    if (graph_.is_joint()) return;
    WriteList(&json_, "backward_cost", nodes,
              [&](NodeId node) { json_.Amount(graph_.CostOf(Step::Backward(node))); });
  }

  // Returns the number of the innermost module, or -1. Modules are numbered as they first appear.
  int64_t ModuleOf(NodeId node) {
    int64_t module = -1;
    for (const std::string& path : graph_.ModulesOf(node)) {
      const auto [found, is_new] =
          module_of_path_.emplace(path, static_cast<int64_t>(modules_.size()));
      if (is_new) modules_.push_back({PrintableName(path), module});
      module = found->second;
    }
    return module;
  }

  void WriteModules() {
    WriteList(&json_, "modules", modules_, [&](const Module& module) { json_.Text(module.path); });
    WriteList(&json_, "module_parent", modules_,
              [&](const Module& module) { json_.Integer(module.parent); });
  }

  // The producer is -1 for tensors that the plan does not manage: inputs, constants, and tensors in
  // the memory of another tensor.
  void WriteTensors() {
    std::vector<TensorId> tensors;
    for (size_t i = 0; i < graph_.tensor_count(); ++i) tensors.emplace_back(i);
    WriteList(&json_, "tensors", tensors,
              [&](TensorId tensor) { json_.Text(PrintableName(graph_.NameOf(tensor))); });
    WriteList(&json_, "tensor_bytes", tensors,
              [&](TensorId tensor) { json_.Amount(graph_.BytesOf(tensor)); });
    WriteList(&json_, "tensor_maker", tensors, [&](TensorId tensor) {
      const bool is_planned = graph_.StorageOf(tensor) == tensor && graph_.CountsInPeak(tensor);
      json_.Integer(is_planned ? graph_.ProducerOf(tensor).index() : -1);
    });
  }

  struct Module {
    std::string path;
    int64_t parent = -1;
  };
  const TracedPlan& traced_;
  const TrainingStep& graph_;
  JsonWriter json_;
  std::vector<Module> modules_;
  std::map<std::string, int64_t, std::less<>> module_of_path_;
};

char PhaseLetter(const TracedPlan& traced, size_t k) {
  const Step& step = traced.steps()[k];
  if (traced.has_run[k]) return 'r';
  if (step.kind == StepKind::kLoss) return 'l';
  if (step.is_free()) return 'x';
  if (step.kind == StepKind::kOut) return 'o';
  if (step.kind == StepKind::kDrop) return 'd';
  if (step.kind == StepKind::kIn) return 'i';
  return traced.graph.IsBackward(step) ? 'b' : 'f';
}

char BufferLetter(BufferKind kind) {
  return kind == BufferKind::kTensor ? 't' : kind == BufferKind::kGradient ? 'g' : 'w';
}

class PlanText {
 public:
  PlanText(const ReportPlan& plan, size_t graph)
      : traced_(*plan.traced), plan_(traced_.plan), name_(plan.name), graph_(graph) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("name").Text(PrintableName(name_));
    json_.Key("graph").Integer(static_cast<int64_t>(graph_));
    WriteRequest();
    WriteFigures();
    std::string actions;  // The first letters of the actions' names.
    for (const NodeDecision& decision : plan_.decisions) actions += NameOf(decision.action)[0];
    json_.Key("actions").Text(actions);
    WriteList(&json_, "reruns", plan_.decisions,
              [&](const NodeDecision& decision) { json_.Integer(decision.recompute_count); });
    WriteSteps();
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  void WriteRequest() {
    json_.Key("model").Text(PrintableName(plan_.model.name));
    json_.Key("algorithm").Text(plan_.request.algorithm);
    json_.Key("settings").BeginArray(JsonLayout::kInline);
    for (const RequestField& field : RequestFields()) {
      const bool has_own_place = field.name == "algorithm" || field.name == "budget" ||
                                 field.name == "decisions" || field.name == "cost_unit";
      if (has_own_place || IsDefault(field, plan_.request)) continue;
      json_.Text(PrintableName(PhraseOf(field, plan_.request)));
    }
    json_.End();
    json_.Key("budget").Amount(plan_.request.budget.in_bytes());
    json_.Key("cost_unit").Text(PrintableName(plan_.request.cost_unit));
  }

  void WriteFigures() {
    const PlanFigures& figures = plan_.figures;
    json_.Key("peak").Amount(figures.peak);
    json_.Key("peak_step").Integer(static_cast<int64_t>(traced_.timeline.peak_step));
    json_.Key("keep_all_peak").Amount(figures.baseline_peak);
    WriteOtherMicroBatches();
    json_.Key("arena").Amount(figures.arena);
    json_.Key("constants").Amount(TotalConstants(figures));
    json_.Key("step_cost").Amount(figures.forward_cost + figures.backward_cost);
    json_.Key("added_cost").Amount(figures.overhead);
    json_.Key("is_optimal").Boolean(figures.is_optimal);
    json_.Key("guarantee").Text(PrintableName(figures.guarantee));
    json_.Key("least_added_cost").Amount(figures.lower_bound_cost);
    const bool is_certified = figures.certificate.has_value();
    json_.Key("bound_scope").Text(is_certified ? DescriptionOf(figures.certificate->scope) : "");
    json_.Key("least_peak");
    is_certified ? json_.Amount(figures.certificate->peak.bytes) : json_.Null();
    json_.Key("found").BeginArray(JsonLayout::kInline);
    for (const CurvePoint& point : figures.curve) json_.Amount(point.peak).Amount(point.overhead);
    json_.End();
  }

  // Writes the other micro-batches' memory at the peak and at the keep-all peak.
  void WriteOtherMicroBatches() {
    const TrainingStep& graph = traced_.graph;
    const Bytes keep_all = plan_.request.pipeline ? plan_.figures.baseline_peak -
                                                        BuildTimeline(graph, graph.KeepAll()).peak
                                                  : Bytes(0);
    json_.Key("other_micro_batches").Amount(plan_.figures.other_micro_batches);
    json_.Key("keep_all_other_micro_batches").Amount(keep_all);
  }

  void WriteSteps() {
    const MemorySpans memory = FindMemorySpans(traced_);
    std::string phases;
    for (size_t k = 0; k < traced_.steps().size(); ++k) phases += PhaseLetter(traced_, k);
    json_.Key("phases").Text(phases);
    WriteList(&json_, "step_of", traced_.steps(),
              [&](const Step& step) { json_.Integer(step.index); });
    // For each step: its number of moments, and the moment with the most memory.
    json_.Key("moments").BeginArray(JsonLayout::kInline);
    for (size_t k = 0; k + 1 < memory.step_begin.size(); ++k) {
      json_.Integer(memory.step_begin[k + 1] - memory.step_begin[k]);
    }
    json_.End();
    json_.Key("highest").BeginArray(JsonLayout::kInline);
    for (size_t k = 0; k < memory.highest.size(); ++k) {
      json_.Integer(memory.highest[k] - memory.step_begin[k]);
    }
    json_.End();
    WriteList(&json_, "keep_all", KeepAllMemory(traced_),
              [&](Bytes bytes) { json_.Amount(bytes); });
    WriteSpans(memory.spans);
    if (HasTransfers(plan_.schedule)) WriteOffload();
  }

  // Writes the copies over the link and the times of the operations.
  void WriteOffload() {
    const Transfers transfers = TransfersOf(traced_.graph, plan_.schedule);
    std::string ways;
    for (const LinkCopy& copy : transfers.copies) ways += copy.way == CopyWay::kOut ? 'o' : 'i';
    json_.Key("offload").BeginObject(JsonLayout::kLines);
    json_.Key("link").Text(PrintableName(TextOf(*plan_.request.offload)));
    json_.Key("host_peak").Amount(transfers.host_peak);
    json_.Key("transferred").Amount(transfers.transferred);
    json_.Key("stall").Amount(transfers.stall);
    json_.Key("makespan").Amount(transfers.makespan);
    json_.Key("copy_ways").Text(ways);
    WriteList(&json_, "copy_of", transfers.copies,
              [&](const LinkCopy& copy) { json_.Integer(copy.value.index()); });
    WriteList(&json_, "copy_times", transfers.copies,
              [&](const LinkCopy& copy) { json_.Amount(copy.begin).Amount(copy.end); });
    WriteList(&json_, "step_waits", transfers.steps,
              [&](const StepTime& time) { json_.Amount(time.waits); });
    WriteWork(transfers);
    json_.End();
  }

  // Writes the intervals in which operations run without waiting, and the waits.
  void WriteWork(const Transfers& transfers) {
    std::vector<Cost> work, waits;
    for (const StepTime& time : transfers.steps) {
      if (time.waits > Cost(0)) waits.insert(waits.end(), {time.begin - time.waits, time.begin});
      if (time.end == time.begin) continue;
      const bool continues = !work.empty() && work.back() == time.begin;
      if (continues) work.back() = time.end;
      if (!continues) work.insert(work.end(), {time.begin, time.end});
    }
    WriteList(&json_, "work", work, [&](Cost time) { json_.Amount(time); });
    WriteList(&json_, "waits", waits, [&](Cost time) { json_.Amount(time); });
  }

  void WriteSpans(const std::vector<MemorySpan>& spans) {
    std::string holds, kinds;
    for (const MemorySpan& span : spans) {
      holds += BufferLetter(span.holds);
      kinds += static_cast<char>('0' + static_cast<int>(span.kind));
    }
    json_.Key("span_holds").Text(holds);
    json_.Key("span_kind").Text(kinds);
    WriteList(&json_, "span_of", spans, [&](const MemorySpan& span) {
      const bool is_workspace = span.holds == BufferKind::kWorkspace;
      json_.Integer(is_workspace ? span.node.index() : span.tensor.index());
    });
    WriteList(&json_, "span_bytes", spans,
              [&](const MemorySpan& span) { json_.Amount(span.bytes); });
    WriteList(&json_, "span_begin", spans,
              [&](const MemorySpan& span) { json_.Integer(span.begin); });
    WriteList(&json_, "span_moments", spans,
              [&](const MemorySpan& span) { json_.Integer(span.end - span.begin); });
    WriteList(&json_, "span_read_count", spans, [&](const MemorySpan& span) {
      json_.Integer(static_cast<int64_t>(span.reads.size()));
    });
    json_.Key("span_reads").BeginArray(JsonLayout::kInline);
    for (const MemorySpan& span : spans) {
      for (const int32_t read : span.reads) json_.Integer(read);
    }
    json_.End();
  }

  const TracedPlan& traced_;
  const Plan& plan_;
  const std::string& name_;
  size_t graph_;
  JsonWriter json_;
};

std::string CurveText(const ReportCurve& curve) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kInline);
  json.Key("name")
      .Text(PrintableName(curve.name))
      .Key("plan")
      .Integer(static_cast<int64_t>(curve.plan));
  json.Key("failure").Text(PrintableMessage(curve.failure));
  json.Key("points").BeginArray(JsonLayout::kInline);
  for (const CurvePoint& point : curve.points) json.Amount(point.peak).Amount(point.overhead);
  json.End().End();
  return std::move(json).Finish();
}

std::string DataText(std::span<const ReportPlan> plans, std::span<const ReportCurve> curves) {
  std::vector<std::string> graph_texts, plan_texts, curve_texts;
  for (const ReportPlan& plan : plans) {
    PollStop();
    std::string graph = GraphText(*plan.traced).Write();
    const auto same = std::find(graph_texts.begin(), graph_texts.end(), graph);
    const auto number = static_cast<size_t>(same - graph_texts.begin());
    if (same == graph_texts.end()) graph_texts.push_back(std::move(graph));
    plan_texts.push_back(PlanText(plan, number).Write());
  }
  for (const ReportCurve& curve : curves) curve_texts.push_back(CurveText(curve));
  return fmt::format(
      "{{\"version\": \"{}\",\n\"graphs\": [{}],\n\"plans\": [{}],\n\"curves\": [{}]}}",
      CKPLAN_VERSION, fmt::join(graph_texts, ","), fmt::join(plan_texts, ","),
      fmt::join(curve_texts, ","));
}

// Replaces each {{place}} in the template. Does not replace places within inserted text.
std::string FillTemplate(std::string_view page,
                         const std::map<std::string_view, std::string>& places) {
  std::string text;
  for (;;) {
    const size_t open = page.find("{{");
    const size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    text += page.substr(0, open);
    text += places.at(page.substr(open + 2, close - open - 2));
    page.remove_prefix(close + 2);
  }
  return text + std::string(page);
}

}  // namespace

std::string JsonInScript(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {  // In JSON, these occur only in strings.
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

std::string WriteReport(std::span<const ReportPlan> plans, std::span<const ReportCurve> curves) {
  const std::string model = PrintableName(plans.front().traced->plan.model.name);
  return FillTemplate(ReportHtml(), {{"title", XmlText(fmt::format("{}: plan by ckplan", model))},
                                     {"style", std::string(ReportStyle())},
                                     {"data", JsonInScript(DataText(plans, curves))},
                                     {"script", std::string(ReportScript())}});
}

}  // namespace ckplan
