#include "lib/base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "lib/base/stop.h"

namespace ckplan {

namespace {

constexpr size_t kLongestMessage = 1500;

// An inclusive range of characters.
struct Range {
  char32_t first, last;
};
constexpr Range kUnprintable[] = {
    {0x0000, 0x001f},    // Control characters.
    {0x007f, 0x009f},    // Delete and the second set of control characters.
    {0x00ad, 0x00ad},    // Soft hyphen.
    {0x061c, 0x061c},    // Writing direction.
    {0x180e, 0x180e},    // No width.
    {0x200b, 0x200f},    // No width, or writing direction.
    {0x2028, 0x202e},    // Line and paragraph separators, and writing direction.
    {0x2060, 0x206f},    // No width, or writing direction.
    {0xfdd0, 0xfdef},    // Noncharacters.
    {0xfeff, 0xfeff},    // Byte order mark.
    {0xfff9, 0xfffb},    // Text annotation.
    {0xe0000, 0xe0fff},  // Tags.
};

unsigned char ByteAt(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f; }

void AppendEscape(const Utf8Character& character, unsigned char byte, std::string* out) {
  if (byte == '\n') {
    *out += "\\n";
  } else if (byte == '\t') {
    *out += "\\t";
  } else if (byte == '\r') {
    *out += "\\r";
  } else if (!character.is_valid || character.value < 0x80) {
    fmt::format_to(std::back_inserter(*out), "\\x{:02x}", byte);
  } else if (character.value < 0x10000) {
    fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<uint32_t>(character.value));
  } else {
    fmt::format_to(std::back_inserter(*out), "\\U{:08x}", static_cast<uint32_t>(character.value));
  }
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// `text` is printable; `bytes` is the size to show in the result.
std::string Shorten(const std::string& text, size_t length, size_t bytes) {
  const size_t count = CharacterCount(text);
  if (count <= length) return text;
  const std::string note = fmt::format("... [{} bytes] ...", bytes);
  const size_t shown = length - std::min(length, note.size());
  const size_t tail = shown / 2;
  return text.substr(0, ByteOffset(text, shown - tail)) + note +
         text.substr(ByteOffset(text, count - tail));
}

}  // namespace

Utf8Character Utf8At(std::string_view text, size_t at) {
  const unsigned char lead = ByteAt(text, at);
  if (lead < 0x80) return {lead, 1, true};
  if (lead < 0xc2 || lead > 0xf4) return {};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The range of the second byte excludes overlong forms and surrogates (Unicode, table 3-7).
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t value = lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    const unsigned char byte = ByteAt(text, at + i);
    if (byte < low || byte > high) return {};
    value = value << 6 | (byte & 0x3fU);
    low = 0x80;
    high = 0xbf;
  }
  return {value, length, true};
}

bool IsPrintable(char32_t character) {
  // The last two code points of each plane are noncharacters.
  if ((character & 0xfffe) == 0xfffe) return false;
  return std::none_of(std::begin(kUnprintable), std::end(kUnprintable),
                      [character](const Range& range) {
                        return character >= range.first && character <= range.last;
                      });
}

std::string WellFormedUtf8(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = Utf8At(text, at);
    result += character.is_valid ? text.substr(at, character.bytes) : kReplacementCharacter;
    at += character.bytes;
  }
  return result;
}

size_t CharacterCount(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

size_t ByteOffset(std::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (IsContinuation(text[at])) continue;
    if (count == 0) break;
    --count;
  }
  return at;
}

std::string Printable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = Utf8At(text, at);
    if (character.is_valid && IsPrintable(character.value)) {
      out += text.substr(at, character.bytes);
    } else {
      AppendEscape(character, ByteAt(text, at), &out);
    }
    at += character.bytes;
  }
  return out;
}

std::string Printable(std::string_view text, size_t length) {
  return Shorten(Printable(text), length, text.size());
}

std::string PrintableMessage(std::string_view message) {
  std::string text;
  for (bool is_quoted = false;; is_quoted = !is_quoted) {
    const size_t quote = message.find('"');
    const std::string_view part = message.substr(0, quote);
    const bool ends = quote == std::string_view::npos;
    text += is_quoted && !ends ? Printable(part, kLongestName) : Printable(part);
    if (ends) return Shorten(text, kLongestMessage, text.size());
    text += '"';
    message.remove_prefix(quote + 1);
  }
}

std::string CsvCell(std::string_view printable) {
  if (printable.find_first_of(",\"") == std::string_view::npos) return std::string(printable);
  std::string quoted = "\"";
  for (const char c : printable) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

std::string XmlText(std::string_view printable) {
  std::string escaped;
  for (const char c : printable) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string EscapeForDot(std::string_view text) {
  constexpr size_t kLongest = 300;  // Graphviz rejects very long labels.
  std::string escaped;
  for (const char c : Printable(text, kLongest)) {
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

namespace {

// Returns `count` in hundredths of 2^shift. A double would not round ties reliably.
uint64_t Hundredths(uint64_t count, int shift) {
  const uint64_t units = count >> shift;
  const uint64_t rest = count - (units << shift);
  const uint64_t half = uint64_t{1} << (shift - 1);
  return units * 100 + ((rest * 100 + half) >> shift);
}

uint64_t Magnitude(Bytes bytes) {
  const auto bits = static_cast<uint64_t>(bytes.count());
  return bytes < Bytes(0) ? 0 - bits : bits;
}

}  // namespace

ByteUnit UnitOf(Bytes typical) {
  const uint64_t count = Magnitude(typical);
  if (count < 1024) return {"B", 0};
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  int shift = 10;
  while (Hundredths(count, shift) >= 102400 && unit + 1 < std::size(kUnits)) {
    ++unit;
    shift += 10;
  }
  return {std::string(kUnits[unit]), shift};
}

std::string AmountIn(const ByteUnit& unit, Bytes bytes) {
  const std::string_view sign = bytes < Bytes(0) ? "-" : "";
  const uint64_t count = Magnitude(bytes);
  if (unit.shift == 0) return fmt::format("{}{}", sign, count);
  const uint64_t value = Hundredths(count, unit.shift);
  return fmt::format("{}{}.{:02}", sign, value / 100, value % 100);
}

std::string HumanBytes(Bytes bytes) {
  const ByteUnit unit = UnitOf(bytes);
  return fmt::format("{} {}", AmountIn(unit, bytes), unit.name);
}

std::string SignedBytes(Bytes change) {
  if (change < Bytes(0)) return fmt::format("-{}", HumanBytes(Bytes(0) - change));
  return fmt::format("{}{}", change > Bytes(0) ? "+" : "", HumanBytes(change));
}

namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // rows[i][j] is the distance between the first i letters of a and the first j of b.
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

// Returns the name in lower case without leading hyphens.
std::string NormalizeName(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string plain;
  for (const char c : name) {
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// Limits the work on all distances, counted as letters of one name times letters of the other, to
// about a tenth of a second. Thousands of long names would take minutes otherwise.
constexpr size_t kMaxWork = 30'000'000;

// Returns the distance if the two names are near. Subtracts the work from `left` and returns
// nothing if it exceeds that.
std::optional<size_t> DistanceIfNear(const std::string& typed, const std::string& name,
                                     size_t* left) {
  constexpr size_t kShortestBeginning = 3;
  const size_t longer = std::max(typed.size(), name.size());
  const bool is_beginning = typed.size() >= kShortestBeginning && name.starts_with(typed);
  const size_t shorter = std::min(typed.size(), name.size());
  // A distance is at least the difference of the lengths, so very long names need no comparison.
  if (is_beginning) return longer - shorter;
  if (longer - shorter > longer / 3) return std::nullopt;
  const size_t work = (typed.size() + 1) * (name.size() + 1);
  if (work > *left) return std::nullopt;
  *left -= work;
  const size_t distance = EditDistance(typed, name);
  if (distance > longer / 3) return std::nullopt;
  return distance;
}

}  // namespace

std::optional<std::string_view> NearName(std::string_view typed,
                                         std::span<const std::string_view> names) {
  const std::string plain = NormalizeName(typed);
  std::optional<std::string_view> nearest;
  size_t least = 0;
  size_t left = kMaxWork;
  for (const std::string_view name : names) {
    PollStop();
    const std::optional<size_t> distance = DistanceIfNear(plain, NormalizeName(name), &left);
    if (!distance || (nearest && *distance >= least)) continue;
    nearest = name;
    least = *distance;
  }
  return nearest;
}

std::string DidYouMean(std::string_view typed, std::span<const std::string_view> names) {
  const std::optional<std::string_view> name = NearName(typed, names);
  return name ? fmt::format("; did you mean \"{}\"?", *name) : "";
}

std::string DescribeUnknownName(std::string_view typed, std::span<const std::string_view> names) {
  const std::string hint = DidYouMean(typed, names);
  return fmt::format("\"{}\"{}: {}", typed, hint.empty() ? "; known" : hint + " Known",
                     fmt::join(names, ", "));
}

}  // namespace ckplan
