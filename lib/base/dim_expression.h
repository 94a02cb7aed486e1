// Exporters name some dimensions by expressions of other dimensions:
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

// Returns the variables of an expression, or nothing if `name` is a plain name such as "batch".
// "batch-size" parses as an expression, too; the caller has to look at the variables.
std::optional<std::set<std::string>> FindDimVariables(std::string_view name);

// Evaluates an expression. Returns nothing if `name` is not an expression, if `sizes` lacks a
// variable, or if the value is not a 64-bit integer.
std::optional<int64_t> EvaluateDim(std::string_view name,
                                   const std::map<std::string, int64_t>& sizes);

}  // namespace ckplan
