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

// Whether any plan has a bound on its time, which adds two columns to the tables.
bool HasBounds(const Comparison& comparison);

// Whether any algorithm is optimal in its class of plans. The table marks it with kProvenMark,
// which kProvenNote explains.
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

// The available width.
size_t TableWidth(const Terminal& terminal);

// Gives the two columns of figures as papers count them, "paper" and "time", full names.
void NamePaperColumns(TextTable* table);

// Drops all columns except those a paper prints. The algorithm's name marks a row that was stopped
// early.
void KeepColumnsOfPapers(TextTable* table);

// Adds a column in front, with a cell for each row.
void InsertColumn(TextTable* table, const TableColumn& column, std::vector<std::string> cells);

}  // namespace ckplan
