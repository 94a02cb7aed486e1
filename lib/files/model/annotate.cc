#include "lib/files/model/annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/hash.h"
#include "lib/base/stop.h"
#include "lib/base/text.h"
#include "lib/files/model/parse_file.h"
#include "lib/files/model/wire.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

// Derives the steps from the markers by the documented rule, as readers do.
class StepRule {
 public:
  StepRule(const std::vector<FileRow>& rows, const IdVector<NodeId, NodeDecision>& decisions)
      : rows_(rows), decisions_(decisions), is_present_(rows.size()) {}

  std::vector<Step> Steps() && {
    std::vector<size_t> order;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].role != NodeRole::kNode) continue;
      order.push_back(i);
      is_present_[i] = DecisionOn(i).action != NodeAction::kRecompute;
    }
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return DecisionOn(a).segment < DecisionOn(b).segment;
    });
    for (const size_t node : order) steps_.push_back(Step::Forward(rows_[node].node));
    steps_.push_back(Step::Loss());
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      PollStop();
      for (const ValuePlace& read : rows_[*it].operations.front().backward_reads) {
        Provide(read.kind == ValuePlace::Kind::kInput
                    ? ProducerOf(*it, static_cast<size_t>(read.position))
                    : *it);
      }
      steps_.push_back(Step::Backward(rows_[*it].node));
    }
    return std::move(steps_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // A node that must be rerun, and the number of its inputs that have been provided.
  struct Frame {
    size_t node;
    size_t inputs_done = 0;
  };

  const NodeDecision& DecisionOn(size_t node) const { return decisions_[rows_[node].node]; }

  // Returns the node that produces the input, or kNone for constants and inputs of the graph.
  size_t ProducerOf(size_t node, size_t input) const {
    do {
      if (input >= rows_[node].producers.size() || rows_[node].producers[input] < 0) return kNone;
      node = static_cast<size_t>(rows_[node].producers[input]);
      input = 0;
    } while (rows_[node].role == NodeRole::kView);
    return rows_[node].role == NodeRole::kNode ? node : kNone;
  }

  void Visit(size_t node, std::vector<Frame>* stack) const {
    if (node != kNone && !is_present_[node]) stack->push_back({node});
  }

  // Depth-first without recursion, because the reruns for one step can form a chain of 100,000
  // nodes.
  void Provide(size_t wanted) {
    std::vector<Frame> stack;
    Visit(wanted, &stack);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const size_t node = frame.node;
      if (frame.inputs_done < rows_[node].producers.size()) {
        Visit(ProducerOf(node, frame.inputs_done++), &stack);
        continue;
      }
      PollStop();
      stack.pop_back();
      steps_.push_back(Step::Forward(rows_[node].node));
      is_present_[node] = true;
    }
  }

  const std::vector<FileRow>& rows_;
  const IdVector<NodeId, NodeDecision>& decisions_;
  std::vector<bool> is_present_;
  std::vector<Step> steps_;
};

// Returns each node's name in markers: "12", or "12.1" in an expanded call.
IdVector<NodeId, std::string> NamesOfNodes(const std::vector<FileRow>& rows, size_t nodes) {
  IdVector<NodeId, std::string> names(nodes);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < rows[i].operations.size(); ++k) {
      const NodeId id = rows[i].operations[k].node;
      if (id.is_none()) continue;
      names[id] = rows[i].is_expanded ? fmt::format("{}.{}", i, k) : std::to_string(i);
    }
  }
  return names;
}

// Returns the file's operation for each node of the graph.
IdVector<NodeId, const FileOperation*> OperationsOf(const std::vector<FileRow>& rows,
                                                    size_t nodes) {
  IdVector<NodeId, const FileOperation*> operations(nodes, nullptr);
  for (const FileRow& row : rows) {
    for (const FileOperation& operation : row.operations) {
      if (!operation.node.is_none()) operations[operation.node] = &operation;
    }
  }
  return operations;
}

std::string_view WordOf(StepKind kind) {
  switch (kind) {
    case StepKind::kForward:
      return "forward";
    case StepKind::kLoss:
      return "loss";
    case StepKind::kBackward:
      return "backward";
    case StepKind::kFree:
      return "free";
    case StepKind::kOut:
      return "out";
    case StepKind::kDrop:
      return "drop";
    case StepKind::kIn:
      return "in";
    case StepKind::kFreeGradient:
    case StepKind::kRun:
      break;
  }
  CKPLAN_CHECK(false, "markers support this kind of step");
  return "";
}

std::string TextOf(const std::vector<FileRow>& rows, size_t nodes, const TensorGraph& graph,
                   const Schedule& schedule) {
  const IdVector<NodeId, std::string> names = NamesOfNodes(rows, nodes);
  const IdVector<NodeId, const FileOperation*> operations = OperationsOf(rows, nodes);
  const auto place_of = [&](NodeId producer, TensorId tensor) {
    const std::vector<TensorId>& outputs = graph.node(producer).outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), tensor) - outputs.begin();
    return operations[producer]->outputs[static_cast<size_t>(at)];
  };
  std::string text;
  std::optional<StepKind> kind;
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kFreeGradient)
      continue;  // Readers of the markers free gradients themselves.
    if (kind != step.kind) {
      kind = step.kind;
      text += fmt::format("{}{}", text.empty() ? "" : " ", WordOf(*kind));
    }
    if (step.kind == StepKind::kForward || step.kind == StepKind::kBackward) {
      text += ' ' + names[step.node()];
    } else if (IsGradientTransfer(graph, step)) {
      const TensorId tensor = TensorOfGradientTransfer(graph, step);
      const NodeId producer = graph.tensor(tensor).producer;
      text += fmt::format(" {}:g{}", names[producer], place_of(producer, tensor).position);
    } else if (step.kind != StepKind::kLoss) {
      const NodeId producer = graph.tensor(step.tensor()).producer;
      text += fmt::format(" {}:{}", names[producer], TextOf(place_of(producer, step.tensor())));
    }
  }
  return text;
}

bool FollowsRule(const std::vector<FileRow>& rows, const IdVector<NodeId, NodeDecision>& decisions,
                 const Schedule& schedule) {
  const bool has_expanded = std::any_of(rows.begin(), rows.end(), [](const FileRow& row) {
    return row.role == NodeRole::kNode && row.is_expanded;
  });
  if (has_expanded || schedule.frees == FreePolicy::kExplicit) return false;
  if (HasTransfers(schedule)) return false;
  return StepRule(rows, decisions).Steps() == schedule.steps;
}

}  // namespace

std::string TextOf(const ValuePlace& place) {
  switch (place.kind) {
    case ValuePlace::Kind::kInput:
      return fmt::format("i{}", place.position);
    case ValuePlace::Kind::kOutput:
      return fmt::format("o{}", place.position);
    case ValuePlace::Kind::kStatistic:
      break;
  }
  return "s";
}

std::optional<std::string> StepsMarker(const std::vector<FileRow>& rows,
                                       const IdVector<NodeId, NodeDecision>& decisions,
                                       const TensorGraph& graph, const Schedule& schedule) {
  if (FollowsRule(rows, decisions, schedule)) return std::nullopt;
  return TextOf(rows, decisions.size(), graph, schedule);
}

namespace {

constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kTensorDataLocation = 14;

// Returns the values that the backward runs of a node's operations read; empty if none.
std::string BackwardReadsOf(const FileRow& row) {
  std::string text;
  for (const FileOperation& operation : row.operations) {
    if (&operation != &row.operations.front()) text += ';';
    std::string_view separator;
    for (const ValuePlace& read : operation.backward_reads) {
      text += fmt::format("{}{}", std::exchange(separator, " "), TextOf(read));
    }
  }
  return text;
}

// Returns the operation types that a call was expanded to, with spaces replaced.
std::string TypesOf(const FileRow& row) {
  std::string text;
  for (const FileOperation& operation : row.operations) {
    if (!text.empty()) text += ' ';
    for (const char c : operation.type) text += c == ' ' ? '_' : c;
  }
  return text;
}

// Marks the nodes with a result that is copied to the host.
IdVector<NodeId, bool> FindOffloaded(const TensorGraph& graph, const Schedule& schedule) {
  IdVector<NodeId, bool> is_offloaded(graph.nodes().size());
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kOut || IsGradientTransfer(graph, step)) continue;
    is_offloaded[graph.tensor(step.tensor()).producer] = true;
  }
  return is_offloaded;
}

Markers MarkersOf(const FileRow& row, const Plan& plan,
                  const IdVector<NodeId, bool>& is_offloaded) {
  if (row.role == NodeRole::kView) return {{"ckplan.action", "view"}};
  if (row.role == NodeRole::kConstant) return {};
  const NodeDecision& decision = plan.decisions[row.node];
  const std::string_view action = is_offloaded[row.node] ? "offload" : NameOf(decision.action);
  Markers markers = {{"ckplan.action", std::string(action)},
                     {"ckplan.segment", std::to_string(decision.segment)},
                     {"ckplan.recompute_count", std::to_string(decision.recompute_count)}};
  std::string reads = BackwardReadsOf(row);
  if (!reads.empty()) markers["ckplan.backward_reads"] = std::move(reads);
  if (row.is_expanded) markers["ckplan.operations"] = TypesOf(row);
  return markers;
}

// Facts about the main graph that annotating needs.
struct GraphFacts {
  size_t nodes = 0;
  bool has_external_weights = false;
};

bool IsExternal(std::string_view tensor) {
  WireReader reader(tensor);
  while (const auto field = reader.Next()) {
    if (field->number == kTensorDataLocation && field->varint == 1) return true;
  }
  return false;
}

GraphFacts ReadGraphFacts(std::string_view source) {
  GraphFacts facts;
  WireReader model(source);
  while (const auto part = model.Next()) {
    if (part->number != kModelGraph || part->type != WireType::kLength) continue;
    WireReader graph(part->payload);
    while (const auto field = graph.Next()) {
      if (field->number == kGraphNode) ++facts.nodes;
      const bool is_weight = field->number == kGraphInitializer && field->type == WireType::kLength;
      if (is_weight && !facts.has_external_weights) {
        facts.has_external_weights = IsExternal(field->payload);
      }
    }
  }
  return facts;
}

Result<std::unique_ptr<PendingFile>> WriteNextTo(const Rope& bytes, const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(auto file, PendingFile::Create(path));
  for (const std::string_view piece : bytes.pieces()) {
    CKPLAN_RETURN_IF_ERROR(file->Append(piece));
  }
  return file;
}

std::filesystem::path FolderOf(const std::string& path) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path)).parent_path();
}

Result<AnnotateOutcome> Annotate(std::string_view source, const std::string& in_path,
                                 const Annotation& annotation, const std::string& out_path) {
  const GraphFacts facts = ReadGraphFacts(source);
  if (facts.nodes != annotation.nodes.size()) {
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("\"{}\" has {} nodes, but the plan's model has {}: it changed since it "
                    "was planned; plan it again",
                    in_path, facts.nodes, annotation.nodes.size()));
  }
  RewriteOptions options;
  options.drops_markers = true;
  options.node_markers = &annotation.nodes;
  options.model_markers = &annotation.model;
  CKPLAN_ASSIGN_OR_RETURN(const RewrittenModel rewritten, RewriteModel(source, options, in_path));
  AnnotateOutcome outcome;
  if (facts.has_external_weights && FolderOf(in_path) != FolderOf(out_path)) {
    outcome.warnings.push_back(
        fmt::format("\"{}\" uses weights in files next to \"{}\": move or link them to its own "
                    "folder before using it",
                    out_path, in_path));
  }
  CKPLAN_ASSIGN_OR_RETURN(outcome.file, WriteNextTo(rewritten.bytes, out_path));
  return outcome;
}

}  // namespace

Annotation MakeAnnotation(const std::vector<FileRow>& rows, const TensorGraph& graph,
                          const Plan& plan, std::string plan_json) {
  Annotation annotation;
  const IdVector<NodeId, bool> is_offloaded = FindOffloaded(graph, plan.schedule);
  for (const FileRow& row : rows) annotation.nodes.push_back(MarkersOf(row, plan, is_offloaded));
  Markers& model = annotation.model;
  model["ckplan.schema_version"] =
      HasTransfers(plan.schedule) ? kMarkerVersionWithCopies : kMarkerVersion;
  model["ckplan.algorithm"] = plan.request.algorithm;
  if (const auto budget = plan.request.budget.in_bytes()) {
    model["ckplan.budget_bytes"] = std::to_string(budget->count());
  }
  model["ckplan.peak_bytes"] = std::to_string(plan.figures.peak.count());
  if (auto steps = StepsMarker(rows, plan.decisions, graph, plan.schedule)) {
    model["ckplan.steps"] = std::move(*steps);
  }
  model["ckplan.plan_sha256"] = Sha256Hex(plan_json);
  model["ckplan.plan"] = std::move(plan_json);
  return annotation;
}

Result<AnnotateOutcome> AnnotateModel(const std::string& in_path, const Annotation& annotation,
                                      const std::string& out_path) {
  try {
    if (IsTextModel(in_path)) {  // The binary form of the model is annotated.
      CKPLAN_ASSIGN_OR_RETURN(const ParsedFile parsed, ParseModelFile(in_path));
      return Annotate(parsed.proto->SerializeAsString(), in_path, annotation, out_path);
    }
    CKPLAN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(in_path));
    return Annotate(file.bytes(), in_path, annotation, out_path);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& fault) {  // Thrown by protobuf or the file system.
    return MakeError(ErrorCode::kIo,
                     fmt::format("cannot annotate \"{}\": {}", in_path, fault.what()));
  }
}

Result<std::optional<std::string>> ReadEmbeddedPlan(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return FindModelMetadata(file.bytes(), "ckplan.plan");
}

namespace {

constexpr size_t kMaxShownBytes = 80;  // Maximum length of a marker in messages.

const FoundMarker* Find(const std::vector<FoundMarker>& markers, const std::string& key) {
  const auto found = std::find_if(markers.begin(), markers.end(),
                                  [&](const FoundMarker& one) { return one.key == key; });
  return found == markers.end() ? nullptr : &*found;
}

std::string Quoted(const std::string& value) {
  return fmt::format("\"{}\"", Printable(value, kMaxShownBytes));
}

// `where` is the model or one of its nodes.
void Compare(const std::string& where, const std::vector<FoundMarker>& found,
             const Markers& expected, std::vector<std::string>* faults) {
  for (const auto& [key, value] : expected) {
    const FoundMarker* const marker = Find(found, key);
    if (marker == nullptr) {
      faults->push_back(fmt::format("{}: marker {} is missing", where, key));
    } else if (marker->value != value) {
      faults->push_back(fmt::format("{}: marker {} is {}, but the plan says {}", where, key,
                                    Quoted(marker->value), Quoted(value)));
    }
  }
  for (const FoundMarker& marker : found) {
    const std::string key = Printable(marker.key, kMaxShownBytes);
    if (expected.count(marker.key) == 0) {
      faults->push_back(fmt::format("{}: marker {} is not in the plan", where, key));
    } else if (Find(found, marker.key) != &marker) {
      faults->push_back(fmt::format("{}: marker {} occurs more than once", where, key));
    }
  }
}

}  // namespace

Result<FoundMarkers> ReadMarkers(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return FindMarkers(file.bytes(), path);
}

std::vector<std::string> FindMarkerFaults(const FoundMarkers& found, const Annotation& expected) {
  const FoundMarker* const version = Find(found.model, "ckplan.schema_version");
  const std::string& written = expected.model.at("ckplan.schema_version");
  if (version == nullptr || version->value != written) {
    return {fmt::format(
        "the model: its markers must have version {}{}; run `ckplan apply` to rewrite them",
        written, written == kMarkerVersionWithCopies ? " for plans that copy to the host" : "")};
  }
  if (found.nodes.size() != expected.nodes.size()) {
    return {fmt::format("the model: it has {} nodes, but the plan's model has {}",
                        found.nodes.size(), expected.nodes.size())};
  }
  std::vector<std::string> faults;
  Compare("the model", found.model, expected.model, &faults);
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    const std::string where =
        fmt::format("node {} \"{}\"", i, Printable(found.nodes[i].name, kMaxShownBytes));
    Compare(where, found.nodes[i].markers, expected.nodes[i], &faults);
  }
  Compare("a function, a branch or a training graph", found.elsewhere, {}, &faults);
  return faults;
}

}  // namespace ckplan
