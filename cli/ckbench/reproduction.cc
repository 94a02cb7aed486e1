#include "cli/ckbench/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "cli/common/text_table.h"
#include "lib/files/emit/json_writer.h"

namespace ckplan {
namespace {

constexpr int64_t kExplainAbove = 20;  // 2 %, in 0.1 percent.

std::string_view NameOf(FigureUnit unit) {
  switch (unit) {
    case FigureUnit::kRatio:
      return "0.0001";
    case FigureUnit::kReduction:
      return "0.1 percent of the baseline";
    case FigureUnit::kMebibytes:
      return "MiB";
    case FigureUnit::kGigabytes:
      return "0.1 GB";
    case FigureUnit::kFactor:
      return "0.01";
    case FigureUnit::kPercent:
      return "0.1 percent";
    case FigureUnit::kCount:
      return "1";
    case FigureUnit::kMilliseconds:
      return "ms";
    case FigureUnit::kMicroseconds:
      return "us";
    case FigureUnit::kCheckpoints:
      return "checkpoints";
  }
  return "";
}

std::string_view NameOf(SetMatch match) {
  switch (match) {
    case SetMatch::kSame:
      return "same";
    case SetMatch::kTie:
      return "tie";
    case SetMatch::kDiffers:
      return "differs";
  }
  return "";
}

// Returns `steps` units of 1 / 10^decimals as a decimal number.
std::string Decimal(int64_t steps, int decimals) {
  int64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const int64_t size = std::abs(steps);
  return fmt::format("{}{}.{:0{}}", steps < 0 ? "-" : "", size / scale, size % scale, decimals);
}

std::string ValueText(FigureUnit unit, std::optional<int64_t> value) {
  if (!value) return "-";
  switch (unit) {
    case FigureUnit::kRatio:
      return Decimal(*value, 4);
    case FigureUnit::kReduction:
    case FigureUnit::kPercent:
      return Decimal(*value, 1) + " %";
    case FigureUnit::kMebibytes:
      return fmt::format("{} MiB", *value);
    case FigureUnit::kGigabytes:
      return Decimal(*value, 1) + " GB";
    case FigureUnit::kFactor:
      return Decimal(*value, 2);
    case FigureUnit::kCount:
      return fmt::format("{}", *value);
    case FigureUnit::kMilliseconds:
      return fmt::format("{} ms", *value);
    case FigureUnit::kMicroseconds:
      return fmt::format("{} us", *value);
    case FigureUnit::kCheckpoints:
      break;
  }
  return "";
}

std::string SetText(const std::vector<int64_t>& set) {
  return fmt::format("{{{}}}", fmt::join(set, ","));
}

std::string PaperText(const Figure& figure) {
  if (figure.unit == FigureUnit::kCheckpoints) return SetText(figure.paper_set);
  const char* const bound = figure.paper_ran_out    ? "above "
                            : figure.paper_is_limit ? "at most "
                                                    : "";
  return bound + ValueText(figure.unit, figure.paper);
}

// Breaks text into lines of at most `width` columns; the second and later lines are indented by
// `indent` blanks.
std::string Wrapped(std::string_view text, size_t width, size_t indent) {
  std::string wrapped;
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped += '\n';
      wrapped.append(indent, ' ');
      column = indent;
    } else if (column > 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped;
}

constexpr size_t kTextWidth = 100;
constexpr size_t kPageWidth = 120;

struct OutcomeRow {
  Outcome outcome;
  std::string_view key;
  std::string_view title;
};
constexpr std::array kOutcomes = {
    OutcomeRow{Outcome::kReproduced, "reproduced", "Reproduced within 2 points"},
    OutcomeRow{Outcome::kDiffers, "differs", "Differs, and why"},
    OutcomeRow{Outcome::kNeedsGpu, "needs-gpu", "Needs a GPU"},
    OutcomeRow{Outcome::kUnpublished, "unpublished", "No number in the paper"},
};

int64_t CountOf(const Reproduction& reproduction, Outcome outcome) {
  int64_t count = 0;
  for (const FigureTable& table : reproduction.tables) {
    count += std::count_if(table.figures.begin(), table.figures.end(),
                           [&](const Figure& figure) { return OutcomeOf(figure) == outcome; });
  }
  return count;
}

// How many figures of each paper are in each group.
TextTable CountTable(const std::vector<Reproduction>& reproductions) {
  TextTable text;
  text.columns = {{"paper", false, TableColumn::Fit::kWrap}};
  for (const OutcomeRow& row : kOutcomes) {
    std::string title(row.title);
    title.front() = static_cast<char>(std::tolower(title.front()));
    text.columns.push_back({title, true});
  }
  for (const Reproduction& reproduction : reproductions) {
    const size_t year = reproduction.paper.rfind(' ') + 1;  // The last word.
    std::vector<std::string> cells = {
        fmt::format("{} {}", reproduction.paper.substr(0, reproduction.paper.find(',')),
                    reproduction.paper.substr(year))};
    for (const OutcomeRow& row : kOutcomes) {
      cells.push_back(fmt::format("{}", CountOf(reproduction, row.outcome)));
    }
    text.rows.push_back(std::move(cells));
  }
  return text;
}

// The rows of a table in one group, with its notes. The note numbers are those of the table.
struct TablePart {
  FigureTable table;
  std::vector<size_t> notes;  // Numbers of the notes that its figures have, ascending.
  bool is_first = true;       // No group before has rows of the table.
};

std::vector<TablePart> TablePartsOf(const Reproduction& reproduction, Outcome outcome) {
  std::vector<TablePart> parts;
  for (const FigureTable& table : reproduction.tables) {
    TablePart part;
    part.table = table;
    std::erase_if(part.table.figures,
                  [&](const Figure& figure) { return OutcomeOf(figure) != outcome; });
    if (part.table.figures.empty()) continue;
    std::set<size_t> notes;
    for (const Figure& figure : part.table.figures) {
      if (figure.note > 0) notes.insert(static_cast<size_t>(figure.note));
    }
    part.notes.assign(notes.begin(), notes.end());
    part.is_first = std::none_of(table.figures.begin(), table.figures.end(),
                                 [&](const Figure& figure) { return OutcomeOf(figure) < outcome; });
    parts.push_back(std::move(part));
  }
  return parts;
}

TextTable TableOf(const FigureTable& table) {
  TextTable text;
  constexpr TableColumn::Fit kWrap = TableColumn::Fit::kWrap;
  text.columns = {{"what", false, kWrap}, {"how", false, kWrap}, {"ours", true},
                  {"paper", true},        {"difference", true},  {"note", true}};
  for (const Figure& figure : table.figures) {
    const bool is_set = figure.unit == FigureUnit::kCheckpoints;
    text.rows.push_back({figure.subject, figure.quantity,
                         is_set ? SetText(figure.our_set) : ValueText(figure.unit, figure.ours),
                         PaperText(figure), DifferenceText(figure),
                         figure.note > 0 ? fmt::format("{}", figure.note) : ""});
  }
  return text;
}

int64_t RoundedQuotient(int64_t numerator, int64_t factor, int64_t denominator) {
  const auto wide = static_cast<__int128>(numerator) * factor * 2 + denominator;
  auto quotient = wide / (2 * static_cast<__int128>(denominator));
  if (wide % (2 * static_cast<__int128>(denominator)) != 0 && wide < 0) --quotient;
  return static_cast<int64_t>(quotient);
}

void WriteFigure(const Figure& figure, JsonWriter& json) {
  const auto number = [&](std::string_view key, std::optional<int64_t> value) {
    json.Key(key);
    if (value) {
      json.Integer(*value);
    } else {
      json.Null();
    }
  };
  const auto set = [&](std::string_view key, const std::vector<int64_t>& values) {
    json.Key(key).BeginArray(JsonLayout::kInline);
    for (const int64_t value : values) json.Integer(value);
    json.End();
  };
  json.BeginObject(JsonLayout::kInline);
  json.Key("what").Text(figure.subject);
  json.Key("how").Text(figure.quantity);
  json.Key("unit").Text(NameOf(figure.unit));
  if (figure.unit == FigureUnit::kCheckpoints) {
    set("our_checkpoints", figure.our_set);
    set("paper_checkpoints", figure.paper_set);
    json.Key("match").Text(NameOf(figure.match));
  } else {
    number("ours", figure.ours);
    number("paper", figure.paper);
    if (figure.paper_ran_out) json.Key("paper_ran_out").Boolean(true);
    if (figure.paper_is_limit) json.Key("paper_is_limit").Boolean(true);
    number("difference_permille", figure.Difference());
  }
  for (const OutcomeRow& row : kOutcomes) {
    if (row.outcome == OutcomeOf(figure)) json.Key("group").Text(row.key);
  }
  json.Key("note").Integer(figure.note);
  json.End();
}

}  // namespace

std::optional<int64_t> Figure::Difference() const {
  if (!ours || !paper || unit == FigureUnit::kCheckpoints) return std::nullopt;
  if (paper_ran_out && *ours > *paper) return std::nullopt;
  if (paper_is_limit && *ours <= *paper) return std::nullopt;
  const bool is_in_points = unit == FigureUnit::kReduction || unit == FigureUnit::kPercent;
  if (is_in_points) return *ours - *paper;
  return RoundedQuotient(*ours - *paper, 1000, *paper);
}

bool Figure::NeedsExplanation() const {
  if (unit == FigureUnit::kCheckpoints) return match == SetMatch::kDiffers;
  if (!ours) return true;
  if (paper_ran_out) return *ours <= *paper;
  return Difference().has_value() && std::abs(*Difference()) > kExplainAbove;
}

Outcome OutcomeOf(const Figure& figure) {
  const bool is_set = figure.unit == FigureUnit::kCheckpoints;
  if (!is_set && !figure.ours) return Outcome::kNeedsGpu;
  if (!is_set && !figure.paper) return Outcome::kUnpublished;
  return figure.NeedsExplanation() ? Outcome::kDiffers : Outcome::kReproduced;
}

int32_t FigureTable::Note(const std::string& text) {
  const auto found = std::find(notes.begin(), notes.end(), text);
  if (found != notes.end()) return static_cast<int32_t>(found - notes.begin()) + 1;
  notes.push_back(text);
  return static_cast<int32_t>(notes.size());
}

std::string DifferenceText(const Figure& figure) {
  if (figure.unit == FigureUnit::kCheckpoints) return std::string(NameOf(figure.match));
  if (figure.paper_ran_out && figure.ours > figure.paper) return "also above";
  if (figure.paper_is_limit && figure.ours <= figure.paper) return "within";
  const std::optional<int64_t> difference = figure.Difference();
  if (!difference) return "";
  if (figure.ours == figure.paper && !figure.paper_ran_out) return "same";
  const bool is_in_points =
      figure.unit == FigureUnit::kReduction || figure.unit == FigureUnit::kPercent;
  return fmt::format("{}{} {}", *difference >= 0 ? "+" : "", Decimal(*difference, 1),
                     is_in_points ? "points" : "%");
}

std::string ReproductionText(const std::vector<Reproduction>& reproductions, size_t width) {
  const size_t text_width = std::min(width, kTextWidth);
  std::string text = CountTable(reproductions).Text(0, width);
  for (const Reproduction& reproduction : reproductions) {
    text += fmt::format("\n{}\n", Wrapped(reproduction.paper, text_width, 0));
    for (const OutcomeRow& row : kOutcomes) {
      const std::vector<TablePart> parts = TablePartsOf(reproduction, row.outcome);
      if (!parts.empty()) {
        text += fmt::format("\n{}: {}\n", row.title, CountOf(reproduction, row.outcome));
      }
      for (const TablePart& part : parts) {
        text += fmt::format("\n{}\n", part.table.title);
        if (part.is_first) text += Wrapped(part.table.intro, text_width, 0) + "\n";
        text += "\n" + TableOf(part.table).Text(2, width);
        for (const size_t i : part.notes) {
          const std::string note = fmt::format("({}) {}", i, part.table.notes[i - 1]);
          text += fmt::format("{}{}\n", i == part.notes.front() ? "\n" : "",
                              Wrapped(note, text_width, 4));
        }
      }
    }
  }
  return text;
}

std::string ReproductionMarkdown(const std::vector<Reproduction>& reproductions) {
  std::string page =
      "# The papers' figures, and ours\n\nThis page is what `ckbench reproduce --format md` "
      "prints, from the models in `testdata/models` and from graphs that it\nbuilds itself. "
      "Nothing is measured on a device: memory is simulated, exact to the byte, or an algorithm's "
      "own\nobjective. Each difference above 2 %, or 2 percentage points of a reduction, refers to "
      "a numbered note below its table. The rows of Kusumoto et al. are those of our own exports; "
      "[reproduction_kusumoto.md](reproduction_kusumoto.md) has those on the authors' graphs.\n\n";
  return page + CountTable(reproductions).Markdown() + TablesMarkdown(reproductions);
}

std::string TablesMarkdown(const std::vector<Reproduction>& reproductions) {
  std::string page;
  for (const Reproduction& reproduction : reproductions) {
    page += fmt::format("\n## {}\n", reproduction.paper);
    for (const OutcomeRow& row : kOutcomes) {
      const std::vector<TablePart> parts = TablePartsOf(reproduction, row.outcome);
      if (!parts.empty()) {
        page += fmt::format("\n### {}: {}\n", row.title, CountOf(reproduction, row.outcome));
      }
      for (const TablePart& part : parts) {
        page += fmt::format("\n#### {}\n\n", part.table.title);
        if (part.is_first) page += Wrapped(part.table.intro, kPageWidth, 0) + "\n\n";
        page += TableOf(part.table).Markdown();
        for (const size_t i : part.notes) {
          const std::string note = fmt::format("{}. {}", i, part.table.notes[i - 1]);
          page += fmt::format("{}{}\n", i == part.notes.front() ? "\n" : "",
                              Wrapped(note, kPageWidth, 3));
        }
      }
    }
  }
  return page;
}

std::string ReproductionJson(const std::vector<Reproduction>& reproductions) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines);
  json.Key("schema_version").Text("1.0");
  json.Key("papers").BeginArray(JsonLayout::kLines);
  for (const Reproduction& reproduction : reproductions) {
    json.BeginObject(JsonLayout::kLines);
    json.Key("key").Text(reproduction.key);
    json.Key("paper").Text(reproduction.paper);
    json.Key("tables").BeginArray(JsonLayout::kLines);
    for (const FigureTable& table : reproduction.tables) {
      json.BeginObject(JsonLayout::kLines);
      json.Key("title").Text(table.title);
      json.Key("intro").Text(table.intro);
      json.Key("figures").BeginArray(JsonLayout::kLines);
      for (const Figure& figure : table.figures) WriteFigure(figure, json);
      json.End();
      json.Key("notes").BeginArray(JsonLayout::kLines);
      for (const std::string& note : table.notes) json.Text(note);
      json.End();
      json.End();
    }
    json.End();
    json.End();
  }
  json.End();
  json.End();
  return std::move(json).Finish();
}

int64_t RatioSteps(Bytes part, Bytes whole) {
  return RoundedQuotient(part.count(), 10000, whole.count());
}

int64_t ReductionSteps(Bytes peak, Bytes baseline) {
  return RoundedQuotient(peak.count() - baseline.count(), 1000, baseline.count());
}

int64_t MebibyteSteps(Bytes bytes) { return RoundedQuotient(bytes.count(), 1, int64_t{1} << 20); }

int64_t GigabyteSteps(Bytes bytes) { return RoundedQuotient(bytes.count(), 1, 100'000'000); }

int64_t FactorSteps(Bytes larger, Bytes smaller) {
  return RoundedQuotient(larger.count(), 100, smaller.count());
}

int64_t FactorSteps(Cost larger, Cost smaller) {
  return RoundedQuotient(larger.count(), 100, smaller.count());
}

int64_t MillisecondSteps(Cost nanoseconds) {
  return RoundedQuotient(nanoseconds.count(), 1, 1'000'000);
}

}  // namespace ckplan
