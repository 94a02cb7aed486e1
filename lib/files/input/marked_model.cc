#include "lib/files/input/marked_model.h"

#include <utility>

#include "lib/files/input/load_source.h"
#include "lib/files/model/check_markers.h"
#include "lib/files/model/file_rows.h"
#include "lib/planning/planner/model_form.h"

namespace ckplan {
namespace {

// Returns the node of the whole model at which the plan's graph begins: it may be one stage of it.
NodeId FirstNodeOf(const TensorGraph& stage, const TensorGraph& whole) {
  if (stage.nodes().empty()) return NodeId(0);
  const std::string& name = stage.node(NodeId(0)).name;
  for (const NodeId id : whole.nodes().ids()) {
    if (whole.node(id).name == name) return id;
  }
  return NodeId(0);
}

}  // namespace

Result<Annotation> AnnotationOf(const Source& source, const Plan& plan,
                                const std::string& model_path, std::string plan_json) {
  PlanRequest request = source.request;
  request.cost_model = "unit";  // Markers contain neither costs nor workspaces.
  request.workspaces.clear();
  CKPLAN_ASSIGN_OR_RETURN(const ModelSource read, LoadModelSource(model_path, request));
  const std::vector<FileRow> rows =
      FileRowsOf(read.model, read.lowered, FirstNodeOf(source.graph, read.lowered.graph),
                 source.graph.nodes().size());
  CKPLAN_ASSIGN_OR_RETURN(const Plan form, InModelFormWithCopies(source, plan));
  return MakeAnnotation(rows, source.graph, form, std::move(plan_json));
}

Result<std::vector<std::string>> ValidateMarkers(const PlanFile& file,
                                                 const std::string& plan_path) {
  if (IsGraphFile(plan_path)) return std::vector<std::string>();
  if (!file.source.is_model) {
    return std::vector<std::string>{"markers: only plans of ONNX models have them"};
  }
  CKPLAN_ASSIGN_OR_RETURN(PlanJsonText text, ReadPlanText(plan_path));
  CKPLAN_ASSIGN_OR_RETURN(const FoundMarkers found, ReadMarkers(plan_path));
  CKPLAN_ASSIGN_OR_RETURN(
      const Annotation expected,
      AnnotationOf(file.source, file.plan, file.model_path, std::move(text.text)));
  return FaultsOfMarkers(found, expected);
}

}  // namespace ckplan
