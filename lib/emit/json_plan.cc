#include "lib/emit/json_plan.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "lib/emit/json_reader.h"
#include "lib/emit/json_writer.h"

namespace ckplan {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();

constexpr std::string_view kForwardStep = "f";
constexpr std::string_view kLossStep = "loss";
constexpr std::string_view kBackwardStep = "b";
constexpr std::string_view kFreeStep = "free";
constexpr std::string_view kOptimal = "optimal";
constexpr std::string_view kFeasible = "feasible";
constexpr std::string_view kLivenessFrees = "liveness";
constexpr std::string_view kExplicitFrees = "explicit";

// ---- Writing ----

class PlanWriter {
 public:
  PlanWriter(const Plan& plan, const TensorGraph& graph) : plan_(plan), graph_(graph) {}

  std::string Write() && {
    json_.BeginObject(JsonLayout::kLines);
    json_.Key("schema_version").Text(kSchemaVersion);
    json_.Key("tool").BeginObject(JsonLayout::kInline);
    json_.Key("name").Text("ckplan").Key("version").Text(CKPLAN_VERSION).End();
    WriteModel();
    WriteRequest();
    WriteResult();
    json_.Key("nodes").BeginArray(JsonLayout::kLines);
    for (const NodeId id : graph_.nodes().ids()) WriteNode(id);
    json_.End();
    WriteSchedule();
    json_.Key("arena").BeginObject(JsonLayout::kLines);
    json_.Key("offset_bytes").BeginArray(JsonLayout::kWrapped);
    for (const Bytes offset : plan_.offsets) json_.Amount(offset);
    json_.End().End();
    json_.End();
    return std::move(json_).Finish();
  }

 private:
  void WriteModel() {
    const ModelIdentity& model = plan_.model;
    json_.Key("model").BeginObject(JsonLayout::kLines);
    json_.Key("name").Text(model.name);
    json_.Key("sha256").Text(model.sha256);
    WriteNumbers("dims", model.dims);
    WriteNumbers("opsets", model.opsets);
    json_.Key("input_shapes").BeginObject(JsonLayout::kInline);
    for (const auto& [input, shape] : model.input_shapes) {
      json_.Key(input).BeginArray(JsonLayout::kInline);
      for (const int64_t size : shape) json_.Integer(size);
      json_.End();
    }
    json_.End().End();
  }

  void WriteNumbers(std::string_view key, const std::map<std::string, int64_t>& numbers) {
    json_.Key(key).BeginObject(JsonLayout::kInline);
    for (const auto& [name, number] : numbers) json_.Key(name).Integer(number);
    json_.End();
  }

  void WriteRequest() {
    const PlanRequest& request = plan_.request;
    json_.Key("request").BeginObject(JsonLayout::kLines);
    json_.Key("algorithm").Text(request.algorithm);
    json_.Key("objective").Text(NameOf(request.objective));
    if (request.granularity != Granularity::kNode) {
      json_.Key("granularity").Text(NameOf(request.granularity));
    }
    json_.Key("budget_bytes").Amount(request.budget);
    json_.Key("paper_budget_bytes").Amount(request.paper_budget);
    json_.Key("cost_model").Text(request.cost_model);
    json_.Key("cost_unit").Text(request.cost_unit);
    json_.Key("autograd").Text(NameOf(request.autograd));
    json_.Key("optimizer").Text(NameOf(request.optimizer));
    json_.Key("align_bytes").Integer(request.align_bytes);
    json_.Key("liveness").Boolean(request.uses_liveness);
    json_.End();
  }

  void WriteResult() {
    const PlanFigures& figures = plan_.figures;
    json_.Key("result").BeginObject(JsonLayout::kLines);
    json_.Key("status").Text(figures.is_optimal ? kOptimal : kFeasible);
    json_.Key("guarantee").Text(figures.guarantee);
    json_.Key("peak_bytes").Amount(figures.peak);
    json_.Key("baseline_peak_bytes").Amount(figures.baseline_peak);
    json_.Key("arena_bytes").Amount(figures.arena);
    if (figures.static_allocations) {
      json_.Key("static_allocation_bytes").BeginObject(JsonLayout::kInline);
      json_.Key("none").Amount(figures.static_allocations->none);
      json_.Key("inplace").Amount(figures.static_allocations->inplace);
      json_.Key("sharing").Amount(figures.static_allocations->sharing);
      json_.End();
    }
    json_.Key("overhead_cost").Amount(figures.overhead);
    json_.Key("forward_cost").Amount(figures.forward_cost);
    json_.Key("backward_cost").Amount(figures.backward_cost);
    json_.Key("lower_bound_cost").Amount(figures.lower_bound_cost);
    json_.Key("constant_bytes").BeginObject(JsonLayout::kInline);
    json_.Key("parameters").Amount(figures.constants.parameters);
    json_.Key("parameter_gradients").Amount(figures.constants.parameter_gradients);
    json_.Key("optimizer_state").Amount(figures.optimizer_state);
    json_.Key("inputs").Amount(figures.constants.inputs);
    json_.End();
    json_.Key("paper").BeginObject(JsonLayout::kInline);
    json_.Key("budget_bytes").Amount(figures.paper.budget);
    json_.Key("peak_bytes").Amount(figures.paper.peak);
    json_.Key("overhead_cost").Amount(figures.paper.overhead);
    json_.End().End();
  }

  void WriteNode(NodeId id) {
    const Node& node = graph_.node(id);
    const NodeDecision& decision = plan_.decisions[id];
    json_.BeginObject(JsonLayout::kInline);
    json_.Key("id").Integer(node.file_id);
    json_.Key("name").Text(node.name);
    json_.Key("op").Text(node.op);
    json_.Key("action").Text(NameOf(decision.action));
    json_.Key("segment").Integer(decision.segment);
    json_.Key("recompute_count").Integer(decision.recompute_count);
    json_.Key("outputs").BeginArray(JsonLayout::kInline);
    for (const TensorId output : node.outputs) {
      const Tensor& tensor = graph_.tensor(output);
      json_.BeginObject(JsonLayout::kInline);
      json_.Key("id").Integer(tensor.file_id);
      json_.Key("name").Text(tensor.name);
      json_.Key("bytes").Amount(tensor.bytes);
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
        json_.Text(kForwardStep).Integer(graph_.node(step.node()).file_id);
        break;
      case StepKind::kLoss:
        json_.Text(kLossStep);
        break;
      case StepKind::kBackward:
        json_.Text(kBackwardStep).Integer(graph_.node(step.node()).file_id);
        break;
      case StepKind::kFree:
        json_.Text(kFreeStep).Integer(graph_.tensor(step.tensor()).file_id);
        break;
    }
    json_.End();
  }

  const Plan& plan_;
  const TensorGraph& graph_;
  JsonWriter json_;
};

// ---- Reading: what needs no graph ----

// The enumerator whose name the text is.
template <typename Enum>
Enum ReadEnum(const JsonView& json, std::initializer_list<Enum> enumerators) {
  std::vector<std::string_view> names;
  for (const Enum enumerator : enumerators) names.push_back(NameOf(enumerator));
  return enumerators.begin()[json.Choice(names)];
}

template <typename Enum>
Enum ReadEnumOr(const JsonView& json, std::string_view key, Enum absent,
                std::initializer_list<Enum> enumerators) {
  return json.has(key) ? ReadEnum(json[key], enumerators) : absent;
}

template <typename Amount>
std::optional<Amount> ReadOptionalAmount(const JsonView& json, std::string_view key) {
  if (!json.has_value(key)) return std::nullopt;
  return Amount(json[key].Integer());
}

std::map<std::string, int64_t> ReadNumbers(const JsonView& json) {
  std::map<std::string, int64_t> numbers;
  json.ForEachMember([&](const std::string& name, const JsonView& number) {
    numbers.emplace(name, number.Integer());
  });
  return numbers;
}

ModelIdentity ReadModel(const JsonView& json) {
  ModelIdentity model;
  model.name = json["name"].Text();
  model.sha256 = json["sha256"].Text();
  model.dims = ReadNumbers(json["dims"]);
  model.opsets = ReadNumbers(json["opsets"]);
  if (!json.has("input_shapes")) return model;
  json["input_shapes"].ForEachMember([&](const std::string& input, const JsonView& shape) {
    std::vector<int64_t>& sizes = model.input_shapes[input];
    for (size_t i = 0; i < shape.size(); ++i) sizes.push_back(shape.at(i).Integer());
  });
  return model;
}

PlanRequest ReadRequest(const JsonView& json) {
  PlanRequest request;
  request.algorithm = json["algorithm"].Text();
  request.objective = ReadEnum(json["objective"], {Objective::kTime, Objective::kMemory});
  request.granularity = ReadEnumOr(json, "granularity", request.granularity,
                                   {Granularity::kNode, Granularity::kLayer});
  request.budget = json["budget_bytes"].AmountOrNull<Bytes>();
  request.paper_budget = ReadOptionalAmount<Bytes>(json, "paper_budget_bytes");
  request.cost_model = json["cost_model"].Text();
  request.cost_unit = json.TextOr("cost_unit", request.cost_unit);
  request.autograd =
      ReadEnumOr(json, "autograd", request.autograd, {Autograd::kMinimal, Autograd::kTorch});
  request.optimizer = ReadEnumOr(json, "optimizer", request.optimizer,
                                 {Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kAdam});
  if (json.has("align_bytes")) {
    request.align_bytes = json["align_bytes"].Integer(1, kMaxTotalBytes.count());
  }
  request.uses_liveness = json.BooleanOr("liveness", request.uses_liveness);
  return request;
}

PlanFigures ReadFigures(const JsonView& json) {
  PlanFigures figures;
  figures.is_optimal = json["status"].Choice({kFeasible, kOptimal}) == 1;
  figures.guarantee = json.TextOr("guarantee", "");
  figures.peak = Bytes(json["peak_bytes"].Integer());
  figures.baseline_peak = Bytes(json["baseline_peak_bytes"].Integer());
  figures.arena = Bytes(json["arena_bytes"].Integer());
  if (json.has("static_allocation_bytes")) {
    const JsonView bytes = json["static_allocation_bytes"];
    figures.static_allocations = {Bytes(bytes["none"].Integer()), Bytes(bytes["inplace"].Integer()),
                                  Bytes(bytes["sharing"].Integer())};
  }
  figures.overhead = Cost(json["overhead_cost"].Integer());
  figures.forward_cost = Cost(json["forward_cost"].Integer());
  figures.backward_cost = Cost(json.IntegerOr("backward_cost", 0));
  figures.lower_bound_cost = json["lower_bound_cost"].AmountOrNull<Cost>();
  const JsonView constants = json["constant_bytes"];
  figures.constants.parameters = Bytes(constants["parameters"].Integer());
  figures.constants.parameter_gradients = Bytes(constants["parameter_gradients"].Integer());
  figures.optimizer_state = Bytes(constants["optimizer_state"].Integer());
  figures.constants.inputs = Bytes(constants["inputs"].Integer());
  const JsonView paper = json["paper"];
  figures.paper.budget = paper["budget_bytes"].AmountOrNull<Bytes>();
  figures.paper.peak = Bytes(paper["peak_bytes"].Integer());
  figures.paper.overhead = Cost(paper["overhead_cost"].Integer());
  return figures;
}

NodeDecision ReadDecision(const JsonView& row) {
  NodeDecision decision;
  decision.action =
      ReadEnum(row["action"], {NodeAction::kKeep, NodeAction::kRecompute, NodeAction::kTransient});
  decision.segment = static_cast<int32_t>(row["segment"].Integer(0, kMaxInt32));
  decision.recompute_count = static_cast<int32_t>(row["recompute_count"].Integer(0, kMaxInt32));
  return decision;
}

// Names are those of the plan's own graph; nodes without one go by their number.
std::vector<PlanDigest::Row> ReadRows(const JsonView& json) {
  std::vector<PlanDigest::Row> rows;
  for (size_t i = 0; i < json.size(); ++i) {
    const JsonView row = json.at(i);
    PlanDigest::Row read;
    read.name = row.TextOr("name", "");
    if (read.name.empty()) read.name = fmt::format("node {}", row["id"].Integer());
    read.op = row.TextOr("op", "");
    read.decision = ReadDecision(row);
    if (row.has("outputs")) {
      const JsonView outputs = row["outputs"];
      for (size_t k = 0; k < outputs.size(); ++k) {
        read.bytes += Bytes(outputs.at(k)["bytes"].Integer(0, kMaxTotalBytes.count()));
        read.bytes = std::min(read.bytes, kMaxTotalBytes);
      }
    }
    rows.push_back(std::move(read));
  }
  return rows;
}

// ---- Reading: what refers to the graph ----

class GraphPartReader {
 public:
  explicit GraphPartReader(const TensorGraph& graph) : graph_(graph) {
    for (const NodeId id : graph.nodes().ids()) nodes_.emplace(graph.node(id).file_id, id);
    for (const TensorId id : graph.tensors().ids()) tensors_.emplace(graph.tensor(id).file_id, id);
  }

  IdVector<NodeId, NodeDecision> ReadDecisions(const JsonView& rows) const {
    IdVector<NodeId, NodeDecision> decisions(graph_.nodes().size());
    if (rows.is_array() && rows.size() != decisions.size()) {
      rows.Fault(
          fmt::format("has {} rows, but the graph \"{}\" has {} nodes; the plan is for "
                      "another graph",
                      rows.size(), graph_.name(), decisions.size()));
      return decisions;
    }
    IdVector<NodeId, bool> is_read(decisions.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const JsonView row = rows.at(i);
      const NodeId node = FindNode(row["id"]);
      if (node.is_none()) continue;
      if (is_read[node]) row.Fault("this node has a row already");
      is_read[node] = true;
      decisions[node] = ReadDecision(row);
    }
    return decisions;
  }

  Schedule ReadSchedule(const JsonView& json) const {
    Schedule schedule;
    if (json.has("frees") && json["frees"].Choice({kLivenessFrees, kExplicitFrees}) == 1) {
      schedule.frees = FreePolicy::kExplicit;
    }
    const JsonView steps = json["steps"];
    schedule.steps.reserve(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) schedule.steps.push_back(ReadStep(steps.at(i)));
    return schedule;
  }

 private:
  Step ReadStep(const JsonView& json) const {
    const size_t kind = json.at(0).Choice({kForwardStep, kLossStep, kBackwardStep, kFreeStep});
    const size_t size = kind == 1 ? 1 : 2;
    if (json.size() > size)
      json.Fault(fmt::format("has {} members, must have {}", json.size(), size));
    if (kind == 0) return Step::Forward(FindNode(json.at(1)));
    if (kind == 1) return Step::Loss();
    if (kind == 2) return Step::Backward(FindNode(json.at(1)));
    return Step::Free(FindIn(tensors_, json.at(1), "tensor"));
  }

  NodeId FindNode(const JsonView& id) const { return FindIn(nodes_, id, "node"); }

  template <typename IdType>
  IdType FindIn(const std::unordered_map<int64_t, IdType>& ids, const JsonView& id,
                std::string_view kind) const {
    const int64_t number = id.Integer();
    if (!id.is_file_id()) return IdType();
    const auto found = ids.find(number);
    if (found != ids.end()) return found->second;
    id.Fault(fmt::format("the graph \"{}\" has no {} {}; the plan is for another graph",
                         graph_.name(), kind, number));
    return IdType();
  }

  const TensorGraph& graph_;
  std::unordered_map<int64_t, NodeId> nodes_;
  std::unordered_map<int64_t, TensorId> tensors_;
};

std::vector<Bytes> ReadOffsets(const JsonView& root) {
  std::vector<Bytes> offsets;
  if (!root.has("arena")) return offsets;
  const JsonView list = root["arena"]["offset_bytes"];
  offsets.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) offsets.emplace_back(list.at(i).Integer());
  return offsets;
}

}  // namespace

std::string WritePlanJson(const Plan& plan, const TensorGraph& graph) {
  CKPLAN_CHECK(plan.decisions.size() == graph.nodes().size(),
               "a plan decides about every node of its graph");
  return PlanWriter(plan, graph).Write();
}

Result<PlanHeader> ReadPlanHeader(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*may_lack=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());  // Another version may mean anything by its fields.
  PlanHeader header{ReadRequest(root["request"]), ReadModel(root["model"])};
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return header;
}

Result<PlanDigest> ReadPlanDigest(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*may_lack=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  PlanDigest digest{ReadRequest(root["request"]), ReadModel(root["model"]),
                    ReadFigures(root["result"]), ReadRows(root["nodes"])};
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return digest;
}

Result<Plan> ReadPlanJson(std::string_view text, const TensorGraph& graph,
                          const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*may_lack=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  Plan plan;
  plan.request = ReadRequest(root["request"]);
  plan.model = ReadModel(root["model"]);
  plan.figures = ReadFigures(root["result"]);
  const GraphPartReader reader(graph);
  plan.decisions = reader.ReadDecisions(root["nodes"]);
  plan.schedule = reader.ReadSchedule(root["schedule"]);
  plan.offsets = ReadOffsets(root);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return plan;
}

}  // namespace ckplan
