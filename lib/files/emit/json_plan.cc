#include "lib/files/emit/json_plan.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <utility>

#include "lib/files/emit/json_plan_words.h"
#include "lib/files/emit/json_reader.h"
#include "lib/files/emit/json_request.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/plan/segment_peaks.h"

namespace ckplan {
namespace {

constexpr int64_t kMaxInt32 = std::numeric_limits<int32_t>::max();
// Limits for a plan's figures, low enough that sums do not overflow. A node may run many times, so
// an overhead can exceed the cost of a pass.
constexpr int64_t kMaxBytes = 8 * kMaxTotalBytes.count();
constexpr int64_t kMaxOverhead = int64_t{1} << 62;

Bytes ReadBytes(const JsonView& json) { return Bytes(json.Integer(0, kMaxBytes)); }
// A joint graph's plan may skip operations that nothing needs, so its overhead can be negative.
enum class PlanKind { kForward, kJoint };
Cost ReadOverhead(const JsonView& json, PlanKind kind) {
  return Cost(json.Integer(kind == PlanKind::kJoint ? -kMaxTotalCost.count() : 0, kMaxOverhead));
}
Cost ReadPassCost(const JsonView& json) { return Cost(json.Integer(0, kMaxTotalCost.count())); }

// ---- Parts that can be read without the graph ----

template <typename Enum>
Enum ReadEnum(const JsonView& json, std::initializer_list<Enum> enumerators) {
  std::vector<std::string_view> names;
  for (const Enum enumerator : enumerators) names.push_back(NameOf(enumerator));
  return enumerators.begin()[json.Choice(names)];
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
  model.opsets = ReadNumbers(json["opsets"]);
  return model;
}

// The fields of the request are split between two parts of the file.
PlanRequest ReadRequest(const JsonView& request_part, const JsonView& model_part) {
  PlanRequest request;
  for (const RequestField& field : RequestFields()) {
    const bool belongs_to_model = field.part == RequestField::Part::kModel;
    ReadField(field, belongs_to_model ? model_part : request_part, &request);
  }
  return request;
}

PlanHeader ReadHeader(const JsonView& root) {
  const JsonView request = root["request"];
  const JsonView model = root["model"];
  return {ReadRequest(request, model), ReadModel(model)};
}

PlanKind KindOf(const PlanIds& ids) { return ids.is_joint ? PlanKind::kJoint : PlanKind::kForward; }

// Tells the kind by the first step, without the graph.
PlanKind KindOf(const JsonView& root) {
  if (!root.has("schedule") || !root["schedule"].has("steps")) return PlanKind::kForward;
  const JsonView steps = root["schedule"]["steps"];
  if (!steps.is_array() || steps.size() == 0) return PlanKind::kForward;
  const JsonView step = steps.at(0);
  const bool has_kind = step.is_array() && step.size() > 0 && step.at(0).is_text();
  return has_kind && step.at(0).Text() == kRunStep ? PlanKind::kJoint : PlanKind::kForward;
}

BoundScope ReadScope(const JsonView& json) {
  return ReadEnum(json, {BoundScope::kOwnOrder, BoundScope::kPlanOrder, BoundScope::kAnyOrder});
}

Certificate ReadCertificate(const JsonView& json) {
  Certificate certificate;
  const JsonView overhead = json["overhead"];
  certificate.proof =
      ReadEnum(overhead["proof"],
               {OverheadProof::kRunOnce, OverheadProof::kConstraints, OverheadProof::kOrderCut,
                OverheadProof::kOneCut, OverheadProof::kMoments, OverheadProof::kFreeMoments});
  certificate.scope = ReadScope(overhead["scope"]);
  certificate.gap = Cost(overhead["gap_cost"].Integer(0, kMaxOverhead));
  const JsonView peak = json["peak"];
  certificate.peak.bytes = ReadBytes(peak["lower_bound_bytes"]);
  certificate.peak.proof = ReadEnum(peak["proof"], {PeakProof::kWorkingSet, PeakProof::kOrderCut,
                                                    PeakProof::kMoments, PeakProof::kFreeMoments});
  certificate.peak.scope = ReadScope(peak["scope"]);
  certificate.peak_gap = ReadBytes(peak["gap_bytes"]);
  return certificate;
}

PlanFigures ReadFigures(const JsonView& json, PlanKind kind) {
  PlanFigures figures;
  figures.is_optimal = json["status"].Choice({kFeasible, kOptimal}) == 1;
  figures.guarantee = json["guarantee"].Text();
  figures.peak = ReadBytes(json["peak_bytes"]);
  figures.baseline_peak = ReadBytes(json["baseline_peak_bytes"]);
  if (json.has("other_micro_batches_bytes")) {
    figures.other_micro_batches = ReadBytes(json["other_micro_batches_bytes"]);
  }
  figures.arena = ReadBytes(json["arena_bytes"]);
  if (json.has("static_allocation_bytes")) {
    const JsonView bytes = json["static_allocation_bytes"];
    figures.static_allocations = {ReadBytes(bytes["none"]), ReadBytes(bytes["inplace"]),
                                  ReadBytes(bytes["sharing"])};
  }
  figures.overhead = ReadOverhead(json["overhead_cost"], kind);
  figures.forward_cost = ReadPassCost(json["forward_cost"]);
  figures.backward_cost = ReadPassCost(json["backward_cost"]);
  const JsonView bound = json["lower_bound_cost"];
  if (!bound.is_null()) figures.lower_bound_cost = ReadOverhead(bound, kind);
  if (json.has("certificate")) figures.certificate = ReadCertificate(json["certificate"]);
  if (json.has("curve")) {
    const JsonView curve = json["curve"];
    for (size_t i = 0; i < curve.size(); ++i) {
      const JsonView point = curve.at(i);
      figures.curve.push_back(
          {ReadBytes(point["peak_bytes"]), ReadOverhead(point["overhead_cost"], kind)});
      if (!point.has("least_peak_bytes")) continue;
      figures.curve.back().least_peak = ReadBytes(point["least_peak_bytes"]);
    }
  }
  const JsonView constants = json["constant_bytes"];
  figures.constants.parameters = ReadBytes(constants["parameters"]);
  figures.constants.parameter_gradients = ReadBytes(constants["parameter_gradients"]);
  figures.optimizer_state = ReadBytes(constants["optimizer_state"]);
  figures.constants.inputs = ReadBytes(constants["inputs"]);
  if (constants.has("unsharded")) {
    figures.constants.unsharded = ReadBytes(constants["unsharded"]);
  }
  const JsonView paper = json["paper"];
  const JsonView budget = paper["budget_bytes"];
  if (!budget.is_null()) figures.paper.budget = ReadBytes(budget);
  figures.paper.peak = ReadBytes(paper["peak_bytes"]);
  figures.paper.overhead = ReadOverhead(paper["overhead_cost"], kind);
  if (json.has("host_peak_bytes")) {
    figures.offload = {ReadBytes(json["host_peak_bytes"]), ReadBytes(json["host_arena_bytes"]),
                       Cost(json["stall_cost"].Integer(0, kMaxOverhead)),
                       Bytes(json["transfer_bytes"].Integer(0, kMaxOverhead))};
  }
  if (json.has("setting")) figures.setting = ReadSetting(json["setting"]);
  return figures;
}

NodeDecision ReadDecision(const JsonView& row, PlanKind kind) {
  NodeDecision decision;
  const NodeAction third = kind == PlanKind::kJoint ? NodeAction::kDrop : NodeAction::kTransient;
  decision.action = ReadEnum(row["action"], {NodeAction::kKeep, NodeAction::kRecompute, third});
  decision.segment = static_cast<int32_t>(row["segment"].Integer(0, kMaxInt32));
  decision.recompute_count = static_cast<int32_t>(row["recompute_count"].Integer(0, kMaxInt32));
  return decision;
}

NodeLabel ReadLabel(const JsonView& row) {
  NodeLabel label{row["name"].Text(), row["op"].Text(), {}};
  const JsonView outputs = row["outputs"];
  for (size_t k = 0; k < outputs.size(); ++k) {
    const JsonView output = outputs.at(k);
    label.outputs.push_back(
        {output["id"].Integer(), output["name"].Text(), Bytes(output["bytes"].Integer())});
  }
  return label;
}

// Reads a row of the node table; a node without a name gets one from its id. Adds the row's bytes
// to `total` and limits it to kMaxTotalBytes, so that later sums do not overflow.
PlanDigest::Row ReadRow(const JsonView& json, PlanKind kind, Bytes* total) {
  PlanDigest::Row row;
  row.name = json.TextOr("name", "");
  row.op = json.TextOr("op", "");
  row.decision = ReadDecision(json, kind);
  if (json.has("outputs")) {
    const JsonView outputs = json["outputs"];
    for (size_t k = 0; k < outputs.size(); ++k) {
      const JsonView output = outputs.at(k);
      if (k == 0) row.tensor = output["name"].Text();
      const Bytes bytes(output["bytes"].Integer(0, (kMaxTotalBytes - *total).count()));
      row.bytes += bytes;
      *total += bytes;
    }
  }
  if (row.name.empty()) row.name = row.tensor;
  if (row.name.empty()) row.name = fmt::format("node {}", json["id"].Integer());
  return row;
}

// Maps each tensor id to the row of the node that produces it.
std::unordered_map<int64_t, size_t> ProducerRows(const JsonView& nodes) {
  std::unordered_map<int64_t, size_t> rows;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes.at(i).has("outputs")) continue;
    const JsonView outputs = nodes.at(i)["outputs"];
    for (size_t k = 0; k < outputs.size(); ++k) rows.emplace(outputs.at(k)["id"].Integer(), i);
  }
  return rows;
}

// Distributes the memory at the peak to the rows and `rest`. Verifies that the parts add up to the
// peak, since the file is not checked.
void ReadPeakParts(const JsonView& root, PlanDigest* digest) {
  const std::unordered_map<int64_t, size_t> rows = ProducerRows(root["nodes"]);
  const JsonView live = root["peak"]["live"];
  PlanDigest::PeakRest rest;
  int64_t left = (digest->figures.peak - digest->figures.other_micro_batches).count();
  for (size_t i = 0; i < live.size(); ++i) {
    const JsonView json = live.at(i);
    const size_t kind = json.at(0).Choice({kLiveTensor, kLiveGradient, kLiveWorkspace});
    const Bytes bytes(json.at(2).Integer());
    if (bytes.count() > left) return json.Fault("these buffers add up to more than peak_bytes");
    left -= bytes.count();
    if (kind == 1) rest.gradients += bytes;
    if (kind == 2) rest.workspace += bytes;
    if (kind != 0) continue;
    const auto row = rows.find(json.at(1).Integer());
    if (row == rows.end()) return json.at(1).Fault("no node outputs this tensor");
    digest->rows[row->second].at_peak += bytes;
  }
  if (left > 0)
    live.Fault(fmt::format("these buffers add up to {} bytes less than peak_bytes", left));
  digest->rest = rest;
}

// Adds up the bytes that the plan copies to the host for each row.
void ReadMoved(const JsonView& root, PlanDigest* digest) {
  std::unordered_map<int64_t, std::pair<size_t, Bytes>> rows;
  const JsonView nodes = root["nodes"];
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes.at(i).has("outputs")) continue;
    const JsonView outputs = nodes.at(i)["outputs"];
    for (size_t k = 0; k < outputs.size(); ++k) {
      rows[outputs.at(k)["id"].Integer()] = {i, Bytes(outputs.at(k)["bytes"].Integer())};
    }
  }
  std::set<int64_t> moved;
  const JsonView steps = root["schedule"]["steps"];
  for (size_t k = 0; k < steps.size(); ++k) {
    const JsonView step = steps.at(k);
    const bool is_out = step.is_array() && step.size() == 2 && step.at(0).is_text() &&
                        step.at(0).Text() == kOutStep;
    if (!is_out || !moved.insert(step.at(1).Integer()).second) continue;
    const auto row = rows.find(step.at(1).Integer());
    if (row == rows.end()) return step.at(1).Fault("no node outputs this tensor");
    digest->rows[row->second.first].moved += row->second.second;
  }
}

// ---- Parts that refer to the graph ----

class GraphPartReader {
 public:
  explicit GraphPartReader(PlanIds ids) : ids_(std::move(ids)), kind_(KindOf(ids_)) {
    for (const NodeId id : ids_.nodes.ids()) nodes_.emplace(ids_.nodes[id], id);
    for (const TensorId id : ids_.tensors.ids()) tensors_.emplace(ids_.tensors[id], id);
  }

  // Returns an error message if the rows are in the wrong order, otherwise "".
  std::string ReadNodes(const JsonView& rows, Plan* plan) const {
    plan->decisions.resize(ids_.nodes.size());
    plan->labels.resize(ids_.nodes.size());
    if (rows.is_array() && rows.size() != plan->decisions.size()) {
      rows.Fault(
          fmt::format("has {} rows, but the graph \"{}\" has {} {}s; the plan is for "
                      "another graph",
                      rows.size(), ids_.graph_name, plan->decisions.size(), ids_.node_word()));
      return "";
    }
    std::string misplaced;
    IdVector<NodeId, bool> is_read(plan->decisions.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const JsonView row = rows.at(i);
      const NodeId node = FindNode(row["id"]);
      if (node.is_none()) continue;
      if (is_read[node]) row.Fault(fmt::format("this {} already has a row", ids_.node_word()));
      is_read[node] = true;
      plan->decisions[node] = ReadDecision(row, kind_);
      plan->labels[node] = ReadLabel(row);
      if (static_cast<size_t>(node.index()) == i || !misplaced.empty()) continue;
      misplaced =
          fmt::format("{} is the row of {} {}, expected {}: rows must be in the order of the graph",
                      row.place(), ids_.node_word(), ids_.nodes[node], ids_.nodes[NodeId(i)]);
    }
    return misplaced;
  }

  Schedule ReadSchedule(const JsonView& json) const {
    Schedule schedule;
    const size_t frees = json["frees"].Choice({kLivenessFrees, kExplicitFrees});
    schedule.frees = frees == 1 ? FreePolicy::kExplicit : FreePolicy::kLiveness;
    const JsonView steps = json["steps"];
    schedule.steps.reserve(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) schedule.steps.push_back(ReadStep(steps.at(i)));
    return schedule;
  }

  PeakMoment ReadPeak(const JsonView& json) const {
    PeakMoment peak;
    peak.step = static_cast<int32_t>(json["step"].Integer(0, kMaxInt32));
    const JsonView live = json["live"];
    peak.live.reserve(live.size());
    for (size_t i = 0; i < live.size(); ++i) peak.live.push_back(ReadLiveBuffer(live.at(i)));
    return peak;
  }

 private:
  LiveBuffer ReadLiveBuffer(const JsonView& json) const {
    constexpr size_t kMembers = 3;
    const size_t kind = json.at(0).Choice({kLiveTensor, kLiveGradient, kLiveWorkspace});
    const Bytes bytes(json.at(2).Integer());
    if (json.size() > kMembers) {
      json.Fault(fmt::format("has {} members, must have {}", json.size(), kMembers));
    }
    if (kind == 2) return LiveBuffer::Workspace(FindNode(json.at(1)), bytes);
    const TensorId tensor = FindIn(tensors_, json.at(1), ids_.tensor_word());
    return kind == 0 ? LiveBuffer::Tensor(tensor, bytes) : LiveBuffer::Gradient(tensor, bytes);
  }

  Step ReadStep(const JsonView& json) const {
    if (kind_ == PlanKind::kJoint) return ReadRun(json);
    const size_t kind =
        json.at(0).Choice({kForwardStep, kLossStep, kBackwardStep, kFreeStep, kFreeGradientStep});
    const size_t size = kind == 1 ? 1 : 2;
    if (json.size() > size)
      json.Fault(fmt::format("has {} members, must have {}", json.size(), size));
    if (kind == 0) return Step::Forward(FindNode(json.at(1)));
    if (kind == 1) return Step::Loss();
    if (kind == 2) return Step::Backward(FindNode(json.at(1)));
    const TensorId tensor = FindIn(tensors_, json.at(1), ids_.tensor_word());
    return kind == 3 ? Step::Free(tensor) : Step::FreeGradient(tensor);
  }

  Step ReadRun(const JsonView& json) const {
    const size_t kind = json.at(0).Choice({kRunStep, kOutStep, kDropStep, kInStep});
    if (json.size() > 2) json.Fault(fmt::format("has {} members, must have 2", json.size()));
    if (kind == 0) return Step::Run(FindNode(json.at(1)));
    const TensorId value = FindIn(tensors_, json.at(1), ids_.tensor_word());
    return kind == 1 ? Step::Out(value) : kind == 2 ? Step::Drop(value) : Step::In(value);
  }

  NodeId FindNode(const JsonView& id) const { return FindIn(nodes_, id, ids_.node_word()); }

  template <typename IdType>
  IdType FindIn(const std::unordered_map<int64_t, IdType>& ids, const JsonView& id,
                std::string_view kind) const {
    const int64_t number = id.Integer();
    if (!id.is_file_id()) return IdType();
    const auto found = ids.find(number);
    if (found != ids.end()) return found->second;
    id.Fault(fmt::format("the graph \"{}\" has no {} {}; the plan is for another graph",
                         ids_.graph_name, kind, number));
    return IdType();
  }

  const PlanIds ids_;
  const PlanKind kind_;
  std::unordered_map<int64_t, NodeId> nodes_;
  std::unordered_map<int64_t, TensorId> tensors_;
};

std::vector<Bytes> ReadOffsets(const JsonView& list) {
  std::vector<Bytes> offsets;
  offsets.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) offsets.emplace_back(list.at(i).Integer());
  return offsets;
}

std::optional<std::vector<Bytes>> ReadSegmentPeaks(const JsonView& root) {
  constexpr std::string_view kKey = "segment_peak_bytes";
  if (!root.has("result") || !root["result"].has("paper")) return std::nullopt;
  const JsonView paper = root["result"]["paper"];
  if (!paper.has(kKey)) return std::nullopt;
  const JsonView list = paper[kKey];
  std::vector<Bytes> peaks;
  for (size_t i = 0; i < list.size(); ++i) peaks.push_back(ReadBytes(list.at(i)));
  return peaks;
}

}  // namespace

Result<PlanHeader> ReadPlanHeader(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*allow_missing=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());  // Fields may differ in another version.
  PlanHeader header = ReadHeader(root);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return header;
}

bool HasRequest(std::string_view text) {
  const Result<JsonDocument> document = JsonDocument::Parse(text, "");
  return document.ok() && document->root().has("request");
}

Result<PlanDigest> ReadPlanDigest(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*allow_missing=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  const PlanKind kind = KindOf(root);
  PlanHeader header = ReadHeader(root);
  PlanDigest digest{std::move(header.request),
                    std::move(header.model),
                    ReadFigures(root["result"], kind),
                    {},
                    std::nullopt,
                    kind == PlanKind::kJoint};
  const JsonView nodes = root["nodes"];
  Bytes total;
  for (size_t i = 0; i < nodes.size(); ++i)
    digest.rows.push_back(ReadRow(nodes.at(i), kind, &total));
  if (root.has("peak")) ReadPeakParts(root, &digest);
  if (digest.request.offload) ReadMoved(root, &digest);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return digest;
}

namespace {

// `graph` is null for a plan of a joint graph, which has no segments.
Result<Plan> ReadPlan(std::string_view text, PlanIds ids, const TensorGraph* graph,
                      const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*allow_missing=*/false);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  Plan plan;
  PlanHeader header = ReadHeader(root);
  plan.request = std::move(header.request);
  plan.model = std::move(header.model);
  plan.figures = ReadFigures(root["result"], KindOf(ids));
  const GraphPartReader reader(std::move(ids));
  const std::string misplaced = reader.ReadNodes(root["nodes"], &plan);
  plan.schedule = reader.ReadSchedule(root["schedule"]);
  if (root.has("peak")) plan.peak = reader.ReadPeak(root["peak"]);
  const JsonView arena = root["arena"];
  plan.offsets = ReadOffsets(arena["offset_bytes"]);
  if (arena.has("host_offset_bytes")) plan.host_offsets = ReadOffsets(arena["host_offset_bytes"]);
  const std::optional<std::vector<Bytes>> peaks = ReadSegmentPeaks(root);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  if (!misplaced.empty()) {
    return MakeError(ErrorCode::kCheckFailed, fmt::format("{}: {}", where, misplaced));
  }
  // A Plan does not store these, so the reader checks them.
  if (peaks && *peaks != (graph == nullptr ? std::vector<Bytes>() : SegmentPeaksOf(*graph, plan))) {
    return MakeError(ErrorCode::kCheckFailed,
                     fmt::format("{}: /result/paper/segment_peak_bytes: differs from the peaks "
                                 "of the plan's lower sets",
                                 where));
  }
  return plan;
}

}  // namespace

Result<Plan> ReadPlanJson(std::string_view text, const TrainingStep& step,
                          const std::string& where) {
  return ReadPlan(text, PlanIdsOf(step), step.is_joint() ? nullptr : &step.forward(), where);
}

}  // namespace ckplan
