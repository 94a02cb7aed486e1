#include "cli/ckplan/annotation.h"

#include "lib/emit/json_plan.h"
#include "lib/model/annotate.h"

namespace ckplan {

Result<std::vector<std::string>> WriteAnnotatedModel(const Source& source, const Plan& plan,
                                                     const std::string& model_path,
                                                     const std::string& out_path) {
  const Annotation annotation =
      MakeAnnotation(source.roles, plan, WritePlanJson(plan, source.graph));
  CKPLAN_ASSIGN_OR_RETURN(AnnotateOutcome outcome, AnnotateModel(model_path, annotation, out_path));
  return std::move(outcome.warnings);
}

}  // namespace ckplan
