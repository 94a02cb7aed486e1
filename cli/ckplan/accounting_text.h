// What training needs of a device, for people: docs/accounting.md.
#pragma once

#include <optional>
#include <string>

#include "cli/common/text_table.h"
#include "lib/planning/plan/accounting.h"

namespace ckplan {

// Returns a table with a row for each line and each sum. `title` heads the first column.
TextTable AccountingTable(const Accounting& accounting, const std::string& title);

// The answer in one line: "fits as it is, 1.20 GiB of 8.00 GiB to spare", or "fits with a plan, 3.2
// % slower, ...". `added_share` is what the plan adds to a step, as a share of it; none if keeping
// everything fits.
std::string FitLine(const Accounting& accounting, const Budget& memory,
                    std::optional<double> added_share);

// "8.00 GiB", or "24.00 GiB (rtx4090-24g)".
std::string MemoryText(const Budget& memory);

}  // namespace ckplan
