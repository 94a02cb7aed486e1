#include "lib/planning/planner/model_form.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {

Plan ToModelForm(const Source& source, const Plan& plan) {
  if (!source.joint) return plan;
  CKPLAN_CHECK(!source.step_of.empty(), "the plan's source is a model");
  return ToModelForm(source.graph, source.step_of, plan);
}

Plan ToModelForm(const TensorGraph& graph, const std::vector<Step>& step_of, const Plan& plan) {
  Plan form;
  form.request = plan.request;
  form.model = plan.model;
  form.figures = plan.figures;
  form.schedule = ScheduleOf(step_of, RunsOf(plan.schedule));
  form.decisions = DecisionsOf(graph, BuildTimeline(graph, form.schedule),
                               IdVector<NodeId, int32_t>(graph.nodes().size()));
  form.labels = LabelsOf(graph);
  return form;
}

Result<Plan> ToModelFormWithCopies(const Source& source, const Plan& plan) {
  if (!HasTransfers(plan.schedule)) return ToModelForm(source, plan);
  const bool arrive = source.request.gradients == ParameterGradients::kArriving;
  return ToModelFormWithCopies(
      source.graph,
      arrive ? ExpandWithArrivingGradients(source.graph) : ExpandTensorGraph(source.graph), plan);
}

Result<Plan> ToModelFormWithCopies(const TensorGraph& graph, const Expansion& expansion,
                                   const Plan& plan) {
  Plan form = ToModelForm(graph, expansion.step_of, plan);
  CKPLAN_ASSIGN_OR_RETURN(form.schedule, InForwardForm(graph, expansion, plan.schedule));
  return form;
}

}  // namespace ckplan
