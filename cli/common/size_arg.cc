#include "cli/common/size_arg.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "lib/base/text.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

using Wide = unsigned __int128;

struct Unit {
  std::string_view name;
  int64_t bytes;
};
constexpr Unit kUnits[] = {
    {"B", 1},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
    {"PiB", int64_t{1} << 50},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
};

constexpr int64_t kMaxPercent = 1000;

// A decimal number without sign. Its value is digits / scale.
struct Decimal {
  int64_t digits = 0;
  int64_t scale = 1;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Removes and returns the number at the front of `text`. Returns nothing if there is none, or if it
// has more digits than any size needs.
std::optional<Decimal> TakeDecimal(std::string_view* text) {
  constexpr size_t kMaxDigits = 18;  // 10^18 < 2^63
  Decimal number;
  size_t digit_count = 0;
  bool has_point = false;
  size_t i = 0;
  for (; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '.' && !has_point && i > 0) {
      has_point = true;
      continue;
    }
    if (!IsDigit(c)) break;
    if (++digit_count > kMaxDigits) return std::nullopt;
    number.digits = number.digits * 10 + (c - '0');
    if (has_point) number.scale *= 10;
  }
  const bool ends_with_point = i > 0 && (*text)[i - 1] == '.';
  if (digit_count == 0 || ends_with_point) return std::nullopt;
  text->remove_prefix(i);
  return number;
}

Error BadValue(std::string_view text, std::string_view flag, std::string_view forms,
               std::string_view meant = {}) {
  constexpr size_t kLongestEcho = 80;
  const std::string_view dots = text.size() > kLongestEcho ? "..." : "";
  const std::string what =
      fmt::format("{}: \"{}{}\" is not understood; ", flag, text.substr(0, kLongestEcho), dots);
  return MakeError(ErrorCode::kUsage, meant.empty() ? fmt::format("{}give {}", what, forms)
                                                    : fmt::format("{}did you mean \"{}\"? Give {}",
                                                                  what, meant, forms));
}

// Returns the text in small letters without blanks, or "" for a text that is too long to guess its
// meaning.
std::string SimplifyText(std::string_view text) {
  constexpr size_t kLongest = 24;
  std::string simple;
  for (const char c : text.substr(0, text.size() > kLongest ? 0 : kLongest)) {
    if (c != ' ') simple += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return simple;
}

constexpr std::string_view kSizeForms =
    "a size in bytes such as 16GiB (binary), 16GB (decimal), 512MiB or 1073741824";

std::string BudgetFormsText(BudgetForms forms) {
  std::string text(kSizeForms);
  if (forms.percent) text += ", a share of keep-all's peak such as 60%";
  if (forms.min) text += forms.balanced ? ", min" : ", or min";
  if (forms.balanced) text += ", or balanced";
  return text;
}

// Returns the bytes that the text means, however many, or nothing if it is no size.
std::optional<Wide> ReadAnySize(std::string_view text) {
  const std::optional<Decimal> number = TakeDecimal(&text);
  if (!number) return std::nullopt;
  if (text.empty()) {
    if (number->scale != 1) return std::nullopt;  // "1.5" lacks a unit.
    text = "B";
  }
  for (const Unit& unit : kUnits) {
    if (unit.name != text) continue;
    return static_cast<Wide>(number->digits) * static_cast<Wide>(unit.bytes) /
           static_cast<Wide>(number->scale);
  }
  return std::nullopt;
}

bool IsTooLarge(Wide bytes) { return bytes > static_cast<Wide>(kMaxTotalBytes.count()); }

// Returns nothing if the text is no size, or a size above the largest that a graph may have.
std::optional<Bytes> ReadSize(std::string_view text) {
  const std::optional<Wide> bytes = ReadAnySize(text);
  if (!bytes || IsTooLarge(*bytes)) return std::nullopt;
  return Bytes(static_cast<int64_t>(*bytes));
}

Error TooLarge(std::string_view text, std::string_view flag) {
  return MakeError(ErrorCode::kUsage, fmt::format("{}: {} is too large; the largest size is {}",
                                                  flag, text, HumanBytes(kMaxTotalBytes)));
}

std::optional<double> ReadPercent(std::string_view text) {
  const std::optional<Decimal> number = TakeDecimal(&text);
  if (!number || text != "%") return std::nullopt;
  const double percent = static_cast<double>(number->digits) / static_cast<double>(number->scale);
  if (percent > kMaxPercent) return std::nullopt;
  return percent;
}

// Returns the unit that the small letters mean: GiB for g, gi or gib, GB for gb.
std::string_view MeantUnit(std::string_view letters) {
  for (const Unit& unit : kUnits) {
    const std::string name = SimplifyText(unit.name);
    const bool is_binary = name.size() == 3;
    if (name == letters) return unit.name;
    if (is_binary && !letters.empty() && name.starts_with(letters)) return unit.name;
  }
  return {};
}

std::string MeantSize(std::string_view text) {
  const std::string simple = SimplifyText(text);
  std::string_view rest = simple;
  if (!TakeDecimal(&rest)) return "";
  const std::string number = simple.substr(0, simple.size() - rest.size());
  const std::string_view unit = rest.empty() ? "GiB" : MeantUnit(rest);
  return unit.empty() ? "" : number + std::string(unit);
}

std::string MeantPercent(std::string_view text) {
  const std::string simple = SimplifyText(text);
  std::string_view rest = simple;
  const std::optional<Decimal> number = TakeDecimal(&rest);
  if (!number || (!rest.empty() && rest != "%" && rest != "percent")) return "";
  const bool is_share = rest.empty() && number->digits < number->scale;
  if (!is_share) return simple.substr(0, simple.size() - rest.size()) + "%";
  const double share = static_cast<double>(number->digits) / static_cast<double>(number->scale);
  return fmt::format("{:g}%", share * 100);
}

std::string MeantDuration(std::string_view text) {
  const std::string simple = SimplifyText(text);
  std::string_view rest = simple;
  if (!TakeDecimal(&rest)) return "";
  const std::string number = simple.substr(0, simple.size() - rest.size());
  if (rest.empty() || rest.starts_with("sec")) return number + "s";
  if (rest == "m" || rest.starts_with("min")) return number + "min";
  return rest.starts_with("ms") || rest.starts_with("milli") ? number + "ms" : "";
}

}  // namespace

Result<Bytes> ParseSize(std::string_view text, std::string_view flag) {
  if (const auto size = ReadSize(text)) return *size;
  if (ReadAnySize(text)) return TooLarge(text, flag);
  return BadValue(text, flag, kSizeForms, SuggestedBudget(text, {.percent = false, .min = false}));
}

Result<Budget> ParseBudget(std::string_view text, std::string_view flag, BudgetForms forms) {
  Budget budget;
  if (const auto size = ReadSize(text)) {
    budget.kind = Budget::Kind::kBytes;
    budget.bytes = *size;
    return budget;
  }
  if (ReadAnySize(text)) return TooLarge(text, flag);
  const auto percent = ReadPercent(text);
  if (forms.percent && percent) {
    budget.kind = Budget::Kind::kPercent;
    budget.percent = *percent;
    return budget;
  }
  if (forms.min && text == "min") {
    budget.kind = Budget::Kind::kMin;
    return budget;
  }
  if (forms.balanced && text == "balanced") {
    budget.kind = Budget::Kind::kBalanced;
    return budget;
  }
  return BadValue(text, flag, BudgetFormsText(forms), SuggestedBudget(text, forms));
}

std::string SuggestedBudget(std::string_view text, BudgetForms forms) {
  if (forms.min && SimplifyText(text).starts_with("min")) return "min";
  if (forms.balanced && SimplifyText(text).starts_with("balance")) return "balanced";
  const std::string percent = forms.percent ? MeantPercent(text) : "";
  const bool is_share = text.starts_with("0.") || text.starts_with('.');
  if (ReadPercent(percent) && (is_share || text.find('%') != std::string_view::npos)) {
    return percent;
  }
  const std::string size = MeantSize(text);
  if (ReadSize(size)) return size;
  return ReadPercent(percent) ? percent : "";
}

std::string BareNumberHint(std::string_view text, Bytes typical, BudgetForms forms) {
  constexpr int64_t kFarBelow = 1000;
  constexpr int64_t kWholePercent = 100;
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc() || stop != end || number < 1) return "";
  if (number > typical.count() / kFarBelow) return "";
  std::string suggestion;
  if (forms.percent && number <= kWholePercent) suggestion = fmt::format("\"{}%\"", number);
  for (const std::string_view unit : {"KiB", "MiB", "GiB"}) {
    const std::string size = fmt::format("{}{}", number, unit);
    const auto bytes = ReadSize(size);
    constexpr int64_t kNear = 20;
    if (!bytes || bytes->count() < typical.count() / kNear) continue;
    if (*bytes <= typical)
      suggestion += fmt::format("{}\"{}\"", suggestion.empty() ? "" : " or ", size);
    break;
  }
  if (suggestion.empty()) return fmt::format("\"{}\" is {} bytes; sizes take a unit", text, number);
  return fmt::format("\"{}\" is {} bytes; did you mean {}?", text, number, suggestion);
}

Result<std::chrono::milliseconds> ParseDuration(std::string_view text, std::string_view flag) {
  struct DurationUnit {
    std::string_view name;
    int64_t milliseconds;
  };
  constexpr DurationUnit kDurationUnits[] = {{"ms", 1}, {"s", 1'000}, {"min", 60'000}};
  constexpr int64_t kLongest = 24 * 60 * 60'000;
  std::string_view rest = text;
  const std::optional<Decimal> number = TakeDecimal(&rest);
  for (const DurationUnit& unit : kDurationUnits) {
    if (!number || unit.name != rest) continue;
    const Wide count = static_cast<Wide>(number->digits) * static_cast<Wide>(unit.milliseconds) /
                       static_cast<Wide>(number->scale);
    if (count > static_cast<Wide>(kLongest)) break;
    return std::chrono::milliseconds(static_cast<int64_t>(count));
  }
  return BadValue(text, flag, "a time such as 60s, 500ms or 5min, at most a day",
                  MeantDuration(text));
}

Result<int64_t> ParseInteger(std::string_view text, std::string_view flag, int64_t low,
                             int64_t high) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  const bool is_number = fault == std::errc() && stop == end;
  if (is_number && number >= low && number <= high) return number;
  return BadValue(text, flag, fmt::format("a whole number from {} to {}", low, high));
}

}  // namespace ckplan
