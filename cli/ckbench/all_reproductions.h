// The results of `ckbench reproduce all`, for tests. They are computed once, which takes seconds.
#pragma once

#include <string_view>
#include <vector>

#include "cli/ckbench/reproduction.h"

namespace ckplan {

const std::vector<Reproduction>& AllReproductions();

// Returns the paper's table whose title begins with `title`. Fails the test if there is none.
const FigureTable& TableOf(std::string_view key, std::string_view title);
// Returns the row of the table with this subject and quantity. Fails the test if there is none.
const Figure& RowOf(const FigureTable& table, std::string_view what, std::string_view how);

}  // namespace ckplan
