// "Did you mean": finds the known name that a user probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ckplan {

// Returns the name at the smallest Damerau-Levenshtein distance (insert, delete, replace, swap
// neighbours), ignoring the case of letters and leading hyphens; the first of equally near names.
// Returns nothing if no name is near: more than a third of the letters differ, and `typed` is not
// the beginning of a name either.
std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names);

// Returns "; did you mean "NAME"?" for the near name, or an empty text if there is none.
std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names);

// Reports that `typed` is not one of the names: "TYPED"; did you mean "NAME"? Known are NAME, NAME
std::string NoneOf(std::string_view typed, std::span<const std::string_view> names);

}  // namespace ckplan
