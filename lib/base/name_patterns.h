// Lists of patterns that choose among named things: operations, tensors, parameters.
//
//   *.weight        every name that ends so (lib/base/glob.h)
//   op:Relu         whatever has that type, which may be a glob as well
//   !layer4.*       not those, although an earlier pattern has chosen them
//
// Patterns are heeded in their order, so the last one that fits a thing decides. A list that begins
// with "!" begins with everything.
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
  std::vector<std::string_view> names;  // Any of which a pattern may fit.
  std::string_view type;                // Empty: it has none.
};

// Whether each thing is chosen, by its place; an empty list chooses nothing. kUsage: a pattern
// that fits nothing. `what` says in messages what is looked for: "parameter".
Result<std::vector<bool>> ChooseByName(const NamePatterns& patterns,
                                       std::span<const NamedThing> things, std::string_view what);

}  // namespace ckplan
