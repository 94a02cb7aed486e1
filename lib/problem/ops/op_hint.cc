#include "lib/problem/ops/op_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ckplan {
namespace {

constexpr int64_t kMaxOperand = 255;
constexpr int64_t kMaxHintedDim = int64_t{1} << 40;
constexpr int64_t kMaxHintedFlops = int64_t{1} << 40;
constexpr size_t kMaxParts = 64;
constexpr std::string_view kForm =
    "write OP=like:0 or OP=[0.0,64], optionally followed by ;flops=N and ;reads=x0,y0";

std::optional<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  if (!is_whole || number < min || number > max) return std::nullopt;
  return number;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// "1{0}"
std::optional<OpHint::Dim> ParseContent(std::string_view text) {
  const size_t open = text.find('{');
  OpHint::Dim dim;
  const auto input = ParseInt(text.substr(0, open), 0, kMaxOperand);
  const auto position = ParseInt(text.substr(open + 1, text.size() - open - 2), 0, kMaxOperand);
  if (!input || !position) return std::nullopt;
  dim.input = *input;
  dim.axis = *position;
  dim.is_content = true;
  return dim;
}

// "64", "0.-1", "0.*", "1{0}", "@N"
std::optional<OpHint::Dim> ParseDim(std::string_view text) {
  OpHint::Dim dim;
  if (text.starts_with('@')) {
    dim.attribute = text.substr(1);
    return dim.attribute.empty() ? std::nullopt : std::optional(dim);
  }
  if (text.find('{') != text.npos && text.ends_with('}')) return ParseContent(text);
  const size_t point = text.find('.');
  if (point == text.npos) {
    const auto size = ParseInt(text, 0, kMaxHintedDim);
    if (!size) return std::nullopt;
    dim.size = *size;
    return dim;
  }
  const auto input = ParseInt(text.substr(0, point), 0, kMaxOperand);
  dim.is_all_but_last = text.substr(point + 1) == "*";
  const auto axis = dim.is_all_but_last
                        ? std::optional<int64_t>(0)
                        : ParseInt(text.substr(point + 1), -kMaxOperand, kMaxOperand);
  if (!input || !axis) return std::nullopt;
  dim.input = *input;
  dim.axis = *axis;
  return dim;
}

bool IsTypeName(std::string_view name) {
  constexpr std::string_view kTypes[] = {"",       "float16", "bfloat16", "float32", "float64",
                                         "int8",   "int16",   "int32",    "int64",   "uint8",
                                         "uint16", "uint32",  "uint64",   "bool"};
  return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
}

// "like:0", "[0.0,64]", "int64[0.0]"
std::optional<OpHint::OutputRule> ParseOutput(std::string_view text) {
  OpHint::OutputRule rule;
  constexpr std::string_view kLike = "like:";
  if (text.starts_with(kLike)) {
    const auto input = ParseInt(text.substr(kLike.size()), 0, kMaxOperand);
    if (!input) return std::nullopt;
    rule.like = *input;
    return rule;
  }
  const size_t open = text.find('[');
  if (open == text.npos || !text.ends_with(']') || !IsTypeName(text.substr(0, open))) {
    return std::nullopt;
  }
  rule.type = text.substr(0, open);
  const std::string_view list = text.substr(open + 1, text.size() - open - 2);
  if (list.empty()) return rule;
  for (const std::string_view one : Split(list, ',')) {
    const auto dim = ParseDim(one);
    if (!dim || rule.dims.size() == kMaxParts) return std::nullopt;
    rule.dims.push_back(*dim);
  }
  return rule;
}

// "x0,y0", "none"
bool ParseReads(std::string_view text, OpHint* hint) {
  hint->has_reads = true;
  if (text == "none") return true;
  for (const std::string_view one : Split(text, ',')) {
    const bool is_input = one.starts_with('x');
    if (!is_input && !one.starts_with('y')) return false;
    const auto position = ParseInt(one.substr(1), 0, kMaxOperand);
    if (!position) return false;
    auto& list = is_input ? hint->read_inputs : hint->read_outputs;
    list.push_back(static_cast<size_t>(*position));
  }
  for (auto* list : {&hint->read_inputs, &hint->read_outputs}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return true;
}

Error HintError(std::string_view text, std::string_view part) {
  constexpr size_t kShown = 80;
  const bool is_all = text == part;
  return MakeError(ErrorCode::kUsage,
                   is_all ? fmt::format("\"{}\" is not OP=RULE; {}", text.substr(0, kShown), kForm)
                          : fmt::format("\"{}\" in \"{}\" is invalid; {}", part.substr(0, kShown),
                                        text.substr(0, kShown), kForm));
}

}  // namespace

Result<OpHint> ParseOpHint(std::string_view given) {
  const std::string text = CanonicalOpHint(given);
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return HintError(given, given);
  OpHint hint;
  const std::string name = text.substr(0, equals);
  const size_t colons = name.rfind("::");
  if (colons != name.npos) hint.domain = name.substr(0, colons);
  hint.type = colons == name.npos ? name : name.substr(colons + 2);
  if (hint.type.empty()) return HintError(given, given);
  const std::vector<std::string_view> parts = Split(std::string_view(text).substr(equals + 1), ';');
  for (const std::string_view output : Split(parts.front(), '|')) {
    const auto rule = ParseOutput(output);
    if (!rule || hint.outputs.size() == kMaxParts) return HintError(given, output);
    hint.outputs.push_back(*rule);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string_view value = parts[i].substr(std::min(parts[i].find('='), parts[i].size()));
    if (parts[i].starts_with("flops=")) {
      const auto flops = ParseInt(value.substr(1), 0, kMaxHintedFlops);
      if (!flops) return HintError(given, parts[i]);
      hint.flops = *flops;
    } else if (!parts[i].starts_with("reads=") || !ParseReads(value.substr(1), &hint)) {
      return HintError(given, parts[i]);
    }
  }
  return hint;
}

std::string CanonicalOpHint(std::string_view text) {
  std::string canonical(text);
  std::erase_if(canonical, [](char c) { return c == ' ' || c == '\t' || c == '\n'; });
  return canonical;
}

}  // namespace ckplan
