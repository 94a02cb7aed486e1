// "Did you mean": the known name that is fewest edits away from what was typed.
#pragma once

#include <span>
#include <string_view>

namespace ckplan {

// The name at the smallest Damerau-Levenshtein distance (insert, delete, replace, swap neighbours);
// the first of equally near names. `names` must not be empty.
std::string_view NearestName(std::string_view typed, std::span<const std::string_view> names);

}  // namespace ckplan
