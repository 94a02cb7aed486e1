#include "cli/ckplan/annotation.h"

#include <utility>

#include "lib/files/input/marked_model.h"
#include "lib/files/model/annotate.h"

namespace ckplan {

Annotator AnnotatorOf(const Source& source, const Plan& plan, const std::string& model_path) {
  if (!source.is_model) return {};
  return [&source, &plan, model_path](const std::string& plan_json,
                                      const std::string& path) -> Result<Emitted> {
    CKPLAN_ASSIGN_OR_RETURN(const Annotation annotation,
                            AnnotationOf(source, plan, model_path, plan_json));
    CKPLAN_ASSIGN_OR_RETURN(AnnotateOutcome outcome, AnnotateModel(model_path, annotation, path));
    return Emitted{{}, std::move(outcome.file), std::move(outcome.warnings)};
  };
}

}  // namespace ckplan
