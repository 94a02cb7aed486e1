// Parameters that are not trained: the base of a model that LoRA adapts, or a backbone.
//
// A frozen parameter is there like any other, but has no gradient, and so no state of the
// optimizer. What only its gradient would read is not saved for backward, and a node behind which
// nothing is trained has no backward at all: lib/model/facts.h derives all of it.
#pragma once

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Marks the parameters that the patterns choose by the names of their initializers or Constants.
// kUsage: a pattern fits none.
Result<Done> FreezeParameters(Model::Impl& model, const NamePatterns& patterns);

}  // namespace ckplan
