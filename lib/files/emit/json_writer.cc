#include "lib/files/emit/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr size_t kMembersPerLine = 16;

bool IsPlain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void AppendEscaped(char32_t character, std::string* out) {
  if (character == '\n') {
    *out += "\\n";
  } else if (character < 0x10000) {
    fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<uint32_t>(character));
  } else {  // JSON writes these as two surrogate halves.
    const auto rest = static_cast<uint32_t>(character) - 0x10000;
    fmt::format_to(std::back_inserter(*out), "\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10),
                   0xdc00 + (rest & 0x3ff));
  }
}

void AppendQuoted(std::string* out, std::string_view text) {
  *out += '"';
  if (std::all_of(text.begin(), text.end(), IsPlain)) {  // The common case, handled fast.
    *out += text;
    *out += '"';
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = Utf8At(text, at);
    if (!character.is_valid) {
      *out += kReplacementCharacter;
    } else if (!IsPrintable(character.value)) {
      AppendEscaped(character.value, out);
    } else {
      if (character.value == '"' || character.value == '\\') *out += '\\';
      *out += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  *out += '"';
}

}  // namespace

JsonWriter& JsonWriter::Begin(char opening, char closing, JsonLayout layout) {
  BeginValue();
  text_ += opening;
  levels_.push_back({closing, layout});
  return *this;
}

JsonWriter& JsonWriter::End() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.members > 0 && level.layout != JsonLayout::kInline) NewLine();
  text_ += level.closing;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  BeginValue();
  AppendQuoted(&text_, key);
  text_ += ": ";
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Text(std::string_view text) {
  BeginValue();
  AppendQuoted(&text_, text);
  return *this;
}

JsonWriter& JsonWriter::Integer(int64_t number) {
  BeginValue();
  const fmt::format_int digits(number);
  text_.append(digits.data(), digits.size());
  return *this;
}

JsonWriter& JsonWriter::Decimal(double number, int decimals) {
  if (!std::isfinite(number)) return Null();
  BeginValue();
  text_ += fmt::format("{:.{}f}", number, decimals);
  return *this;
}

JsonWriter& JsonWriter::Boolean(bool value) {
  BeginValue();
  text_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  BeginValue();
  text_ += "null";
  return *this;
}

std::string JsonWriter::Finish() && {
  CKPLAN_CHECK(levels_.empty() && !has_key_, "every Begin has an End, and every key has a value");
  text_ += '\n';
  return std::move(text_);
}

// Writes the separator before a member, unless a value follows its key.
void JsonWriter::BeginValue() {
  if (std::exchange(has_key_, false) || levels_.empty()) return;
  Level& level = levels_.back();
  if (level.members > 0) text_ += ',';
  const bool begins_line =
      level.layout == JsonLayout::kLines ||
      (level.layout == JsonLayout::kWrapped && level.members % kMembersPerLine == 0);
  if (begins_line) {
    NewLine();
  } else if (level.members > 0) {
    text_ += ' ';
  }
  ++level.members;
}

void JsonWriter::NewLine() {
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

}  // namespace ckplan
