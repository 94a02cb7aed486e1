// Names of dimensions that are expressions of other dimensions, as exporters write them:
//
//   2*B     past_sequence_length + 1     floor(height/8 - 1/8) + 1     s0//2
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace ckplan {

// Returns the variables of an expression; nothing if the name is not one, such as "batch". A name
// such as "batch-size" reads as one as well: the caller decides by its variables.
std::optional<std::set<std::string>> VariablesOf(std::string_view name);

// Returns the value of an expression. Nothing if the name is not an expression, if `sizes` lacks a
// variable, or if the value is not a whole number that fits 64 bits.
std::optional<int64_t> EvaluateDim(std::string_view name,
                                   const std::map<std::string, int64_t>& sizes);

}  // namespace ckplan
