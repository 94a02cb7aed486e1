#include "lib/files/model/annotate.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <utility>

#include "lib/base/hash.h"
#include "lib/files/model/marker_steps.h"
#include "lib/files/model/parse_file.h"
#include "lib/files/model/wire.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

namespace {

constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kTensorDataLocation = 14;

// Returns the values that the backward runs of a node's operations read; empty if there are none.
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

// Returns the types of the operations to which a call was expanded, with spaces in them replaced.
std::string TypesOf(const FileRow& row) {
  std::string text;
  for (const FileOperation& operation : row.operations) {
    if (!text.empty()) text += ' ';
    for (const char c : operation.type) text += c == ' ' ? '_' : c;
  }
  return text;
}

// Returns for each node whether one of its results is copied to the host.
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

// The facts about the main graph that annotating needs.
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

Result<std::unique_ptr<PendingFile>> WriteBeside(const Rope& bytes, const std::string& path) {
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
        fmt::format("\"{}\" has {} nodes, the plan's model has {}: it changed since it "
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
        fmt::format("\"{}\" keeps its weights in files beside \"{}\": move or link them to its own "
                    "folder before using it",
                    out_path, in_path));
  }
  CKPLAN_ASSIGN_OR_RETURN(outcome.file, WriteBeside(rewritten.bytes, out_path));
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

}  // namespace ckplan
