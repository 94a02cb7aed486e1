// Tables for people and for programs: aligned text, Markdown or CSV from the same rows. Cells are
// made printable, so that a name in one can neither break a row nor command a terminal.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

struct TableColumn {
  std::string name;
  bool is_number = false;  // Aligned to the right.

  // What may happen to the column where the table is too wide.
  enum class Fit {
    kWhole,
    kElide,  // Names lose their middle.
    kWrap,   // Sentences go on in the next line.
  };
  Fit fit = Fit::kWhole;
  // Above 0: the column is left out where shorter names and sentences are not enough, that of 1
  // first. Columns of one number go together.
  int drop_order = 0;
};

struct TextTable {
  static constexpr size_t kAnyWidth = std::numeric_limits<size_t>::max();

  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // Each row has as many entries as there are columns.

  // Two blanks between columns, each line preceded by `indent` blanks, no blanks at the end of a
  // line. A table that does not fit `width` shortens names, wraps sentences and drops columns; what
  // does not fit even then stands in further tables below, each with the first column.
  std::string Text(size_t indent = 0, size_t width = kAnyWidth) const;
  std::string Markdown() const;
  std::string Csv() const;  // As in RFC 4180, but lines end with a line feed alone.
};

// The text made printable, or its beginning and end with "..." between them, so that it takes at
// most `width` columns.
std::string Elided(std::string_view text, size_t width);

// Lines of at most `width` columns, broken at blanks; a longer word has a line of its own.
std::vector<std::string> Wrapped(std::string_view text, size_t width);

// A help page in at most `width` columns. The descriptions of rows such as "  --flag   what it
// does", and sentences, go on in the next line; commands to copy stay whole.
std::string FoldedHelp(std::string_view help, size_t width);

}  // namespace ckplan
