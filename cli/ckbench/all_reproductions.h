// What `ckbench reproduce all` finds, for tests: computed once, which takes seconds.
#pragma once

#include <string_view>
#include <vector>

#include "cli/ckbench/reproduction.h"

namespace ckplan {

const std::vector<Reproduction>& AllReproductions();

// The table of the paper whose title begins like this. Fails the test if there is none.
const FigureTable& TableOf(std::string_view key, std::string_view title);
// The row of the table. Fails the test if there is none.
const Figure& RowOf(const FigureTable& table, std::string_view what, std::string_view how);

}  // namespace ckplan
