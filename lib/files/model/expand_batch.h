// Reads a model with another batch than the one that is burnt into its file.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/files/model/bind_dims.h"
#include "lib/files/model/model_impl.h"

namespace ckplan {

// Does what ExpandGraph does, with inputs that have this batch: see follow_batch.h. It reads the
// model first as it is. Errors are those of ExpandGraph and of WithBatch.
Result<Done> ExpandWithBatch(Model::Impl& model, const BoundDims& bound, int64_t batch,
                             const std::string& file);

// Removes what ExpandGraph has made, so that the graph can be read again.
void ClearGraph(Model::Impl* model);

}  // namespace ckplan
