// Example sizes for the dimensions of a model that have none.
#pragma once

#include <string>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"

namespace ckplan {

// Returns flags that give a size to each dimension that `error` asks for, " -D N=8 -D T=128", with
// which all models of the command can be read. Returns "" if the error asks for something else, if
// no example size is accepted, or if the command cannot be repeated.
std::string SuggestedSizes(const Options& options, const Error& error);

}  // namespace ckplan
