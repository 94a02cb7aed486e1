#include "lib/planner/model_form.h"

#include <utility>

#include "lib/base/check.h"
#include "lib/plan/assemble.h"
#include "lib/schedule/expand.h"
#include "lib/schedule/timeline.h"

namespace ckplan {

Plan InModelForm(const Source& source, const Plan& plan) {
  if (!source.joint) return plan;
  CKPLAN_CHECK(!source.step_of.empty(), "the source comes from a model");
  return InModelForm(source.graph, source.step_of, plan);
}

Plan InModelForm(const TensorGraph& graph, const std::vector<Step>& step_of, const Plan& plan) {
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

}  // namespace ckplan
