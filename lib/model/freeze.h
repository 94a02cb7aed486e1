// Parameters that are not trained: the base of a model that LoRA adapts, or a backbone.
//
// A frozen parameter occupies memory like any other, but has no gradient, and so no optimizer
// state. Values that only its gradient would read are not saved for backward, and a node
// without a trained parameter at or before it has no backward at all: lib/model/facts.h derives all
// of this.
#pragma once

#include "lib/base/name_patterns.h"
#include "lib/base/result.h"
#include "lib/model/model_impl.h"

namespace ckplan {

// Marks the parameters that the patterns choose by the names of their initializers or Constants.
// kUsage: a pattern fits no parameter.
Result<Done> FreezeParameters(Model::Impl& model, const NamePatterns& patterns);

}  // namespace ckplan
