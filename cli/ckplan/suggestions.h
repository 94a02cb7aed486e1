// Commands that messages suggest, which run as they are printed.
#pragma once

#include <string>
#include <vector>

#include "cli/ckplan/options.h"
#include "lib/base/result.h"

namespace ckplan {

// Returns the dimensions that an error of reading a model asks to bind: "N", "T".
std::vector<std::string> OpenDimsIn(const Error& error);

// Returns the values at which the step could end, if that would make the model one that can be
// planned: "l,z". Returns "" if nothing would.
std::string SuggestedEnds(const Error& error);

// Returns flags that give a size to each dimension that `error` asks for, " -D N=8 -D T=128", and
// end the step where it can be trained (--outputs), with which all models of the command can be
// read. Returns "" if the error asks for something else, if
// no example size is accepted, or if the command cannot be repeated.
std::string SuggestedSizes(const Options& options, const Error& error);

// Returns the arguments of the `ckplan compare` that makes all plans for which a list was typed
// where one plan is made: " m.onnx -D N=8,16 -a best". Returns "" if no list was typed, or if it
// could not run.
std::string SuggestedComparison(const Options& options);

}  // namespace ckplan
