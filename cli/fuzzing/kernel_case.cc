#include "cli/fuzzing/kernel_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <regex>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/units.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

using Words = std::vector<std::string>;
constexpr size_t kLines = 3;  // One each for the operator, its operands and its attributes.
constexpr size_t kMaxText = 2000;

Words SplitAt(std::string_view text, char separator) {
  Words words;
  while (true) {
    const size_t end = text.find(separator);
    words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end + 1);
  }
}

Words WordsOf(std::string_view line) {
  Words words = SplitAt(line, ' ');
  std::erase(words, "");
  return words;
}

Words LinesOf(std::string_view text) {
  Words lines = SplitAt(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() < kLines) lines.resize(kLines);
  return lines;
}

// Numbers with this many digits can always be parsed.
#define INTEGER "-?[0-9]{1,18}"
#define DECIMAL "-?[0-9]{1,9}(\\.[0-9]{1,9})?"
#define NUMBER "(" DECIMAL "(e-?[0-9]{1,2})?|-?inf|nan)"

bool IsOperand(const std::string& word) {
  static const std::regex form(
      "_|[finb](s|[0-9]{1,18}(x[0-9]{1,18}){0,7})[*~!]?"
      "(\\(" DECIMAL "\\.\\." DECIMAL "\\)|[=@]\\[" NUMBER "(," NUMBER "){0,63}\\])?");
  return std::regex_match(word, form);
}

bool IsAttribute(const std::string& word) {
  static const std::regex form("[A-Za-z_]{1,40}=(" NUMBER "|" INTEGER "|'[^' ]{0,80}'|\\[(" NUMBER
                               "(," NUMBER
                               "){0,31})?\\]"
                               "|\\{" NUMBER "(," NUMBER "){0,31}\\})");
  return std::regex_match(word, form);
}

#undef INTEGER
#undef DECIMAL
#undef NUMBER

bool IsOperator(const std::string& word) {
  static const std::regex form("[A-Za-z0-9_.]{1,60}(@[0-9]{1,3})?");
  return std::regex_match(word, form);
}

// Returns nothing for dimensions whose product exceeds the limit for graphs, which are rejected
// before operators are checked.
std::optional<int64_t> CheckedElements(const std::string& operand) {
  if (operand == "_" || operand[1] == 's') return 1;
  std::optional<int64_t> elements = 1;
  const size_t end = std::min(operand.find_first_not_of("0123456789x", 1), operand.size());
  for (const std::string& dim : SplitAt(operand.substr(1, end - 1), 'x')) {
    if (elements) elements = CheckedMul(*elements, std::stoll(dim));
  }
  if (elements && *elements > kMaxTotalBytes.count() / 8) return std::nullopt;
  return elements;
}

// True if the contents fit the operand. A range must not run backwards. Listed contents need one
// number per element, and integers if the operand holds integers. Booleans have no contents.
bool ContentsFit(const std::string& operand) {
  if (operand[0] == 'b') return operand.find_first_of("([") == std::string::npos;
  const size_t range = operand.find('(');
  if (range != std::string::npos) {
    const size_t dots = operand.find("..", range);
    return std::stod(operand.substr(range + 1)) <= std::stod(operand.substr(dots + 2));
  }
  const size_t open = operand.find('[');
  if (open == std::string::npos) return true;
  const std::string list = operand.substr(open + 1, operand.size() - open - 2);
  const bool has_reals = list.find_first_of(".einfa") != std::string::npos;
  return (operand[0] == 'f' || !has_reals) &&
         static_cast<int64_t>(SplitAt(list, ',').size()) == CheckedElements(operand);
}

bool IsCase(const Words& lines) {
  if (lines.size() != kLines || !IsOperator(lines[0])) return false;
  Words operands = WordsOf(lines[1]);
  const auto arrow = std::find(operands.begin(), operands.end(), "->");
  if (arrow == operands.end()) return false;
  operands.erase(arrow);
  const Words attributes = WordsOf(lines[2]);
  const auto is_sound = [](const std::string& operand) {
    return IsOperand(operand) && CheckedElements(operand) && ContentsFit(operand);
  };
  return operands.size() <= 16 && std::all_of(operands.begin(), operands.end(), is_sound) &&
         std::all_of(attributes.begin(), attributes.end(), IsAttribute);
}

const std::vector<reference::CaseRow>& AllCases() {
  static const std::vector<reference::CaseRow> cases = [] {
    std::vector<reference::CaseRow> all;
#define CKPLAN_FAMILY(Name) \
  for (const reference::CaseRow& row : reference::Name##Cases()) all.push_back(row);
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
    return all;
  }();
  return cases;
}

// True if the same operands are present, with the same types.
bool HasTypesOf(const std::vector<Operand>& operands, const std::vector<Operand>& of_case) {
  const auto has_type_of = [](const Operand& operand, const Operand& other) {
    return operand.is_present == other.is_present &&
           (!operand.is_present || operand.type == other.type);
  };
  return std::equal(operands.begin(), operands.end(), of_case.begin(), of_case.end(), has_type_of);
}

const std::multimap<std::string, OpSpec>& CasesByType() {
  static const std::multimap<std::string, OpSpec> cases = [] {
    std::multimap<std::string, OpSpec> all;
    for (const reference::CaseRow& row : AllCases()) {
      OpSpec spec = ParseCase(row).spec;
      all.emplace(spec.type, std::move(spec));
    }
    return all;
  }();
  return cases;
}

bool AreOperandsKnown(const OpSpec& spec) {
  const auto [begin, end] = CasesByType().equal_range(spec.type);
  return std::any_of(begin, end, [&spec](const auto& known) {
    return HasTypesOf(spec.inputs, known.second.inputs) &&
           HasTypesOf(spec.outputs, known.second.outputs);
  });
}

class Mutator {
 public:
  Mutator(std::string_view text, unsigned int seed) : rng_(seed), lines_(LinesOf(text)) {}

  std::string Mutate() {
    if (!IsCase(lines_)) lines_ = RandomCase();
    for (int64_t i = rng_.Between(1, 4); i > 0; --i) MutateOnce();
    return fmt::format("{}", fmt::join(lines_, "\n"));
  }

 private:
  template <typename List>
  size_t RandomElement(const List& list) {
    return static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(list.size()) - 1));
  }

  Words RandomCase() {
    const reference::CaseRow& row = AllCases()[RandomElement(AllCases())];
    return {std::string(row.type), std::string(row.operands), std::string(row.attributes)};
  }

  void MutateOnce() {
    switch (rng_.Between(0, 9)) {
      case 0:
        lines_ = RandomCase();
        return;
      case 1:
        lines_[0] = RandomCase()[0];  // Another operator with the same operands.
        return;
      case 2:
      case 3:
      case 4:
        return ChangeNumber(false);
      case 5:
      case 6:
        return ChangeNumber(true);
      case 7:
        return ChangeLetter();
      default:
        return ChangeWords();
    }
  }

  std::string RandomNumber(const std::string& old) {
    constexpr std::array kNumbers = {"0",  "1",   "2",          "3",          "4",         "5",
                                     "7",  "8",   "9",          "16",         "17",        "33",
                                     "64", "100", "2147483647", "2147483648", "4294967297"};
    if (old.size() < 10 && rng_.Chance(50)) {
      return std::to_string(std::max<int64_t>(0, std::stoll(old) + rng_.Between(-2, 2)));
    }
    return kNumbers[RandomElement(kNumbers)];
  }

  // Changes a number, in one place or wherever it occurs.
  void ChangeNumber(bool everywhere) {
    std::vector<std::pair<size_t, size_t>> places;  // Line, and position in the line.
    for (size_t line = 0; line < lines_.size(); ++line) {
      for (size_t i = 0; i < lines_[line].size(); ++i) {
        if (IsNumberStart(lines_[line], i)) places.emplace_back(line, i);
      }
    }
    if (places.empty()) return;
    const auto [line, at] = places[RandomElement(places)];
    const std::string old = NumberAt(lines_[line], at);
    const std::string number = RandomNumber(old);
    const bool is_negative = rng_.Chance(10);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      std::string& text = lines_[place->first];
      const bool is_it = place->first == line && place->second == at;
      if (!is_it && (!everywhere || NumberAt(text, place->second) != old)) continue;
      text.replace(place->second, old.size(), is_negative ? "-" + number : number);
    }
  }

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsNumberStart(const std::string& text, size_t i) {
    return IsDigit(text[i]) && (i == 0 || !IsDigit(text[i - 1]));
  }
  static std::string NumberAt(const std::string& text, size_t at) {
    return text.substr(at, std::min(text.find_first_not_of("0123456789", at), text.size()) - at);
  }

  // Changes an operand's type or role.
  void ChangeLetter() {
    Words words = WordsOf(lines_[1]);
    if (words.empty()) return;
    std::string& word = words[RandomElement(words)];
    if (word == "->" || word == "_") return;
    constexpr std::string_view kTypes = "finb";
    constexpr std::string_view kRoles = "*~!";
    const size_t role = word.find_first_of("*~!(=@");
    if (rng_.Chance(40)) {
      word[0] = kTypes[RandomElement(kTypes)];
    } else if (role != std::string::npos && kRoles.find(word[role]) != std::string_view::npos) {
      word.erase(role, 1);
    } else {
      word.insert(std::min(role, word.size()), 1, kRoles[RandomElement(kRoles)]);
    }
    lines_[1] = fmt::format("{}", fmt::join(words, " "));
  }

  void ChangeWords() {
    const size_t line = rng_.Chance(60) ? 1 : 2;
    Words words = WordsOf(lines_[line]);
    const Words others = WordsOf(RandomCase()[line]);
    const size_t at = words.empty() ? 0 : RandomElement(words);
    const auto place = words.begin() + static_cast<int64_t>(at);
    switch (rng_.Between(0, 4)) {
      case 0:
        if (!words.empty()) words.erase(place);
        break;
      case 1:
        if (!words.empty()) words.insert(place, std::string(*place));
        break;
      case 2:
        if (!words.empty() && line == 1 && *place != "->") *place = "_";
        break;
      case 3:
        if (!words.empty() && line == 1) ChangeRank(*place);
        break;
      default:
        if (!others.empty()) words.insert(place, others[RandomElement(others)]);
    }
    lines_[line] = fmt::format("{}", fmt::join(words, " "));
  }

  // Adds or removes one axis of an operand.
  void ChangeRank(std::string& word) {
    const size_t x = word.find('x');
    if (word == "->" || word == "_" || word.size() < 2) return;
    if (x != std::string::npos && rng_.Chance(50)) {
      word.erase(1, x);
    } else if (IsDigit(word[1])) {
      word.insert(1, rng_.Chance(70) ? "1x" : "2x");
    }
  }

  Rng rng_;
  Words lines_;
};

}  // namespace

std::optional<reference::OpCase> ReadKernelCase(std::string_view text) {
  if (text.size() > kMaxText) return std::nullopt;
  const Words lines = LinesOf(text);
  if (!IsCase(lines)) return std::nullopt;
  reference::OpCase op_case = reference::ParseCase({lines[0], lines[1], lines[2]});
  if (!AreOperandsKnown(op_case.spec)) return std::nullopt;
  return op_case;
}

std::string MutateKernelCase(std::string_view text, unsigned int seed) {
  return Mutator(text, seed).Mutate();
}

}  // namespace ckplan
