// Checks the markers of an annotated model: each must be as the plan says and occur once, and there
// must be no others.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/annotate.h"
#include "lib/files/model/rewrite.h"

namespace ckplan {

// kIo: the file cannot be read. kInvalidInput, kUnsupported: its encoding is damaged.
Result<FoundMarkers> ReadMarkers(const std::string& path);

// Returns one line for each fault, and none if the markers are those of `expected`. Markers of
// another version are a single fault.
std::vector<std::string> FaultsOfMarkers(const FoundMarkers& found, const Annotation& expected);

}  // namespace ckplan
