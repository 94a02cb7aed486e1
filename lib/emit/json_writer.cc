#include "lib/emit/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lib/base/check.h"

namespace ckplan {
namespace {

constexpr size_t kMembersPerLine = 16;

unsigned char ByteAt(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bytes of the well-formed UTF-8 sequence that begins at `at` (Unicode, table 3-7), or 0.
size_t SequenceLength(std::string_view text, size_t at) {
  const unsigned char lead = ByteAt(text, at);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned char low = 0x80, high = 0xbf;  // The second byte's range: not overlong, no surrogate.
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (size_t i = 1; i < length; ++i) {
    const unsigned char byte = ByteAt(text, at + i);
    if (byte < low || byte > high) return 0;
    low = 0x80;
    high = 0xbf;
  }
  return length;
}

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void AppendQuoted(std::string* out, std::string_view raw) {
  *out += '"';
  if (std::all_of(raw.begin(), raw.end(), IsPlain)) {  // Nearly all names are.
    *out += raw;
    *out += '"';
    return;
  }
  const std::string text = RepairUtf8(raw);
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      *out += c;
    }
  }
  *out += '"';
}

}  // namespace

std::string RepairUtf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
    if (length == 0) {
      repaired += "\xef\xbf\xbd";
      ++at;
    } else {
      repaired += text.substr(at, length);
      at += length;
    }
  }
  return repaired;
}

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
  CKPLAN_CHECK(levels_.empty() && !has_key_, "every Begin has its End, every key its value");
  text_ += '\n';
  return std::move(text_);
}

// Writes what separates two members, or begins the first. A value follows its key directly.
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
