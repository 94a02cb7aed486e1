// Tables for people and for programs: aligned text, Markdown, or CSV from the same rows.
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
  std::vector<std::vector<std::string>> rows;  // Each as long as `columns`.

  // Two blanks between columns, each line preceded by `indent` blanks, none at the end of a line.
  std::string Text(size_t indent = 0) const;
  std::string Markdown() const;
  std::string Csv() const;  // RFC 4180, but with line feeds alone.
};

// Columns that the text takes on a terminal: one for each code point.
size_t DisplayWidth(std::string_view text);

// The text, or its beginning and end with "..." between, so that it takes at most `width` columns.
std::string Elided(std::string_view text, size_t width);

}  // namespace ckplan
