// "Did you mean": the known name that was probably meant by what was typed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ckplan {

// The name at the smallest Damerau-Levenshtein distance (insert, delete, replace, swap neighbours),
// whatever the case of letters and the hyphens in front; the first of equally near names. Nothing
// if none is near: more than a third of the letters differ, and what was typed is not the beginning
// of a name either.
std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names);

// "; did you mean "NAME"?" for the near name; empty if there is none.
std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names);

// Of what was typed and is none of the names: "TYPED"; did you mean "NAME"? Known are NAME, NAME
std::string NoneOf(std::string_view typed, std::span<const std::string_view> names);

}  // namespace ckplan
