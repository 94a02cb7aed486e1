#include "lib/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ckplan {
namespace {

constexpr size_t kLongestMessage = 1500;

// Ranges of characters that are not printable, both ends included.
struct Range {
  char32_t first, last;
};
constexpr Range kHidden[] = {
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

void AppendSpelled(const Utf8Character& character, unsigned char byte, std::string* out) {
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

// `text` is printable; `bytes` is the size to report.
std::string Shortened(const std::string& text, size_t length, size_t bytes) {
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
  return std::none_of(std::begin(kHidden), std::end(kHidden), [character](const Range& range) {
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
      AppendSpelled(character, ByteAt(text, at), &out);
    }
    at += character.bytes;
  }
  return out;
}

std::string Printable(std::string_view text, size_t length) {
  return Shortened(Printable(text), length, text.size());
}

std::string PrintableMessage(std::string_view message) {
  std::string text;
  for (bool is_quoted = false;; is_quoted = !is_quoted) {
    const size_t quote = message.find('"');
    const std::string_view part = message.substr(0, quote);
    const bool ends = quote == std::string_view::npos;
    text += is_quoted && !ends ? Printable(part, kLongestName) : Printable(part);
    if (ends) return Shortened(text, kLongestMessage, text.size());
    text += '"';
    message.remove_prefix(quote + 1);
  }
}

}  // namespace ckplan
