// Whether a plan is for the model that was read.
#pragma once

#include <string>

#include "lib/base/result.h"
#include "lib/plan/plan.h"

namespace ckplan {

// kCheckFailed: the model at `path`, whose hash is `sha256`, is not the one that was planned.
Result<Done> CheckSameModel(const ModelIdentity& planned, const std::string& path,
                            const std::string& sha256);

}  // namespace ckplan
