// The table of algorithms that `ckplan compare` shows for one model.
#pragma once

#include <string>
#include <string_view>

#include "cli/ckplan/compare_models.h"
#include "cli/common/terminal.h"
#include "cli/common/text_table.h"
#include "lib/base/text.h"

namespace ckplan {

// One word on a row, for programs: "ok", "infeasible".
std::string_view StatusWord(const AlgorithmRow& row);

// Returns whether a plan of the comparison has a bound on its time. Tables have two more columns
// then.
bool HasBounds(const Comparison& comparison);

// Returns whether an algorithm of the comparison is optimal in its class of plans; the table marks
// it by kProvenMark, which kProvenNote explains.
bool HasProvenClass(const Comparison& comparison);
inline constexpr std::string_view kProvenMark = "optimal*";
inline constexpr std::string_view kProvenNote =
    "* for that objective, in its class of plans; see docs/algorithms.md\n";

// Returns whether a search was ended by a limit, with a plan; its row has the status
// kStoppedStatus, which kStoppedNote explains.
bool HasStopped(const Comparison& comparison);
inline constexpr std::string_view kStoppedStatus = "stopped early";
inline constexpr std::string_view kStoppedNote =
    "stopped early: a limit ended the search, and this is its best plan so far; --time-limit sets "
    "the limit\n";

struct CompareColumns {
  bool has_bounds = false;
  bool has_times = false;  // The seconds that each algorithm took.
};

// One row for each algorithm and budget. All sizes have one unit, which saves the width of the
// unit's name in each column.
TextTable CompareTable(const Comparison& comparison, const ByteUnit& unit,
                       const CompareColumns& columns);

// Marks the columns that may be dropped where the table is too wide. The arena is the least
// important one; a narrow terminal may have room only for the peak and the time. What papers count
// is dropped only on terminals, or if `drops_paper`.
void MarkDroppable(TextTable* table, bool has_bounds, bool drops_paper, const Terminal& terminal);

// Explains the columns of tables as they are shown, whose sizes are in `unit`.
std::string CompareLegend(std::string_view unit, std::string_view tables);

// The width in which a table is printed.
size_t TableWidth(const Terminal& terminal);

// Names the two columns of what papers count, which text calls "paper" and "time", by themselves.
void NamePaperColumns(TextTable* table);

// Leaves the columns that a paper prints. A row that was stopped early says so with its algorithm.
void KeepColumnsOfPapers(TextTable* table);

// Adds a column in front, with a cell for each row.
void InsertColumn(TextTable* table, const TableColumn& column, std::vector<std::string> cells);

}  // namespace ckplan
