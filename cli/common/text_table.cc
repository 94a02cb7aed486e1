#include "cli/common/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr std::string_view kDots = "...";

using Fit = TableColumn::Fit;

constexpr size_t kGap = 2;  // Blanks between columns.
constexpr size_t kLongestCell = 400;
constexpr size_t kNarrowestName = 12;
constexpr size_t kNarrowestSentence = 20;

size_t MaxWidth(const TextTable& table, size_t column) {
  size_t width = CharacterCount(table.columns[column].name);
  for (const auto& row : table.rows) width = std::max(width, CharacterCount(row[column]));
  return width;
}

void MakePrintable(TextTable* table) {
  for (TableColumn& column : table->columns) column.name = Printable(column.name, kLongestCell);
  for (auto& row : table->rows) {
    for (std::string& cell : row) cell = Printable(cell, kLongestCell);
  }
}

// Fits a table's columns into a width.
class Layout {
 public:
  explicit Layout(TextTable table) : table_(std::move(table)) {
    for (size_t c = 0; c < table_.columns.size(); ++c) widths_.push_back(MaxWidth(table_, c));
  }

  void FitInto(size_t width) {
    while (MinWidth() > width && DropColumns()) {
    }
    for (const Fit fit : {Fit::kElide, Fit::kWrap}) Narrow(fit, width);
  }

  // Splits off the columns that fit into `width`, and returns the columns that are left for the
  // next table.
  TextTable SplitAt(size_t width) {
    size_t count = 1;
    size_t used = widths_.front();
    while (count < widths_.size() && (count == 1 || used + kGap + widths_[count] <= width)) {
      used += kGap + widths_[count++];
    }
    TextTable rest = table_;
    const auto take = [count](auto& of, auto& left) {
      if (count < left.size())
        left.erase(left.begin() + 1, left.begin() + static_cast<long>(count));
      if (count == of.size()) left.clear();
      of.resize(count);
    };
    take(table_.columns, rest.columns);
    for (size_t i = 0; i < table_.rows.size(); ++i) take(table_.rows[i], rest.rows[i]);
    widths_.resize(count);
    return rest;
  }

  std::string Text(size_t indent) const {
    std::vector<std::string> names;
    for (const TableColumn& column : table_.columns) names.push_back(column.name);
    std::string text;
    AppendRow(names, indent, &text);
    for (const auto& row : Elided()) AppendRow(row, indent, &text);
    return text;
  }

 private:
  size_t Width() const {
    size_t width = kGap * (widths_.size() - 1);
    for (const size_t one : widths_) width += one;
    return width;
  }

  // Returns the width of the table once names and sentences are at their narrowest.
  size_t MinWidth() const {
    size_t width = Width();
    for (size_t c = 0; c < widths_.size(); ++c) {
      width -= widths_[c] - std::min(widths_[c], MinWidthOf(table_.columns[c].fit));
    }
    return width;
  }

  static size_t MinWidthOf(Fit fit) {
    if (fit == Fit::kElide) return kNarrowestName;
    return fit == Fit::kWrap ? kNarrowestSentence : TextTable::kAnyWidth;
  }

  // Drops the columns that come first in the drop order. Returns false if there are none.
  bool DropColumns() {
    int first = 0;
    for (const TableColumn& column : table_.columns) {
      const int order = column.drop_order;
      if (order > 0 && (first == 0 || order < first)) first = order;
    }
    for (size_t c = table_.columns.size(); first > 0 && c-- > 0;) {
      if (table_.columns[c].drop_order != first) continue;
      const auto at = static_cast<long>(c);
      table_.columns.erase(table_.columns.begin() + at);
      widths_.erase(widths_.begin() + at);
      for (auto& row : table_.rows) row.erase(row.begin() + at);
    }
    return first > 0;
  }

  // Narrows the widest column of that kind until the table fits, or all such columns are at their
  // narrowest.
  void Narrow(Fit fit, size_t width) {
    const size_t narrowest = MinWidthOf(fit);
    while (Width() > width) {
      std::optional<size_t> widest;
      for (size_t c = 0; c < widths_.size(); ++c) {
        if (table_.columns[c].fit != fit || widths_[c] <= narrowest) continue;
        if (!widest || widths_[c] > widths_[*widest]) widest = c;
      }
      if (!widest) return;
      --widths_[*widest];
    }
  }

  // Returns the rows with names shortened to the widths of their columns.
  std::vector<std::vector<std::string>> Elided() const {
    std::vector<std::vector<std::string>> rows = table_.rows;
    for (size_t c = 0; c < table_.columns.size(); ++c) {
      if (table_.columns[c].fit != Fit::kElide) continue;
      std::vector<std::string> names;
      for (const auto& row : rows) names.push_back(row[c]);
      names = ElidedApart(names, widths_[c]);
      for (size_t i = 0; i < rows.size(); ++i) rows[i][c] = names[i];
    }
    return rows;
  }

  std::vector<std::string> LinesOf(const std::string& cell, size_t column) const {
    const Fit fit = table_.columns[column].fit;
    if (fit == Fit::kElide) return {ckplan::Elided(cell, widths_[column])};
    if (fit == Fit::kWrap) return Wrapped(cell, widths_[column]);
    return {cell};
  }

  void AppendRow(const std::vector<std::string>& row, size_t indent, std::string* text) const {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t c = 0; c < row.size(); ++c) {
      cells.push_back(LinesOf(row[c], c));
      height = std::max(height, cells.back().size());
    }
    for (size_t i = 0; i < height; ++i) {
      std::string line(indent, ' ');
      for (size_t c = 0; c < cells.size(); ++c) {
        if (c > 0) line.append(kGap, ' ');
        AppendPadded(i < cells[c].size() ? cells[c][i] : "", c, &line);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      *text += line + '\n';
    }
  }

  void AppendPadded(const std::string& cell, size_t column, std::string* line) const {
    const std::string padding(widths_[column] - std::min(widths_[column], CharacterCount(cell)),
                              ' ');
    *line += table_.columns[column].is_number ? padding + cell : cell + padding;
  }

  TextTable table_;
  std::vector<size_t> widths_;
};

void AppendCsvCell(std::string& text, const std::string& cell, size_t column) {
  if (column > 0) text += ',';
  text += CsvCell(Printable(cell));
}

std::string MarkdownCell(const std::string& cell) {
  std::string escaped;
  for (const char c : Printable(cell, kLongestCell)) {
    if (c == '|' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string LatexCell(const std::string& cell) {
  std::string escaped;
  for (const char c : Printable(cell, kLongestCell)) {
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) {
      escaped += '\\';
      escaped += c;
    } else if (c == '\\') {
      escaped += "\\textbackslash{}";
    } else if (c == '~' || c == '^') {
      escaped += fmt::format("\\{}{{}}", c);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

// Returns the column at which a row's description begins, after two or more blanks, or 0 if there
// is none.
size_t DescriptionColumn(std::string_view line) {
  const size_t name = line.find_first_not_of(' ');
  const size_t gap = name == 0 ? std::string_view::npos : line.find("  ", name);
  return gap == std::string_view::npos ? 0 : line.find_first_not_of(' ', gap);
}

std::string FoldLine(std::string_view line, size_t width) {
  constexpr size_t kNarrowestDescription = 20;
  constexpr size_t kFoldedColumn = 6;  // For descriptions that would be too narrow.
  if (CharacterCount(line) <= width) return std::string(line);
  const size_t column = DescriptionColumn(line);
  const bool is_command = column == 0 && line.front() == ' ';
  if (is_command) return std::string(line);
  std::string text(line.substr(0, column));
  size_t indent = column;
  if (column > 0 && column + kNarrowestDescription > width) {
    text.erase(text.find_last_not_of(' ') + 1);
    indent = kFoldedColumn;
    text += '\n' + std::string(indent, ' ');
  }
  bool is_first = true;
  for (const std::string& part : Wrapped(line.substr(column), width - std::min(width, indent))) {
    if (!std::exchange(is_first, false)) text += '\n' + std::string(indent, ' ');
    text += part;
  }
  return text;
}

}  // namespace

std::string Folded(std::string_view help, size_t width) {
  std::string text;
  while (!help.empty()) {
    const size_t end = std::min(help.find('\n'), help.size());
    text += FoldLine(help.substr(0, end), width);
    if (end < help.size()) text += '\n';
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  return text;
}

namespace {

// The part of a name that says which of many stages it belongs to: "layer.3/" in
// "encoder/layer.3/attention". It is the first part with a digit, with the one before it if it is a
// number alone. Positions are byte offsets; both are 0 without such a part.
struct NamePart {
  size_t begin = 0, end = 0;
};

NamePart StageOf(std::string_view name) {
  constexpr std::string_view kSeparators = "/.";
  constexpr std::string_view kDigits = "0123456789";
  const size_t digit = name.find_first_of(kDigits);
  const size_t end = name.find_first_of(kSeparators, digit);
  if (digit == std::string_view::npos || end == std::string_view::npos) return {};
  const auto begin_before = [name](size_t at) {
    const size_t separator = at == 0 ? std::string_view::npos : name.find_last_of("/.", at - 1);
    return separator == std::string_view::npos ? 0 : separator + 1;
  };
  size_t begin = begin_before(digit);
  const bool is_number = name.find_first_not_of(kDigits, begin) == end;
  if (is_number && begin > 0) begin = begin_before(begin - 1);
  return {begin, end + 1};
}

// Returns the stage and the end of the name; empty if the end would be less than its last part.
std::string StageAndEnd(const std::string& text, NamePart stage, size_t width) {
  const auto last_characters = [&text](size_t count) {
    return text.substr(ByteOffset(text, CharacterCount(text) - count));
  };
  const size_t without_beginning = width - kDots.size();
  if (CharacterCount(text.substr(stage.begin)) <= without_beginning) {
    return std::string(kDots) + last_characters(without_beginning);
  }
  std::string shown(stage.begin == 0 ? "" : kDots);
  shown += text.substr(stage.begin, stage.end - stage.begin);
  shown += kDots;
  const size_t last = text.find_last_of("/.", text.size() - 2) + 1;
  const size_t room = width - std::min(width, CharacterCount(shown));
  if (last < stage.end || room < CharacterCount(text.substr(last))) return "";
  return shown + last_characters(room);
}

}  // namespace

std::string Elided(std::string_view raw, size_t width) {
  const std::string text = Printable(raw);
  const size_t length = CharacterCount(text);
  if (length <= width) return text;
  if (width <= kDots.size()) return std::string(kDots.substr(0, width));
  // The end of a name says more than its beginning, so the end gets the larger half.
  const size_t head = (width - kDots.size()) / 2;
  const size_t tail = width - kDots.size() - head;
  const NamePart stage = StageOf(text);
  if (stage.end > ByteOffset(text, head)) {
    std::string short_text = StageAndEnd(text, stage, width);
    if (!short_text.empty()) return short_text;
  }
  std::string short_text = text.substr(0, ByteOffset(text, head));
  short_text += kDots;
  short_text += text.substr(ByteOffset(text, length - tail));
  return short_text;
}

namespace {

// Returns the length of the texts' common beginning, up to the start of a part of a name.
size_t CommonPrefix(const std::vector<std::string>& texts, const std::vector<size_t>& which) {
  const std::string& first = texts[which.front()];
  size_t length = first.size();
  for (const size_t i : which) {
    const auto [end, other] = std::mismatch(
        first.begin(), first.begin() + static_cast<long>(length), texts[i].begin(), texts[i].end());
    length = static_cast<size_t>(end - first.begin());
  }
  const size_t part = first.substr(0, length).find_last_of("/.");
  return part == std::string::npos ? 0 : part + 1;
}

// Returns where the first word of the text ends. A number and its unit, "96.00 KiB", are one word.
size_t EndOfWord(std::string_view text) {
  const size_t blank = std::min(text.find(' '), text.size());
  const bool is_number =
      blank > 0 && blank < text.size() && text[blank - 1] >= '0' && text[blank - 1] <= '9';
  if (!is_number) return blank;
  const std::string_view rest = text.substr(blank + 1);
  for (const std::string_view unit : {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (!rest.starts_with(unit)) continue;
    const std::string_view after = rest.substr(unit.size());
    if (after.empty() || after.front() == ' ' || after.front() == ',' || after.front() == ':') {
      return std::min(text.find(' ', blank + 1), text.size());
    }
  }
  return blank;
}

// Fills lines of at most `width` columns.
class LineFiller {
 public:
  explicit LineFiller(size_t width) : width_(width) {}

  // Adds the text to the last line, after the gap, or to a new line, without it.
  void Add(std::string_view gap, std::string_view text) {
    std::string& last = lines_.back();
    if (last.empty()) {
      last = text;
    } else if (CharacterCount(last) + gap.size() + CharacterCount(text) <= width_) {
      last += gap;
      last += text;
    } else {
      lines_.emplace_back(text);
    }
  }

  void AddWords(std::string_view gap, std::string_view text) {
    while (!text.empty()) {
      const size_t blank = EndOfWord(text);
      Add(gap, text.substr(0, blank));
      text.remove_prefix(std::min(blank + 1, text.size()));
      gap = " ";
    }
  }

  std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  size_t width_;
  std::vector<std::string> lines_{1};
};

}  // namespace

std::vector<std::string> ElidedApart(const std::vector<std::string>& texts, size_t width) {
  std::vector<std::string> elided;
  std::map<std::string, std::vector<size_t>> by_elided;
  for (size_t i = 0; i < texts.size(); ++i) {
    elided.push_back(Elided(texts[i], width));
    by_elided[elided.back()].push_back(i);
  }
  for (const auto& entry : by_elided) {
    const std::vector<size_t>& which = entry.second;
    const auto is_same = [&](size_t i) { return texts[i] == texts[which.front()]; };
    if (std::all_of(which.begin(), which.end(), is_same)) continue;
    const size_t common = CommonPrefix(texts, which);
    if (common == 0 || width <= kDots.size()) continue;
    for (const size_t i : which) {
      elided[i] = std::string(kDots) + Elided(texts[i].substr(common), width - kDots.size());
    }
  }
  return elided;
}

std::vector<std::string> Wrapped(std::string_view text, size_t width) {
  LineFiller filler(width);
  while (!text.empty()) {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::string_view gap = text.substr(0, begin);
    const size_t end = std::min(text.find("  ", begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    text.remove_prefix(end);
    if (part.empty()) break;
    if (CharacterCount(part) <= width) {
      filler.Add(gap, part);
    } else {
      filler.AddWords(gap, part);
    }
  }
  return std::move(filler).lines();
}

std::string TextTable::Text(size_t indent, size_t width) const {
  TextTable rest = *this;
  MakePrintable(&rest);
  const size_t room = width == kAnyWidth ? kAnyWidth : width - std::min(width, indent);
  std::string text;
  while (!rest.columns.empty()) {
    Layout layout(std::move(rest));
    layout.FitInto(room);
    rest = layout.SplitAt(room);
    if (!text.empty()) text += '\n';
    text += layout.Text(indent);
  }
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

std::string TextTable::Latex(const std::set<size_t>& ruled) const {
  std::string text = "\\begin{tabular}{";
  for (const TableColumn& column : columns) text += column.is_number ? 'r' : 'l';
  text += "}\n\\hline\n";
  const auto append = [&](size_t c, const std::string& cell) {
    text += (c == 0 ? "" : " & ") + LatexCell(cell);
  };
  for (size_t c = 0; c < columns.size(); ++c) append(c, columns[c].name);
  text += " \\\\\n\\hline\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    if (ruled.contains(r)) text += "\\hline\n";
    for (size_t c = 0; c < rows[r].size(); ++c) append(c, rows[r][c]);
    text += " \\\\\n";
  }
  return text + "\\hline\n\\end{tabular}\n";
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
