// Tables for people and for programs: aligned text, Markdown or CSV from the same rows. Cells are
// made printable, so that a name in one can neither break a row nor control a terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

struct TableColumn {
  std::string name;
  bool is_number = false;  // Aligned to the right.

  // What may happen to the column if the table is too wide.
  enum class Fit {
    kWhole,
    kElide,  // Names lose their middle.
    kWrap,   // Sentences continue in the next line.
  };
  Fit fit = Fit::kWhole;
  // If above 0, the column may be dropped when shortening names and wrapping sentences is not
  // enough, the column with 1 first. Columns with the same number are dropped together.
  int drop_order = 0;
};

struct TextTable {
  static constexpr size_t kAnyWidth = std::numeric_limits<size_t>::max();

  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // Each row has as many entries as there are columns.

  // Returns text with two blanks between columns, each line preceded by `indent` blanks, and no
  // blanks at the end of a line. A table that does not fit `width` shortens names, wraps sentences
  // and drops columns. If it still does not fit, the remaining columns follow in further tables
  // below, each of which repeats the first column.
  std::string Text(size_t indent = 0, size_t width = kAnyWidth) const;
  std::string Markdown() const;
  // A tabular that needs no package, with numbers aligned to the right, and with a rule above each
  // of the rows `ruled`.
  std::string Latex(const std::set<size_t>& ruled = {}) const;
  std::string Csv() const;  // As in RFC 4180, but lines end with a line feed alone.
};

// Returns the text made printable, shortened to its beginning and end with "..." between them if it
// takes more than `width` columns.
std::string Elided(std::string_view text, size_t width);

// Returns the texts shortened as by Elided, except that different texts which would become equal
// lose their common beginning first.
std::vector<std::string> ElidedApart(const std::vector<std::string>& texts, size_t width);

// Breaks text at blanks into lines of at most `width` columns, but not between a number and its
// unit. Where two blanks or more divide the text, the parts stay whole if they can. A longer word
// gets its own line.
std::vector<std::string> Wrapped(std::string_view text, size_t width);

// Folds lines to at most `width` columns. Sentences, and descriptions of rows such as " --flag
// what it does", continue in the next line; commands to copy, which are indented, stay whole.
std::string Folded(std::string_view help, size_t width);

}  // namespace ckplan
