// Tables for people and for programs: aligned text, Markdown or CSV from the same rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

struct TableColumn {
  std::string name;
  bool is_number = false;  // Aligned to the right.
};

struct TextTable {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  // Each row has as many entries as there are columns.

  // Two blanks between columns, each line preceded by `indent` blanks, no blanks at the end of a
  // line.
  std::string Text(size_t indent = 0) const;
  std::string Markdown() const;
  std::string Csv() const;  // As in RFC 4180, but lines end with a line feed alone.
};

// The number of terminal columns that the text takes: one for each code point.
size_t DisplayWidth(std::string_view text);

// The text itself, or its beginning and end with "..." between them, so that it takes at most
// `width` columns.
std::string Elided(std::string_view text, size_t width);

}  // namespace ckplan
