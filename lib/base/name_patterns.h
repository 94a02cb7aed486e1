// Lists of patterns that choose among named things: operations, tensors, parameters.
//
//   *.weight        every name with this ending (lib/base/glob.h)
//   op:Relu         everything of that type; the type may be a glob as well
//   !layer4.*       excludes names that an earlier pattern chose
//
// Patterns apply in order: the last one that fits a thing decides. If the first pattern begins with
// "!", everything is chosen at the start.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

using NamePatterns = std::vector<std::string>;

// Something that can be chosen.
struct NamedThing {
  std::vector<std::string_view> names;  // A pattern may fit any of these names.
  std::string_view type;                // Empty if the thing has no type.
};

// Returns for each thing whether it is chosen; an empty list of patterns chooses nothing. kUsage: a
// pattern fits nothing. `what` names the kind of thing in messages, such as "parameter".
Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what);

}  // namespace ckplan
