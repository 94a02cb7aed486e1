// Checks that a plan is for the model that was read.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/planning/plan/model_variant.h"

namespace ckplan {

// Fails with kCheckFailed if the model at `path`, with the hash `sha256`, is not the planned one.
Result<Done> CheckSameModel(const ModelIdentity& planned, const std::string& path,
                            const std::string& sha256);

}  // namespace ckplan
