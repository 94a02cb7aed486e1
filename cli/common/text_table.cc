#include "cli/common/text_table.h"

#include <algorithm>

namespace ckplan {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Where the character number `count` begins.
size_t ByteOffset(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (IsContinuation(text[at])) continue;
    if (count == 0) break;
    --count;
  }
  return at;
}

void AppendPadded(std::string& line, const std::string& cell, bool is_number, size_t width) {
  const std::string padding(width - std::min(width, DisplayWidth(cell)), ' ');
  line += is_number ? padding + cell : cell + padding;
}

void AppendLine(std::string& text, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line;
  text += '\n';
}

std::string CsvCell(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

void AppendCsvCell(std::string& text, const std::string& cell, size_t column) {
  if (column > 0) text += ',';
  text += CsvCell(cell);
}

std::string MarkdownCell(const std::string& cell) {
  std::string escaped;
  for (const char c : cell) {
    if (c == '|' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Elided(std::string_view text, size_t width) {
  constexpr std::string_view kDots = "...";
  const size_t length = DisplayWidth(text);
  if (length <= width) return std::string(text);
  if (width <= kDots.size()) return std::string(kDots.substr(0, width));
  // The end of a name says more than its beginning, so it gets the larger half.
  const size_t head = (width - kDots.size()) / 2;
  const size_t tail = width - kDots.size() - head;
  std::string short_text(text.substr(0, ByteOffset(text, head)));
  short_text += kDots;
  short_text += text.substr(ByteOffset(text, length - tail));
  return short_text;
}

std::string TextTable::Text(size_t indent) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t width = DisplayWidth(columns[c].name);
    for (const auto& row : rows) width = std::max(width, DisplayWidth(row[c]));
    widths.push_back(width);
  }
  std::string text;
  const auto append = [&](const auto& cell_of) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) line += "  ";
      AppendPadded(line, cell_of(c), columns[c].is_number, widths[c]);
    }
    AppendLine(text, std::move(line));
  };
  append([&](size_t c) -> const std::string& { return columns[c].name; });
  for (const auto& row : rows) append([&](size_t c) -> const std::string& { return row[c]; });
  return text;
}

std::string TextTable::Markdown() const {
  std::string head = "|";
  std::string rule = "|";
  for (const TableColumn& column : columns) {
    head.append(" ").append(MarkdownCell(column.name)).append(" |");
    rule += column.is_number ? " ---: |" : " --- |";
  }
  std::string text = head + '\n' + rule + '\n';
  for (const auto& row : rows) {
    text += '|';
    for (const std::string& cell : row) text.append(" ").append(MarkdownCell(cell)).append(" |");
    text += '\n';
  }
  return text;
}

std::string TextTable::Csv() const {
  std::string text;
  for (size_t c = 0; c < columns.size(); ++c) AppendCsvCell(text, columns[c].name, c);
  text += '\n';
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) AppendCsvCell(text, row[c], c);
    text += '\n';
  }
  return text;
}

}  // namespace ckplan
