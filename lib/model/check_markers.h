// Judges the markers of an annotated model: each must be what the plan says, stand there once, and
// be all that there is.
#pragma once

#include <string>
#include <vector>

#include "lib/model/annotate.h"
#include "lib/model/rewrite.h"

namespace ckplan {

// kIo: the file cannot be read. kInvalidInput, kUnsupported: its encoding is damaged.
Result<FoundMarkers> ReadMarkers(const std::string& path);

// One line for each fault; empty if the markers are those of `expected`. Markers of another version
// are one fault.
std::vector<std::string> FaultsOfMarkers(const FoundMarkers& found, const Annotation& expected);

}  // namespace ckplan
