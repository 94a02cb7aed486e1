#include "lib/testing/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace ckplan {
namespace {

constexpr std::string_view kHeading = "======== ";
constexpr std::string_view kNoNewline = " no-newline";
constexpr std::string_view kBase64 = " base64";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kLineWidth = 76;

std::string ToBase64(std::string_view bytes) {
  std::string digits;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = i; k < i + 3; ++k) {
      group = group << 8 | (k < bytes.size() ? static_cast<uint8_t>(bytes[k]) : 0U);
    }
    const size_t used = std::min<size_t>(3, bytes.size() - i) + 1;
    for (size_t k = 0; k < 4; ++k) {
      digits += k < used ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  std::string lines;
  for (size_t i = 0; i < digits.size(); i += kLineWidth) {
    lines += digits.substr(i, kLineWidth) + "\n";
  }
  return lines;
}

// Accepts only the output of ToBase64, so that every input has a unique form.
std::optional<std::string> FromBase64(std::string_view lines) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : lines) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFFU);
    }
  }
  if (ToBase64(bytes) != lines) return std::nullopt;
  return bytes;
}

bool IsName(std::string_view name) {
  return !name.empty() && name.find_first_of(" \t=") == std::string_view::npos;
}

std::string_view WordOf(BundleForm form) {
  if (form == BundleForm::kBase64) return kBase64;
  return form == BundleForm::kNoNewline ? kNoNewline : "";
}

// Removes the word for the form from the end of a heading.
BundleForm TakeForm(std::string_view* heading) {
  for (const BundleForm form : {BundleForm::kBase64, BundleForm::kNoNewline}) {
    if (!heading->ends_with(WordOf(form))) continue;
    heading->remove_suffix(WordOf(form).size());
    return form;
  }
  return BundleForm::kText;
}

// `part` is the text after a heading's equals signs, up to the next heading.
Result<BundleEntry> ParseEntry(std::string_view part, bool is_last) {
  const size_t line_end = std::min(part.find('\n'), part.size());
  std::string_view name = part.substr(0, line_end);
  std::string_view text = part.substr(std::min(line_end + 1, part.size()));
  BundleEntry entry;
  entry.form = TakeForm(&name);
  entry.name = name;
  if (!IsName(name)) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("'{}' can't name an entry", name));
  }
  if (!is_last) {
    if (text != "\n" && !text.ends_with("\n\n")) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("no empty line between '{}' and the next heading", name));
    }
    text.remove_suffix(1);
  }
  if (entry.form != BundleForm::kBase64) {
    if (entry.form == BundleForm::kNoNewline && !text.empty()) text.remove_suffix(1);
    entry.text = text;
    return entry;
  }
  std::optional<std::string> bytes = FromBase64(text);
  if (!bytes) {
    return MakeError(ErrorCode::kInvalidInput, fmt::format("the base64 of '{}' is damaged", name));
  }
  entry.text = *std::move(bytes);
  return entry;
}

// Returns the position of the next heading, or npos.
size_t FindHeading(std::string_view text, size_t from) {
  for (size_t at = text.find(kHeading, from); at != std::string_view::npos;
       at = text.find(kHeading, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return at;
  }
  return std::string_view::npos;
}

}  // namespace

BundleEntry* Bundle::Find(std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const BundleEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

Result<Bundle> ParseBundle(std::string_view text) {
  Bundle bundle;
  size_t at = FindHeading(text, 0);
  if (at == std::string_view::npos) {
    return MakeError(ErrorCode::kInvalidInput, "the bundle has no line \"======== NAME\"");
  }
  const std::string_view head = text.substr(0, at);
  if (!head.empty() && !head.ends_with("\n\n")) {
    return MakeError(ErrorCode::kInvalidInput, "no empty line before the first heading");
  }
  bundle.head = head.substr(0, head.empty() ? 0 : head.size() - 1);
  int line = 1;
  size_t counted = 0;
  while (at != std::string_view::npos) {
    line += static_cast<int>(std::count(text.begin() + counted, text.begin() + at, '\n'));
    counted = at;
    const size_t begin = at + kHeading.size();
    at = FindHeading(text, begin);
    const bool is_last = at == std::string_view::npos;
    const std::string_view part = text.substr(begin, is_last ? at : at - begin);
    CKPLAN_ASSIGN_OR_RETURN(BundleEntry entry, ParseEntry(part, is_last));
    if (bundle.Find(entry.name) != nullptr) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("two entries are named '{}'", entry.name));
    }
    entry.line = line;
    bundle.entries.push_back(std::move(entry));
  }
  return bundle;
}

std::string FormatBundle(const Bundle& bundle) {
  std::string text = bundle.head;
  for (const BundleEntry& entry : bundle.entries) {
    if (!text.empty()) text += '\n';
    text += fmt::format("{}{}{}\n", kHeading, entry.name, WordOf(entry.form));
    text += entry.form == BundleForm::kBase64 ? ToBase64(entry.text) : entry.text;
    if (entry.form == BundleForm::kNoNewline) text += '\n';
  }
  return text;
}

}  // namespace ckplan
