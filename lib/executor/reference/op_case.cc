#include "lib/executor/reference/op_case.h"

#include <charconv>
#include <cstdlib>

namespace ckplan::reference {

namespace {

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

int64_t ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  CKPLAN_CHECK(error == std::errc() && end == text.data() + text.size(),
               "an integer of a case is one: " + std::string(text));
  return value;
}

double ParseReal(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  CKPLAN_CHECK(end != nullptr && *end == '\0' && !copy.empty(),
               "a number of a case is one: " + copy);
  return value;
}

bool IsReal(std::string_view text) {
  return text.find_first_of(".e") != std::string_view::npos || text.find("inf") < text.size() ||
         text.find("nan") < text.size();
}

std::string_view Inside(std::string_view text) { return text.substr(1, text.size() - 2); }

AttributeValue ParseAttribute(std::string_view text) {
  CKPLAN_CHECK(!text.empty(), "an attribute has a value");
  if (text[0] == '\'') return std::string(Inside(text));
  if (text[0] != '[' && text[0] != '{') {
    if (IsReal(text)) return ParseReal(text);
    return ParseInt(text);
  }
  KnownValue list;
  for (const std::string_view item : SplitText(Inside(text), ',')) {
    if (IsReal(text)) {
      list.reals.push_back(ParseReal(item));
    } else {
      list.ints.push_back(ParseInt(item));
    }
  }
  if (text[0] == '{') return list;
  if (IsReal(text)) return list.reals;
  return list.ints;
}

ElementType ParseType(char letter) {
  switch (letter) {
    case 'f':
      return ElementType::kFloat32;
    case 'i':
      return ElementType::kInt64;
    case 'n':
      return ElementType::kInt32;
    default:
      CKPLAN_CHECK(letter == 'b', "the type of an operand is one of f i n b");
      return ElementType::kBool;
  }
}

void ParseContents(std::string_view text, Operand& operand, Contents& contents) {
  const bool is_float = operand.type == ElementType::kFloat32;
  contents.low = is_float ? -2 : 0;
  contents.high = is_float ? 2 : 1;
  if (text.empty()) return;
  if (text[0] == '(') {
    const std::string_view range = Inside(text);
    const size_t dots = range.find("..");
    CKPLAN_CHECK(dots != std::string_view::npos, "a range of a case has two ends");
    contents.low = ParseReal(range.substr(0, dots));
    contents.high = ParseReal(range.substr(dots + 2));
    return;
  }
  CKPLAN_CHECK(text.size() >= 3 && text[1] == '[', "contents are =[...] or @[...]");
  for (const std::string_view item : SplitText(Inside(text.substr(1)), ',')) {
    contents.values.push_back(ParseReal(item));
  }
  CKPLAN_CHECK(static_cast<int64_t>(contents.values.size()) == operand.elements(),
               "contents fit the dimensions: " + std::string(text));
  if (text[0] != '=') return;
  contents.is_constant = true;
  operand.known.emplace();
  if (is_float) {
    operand.known->reals = contents.values;
    return;
  }
  // Integers are not parsed as real numbers, because double precision cannot hold the largest ones.
  for (const std::string_view item : SplitText(Inside(text.substr(1)), ',')) {
    operand.known->ints.push_back(ParseInt(item));
  }
}

Operand ParseOperand(std::string_view text, Contents& contents) {
  Operand operand;
  if (text == "_") return operand;
  operand.is_present = true;
  operand.type = ParseType(text[0]);
  const size_t end = std::min(text.find_first_of("*~!(=@"), text.size());
  if (const std::string_view dims = text.substr(1, end - 1); dims != "s") {
    for (const std::string_view dim : SplitText(dims, 'x')) operand.dims.push_back(ParseInt(dim));
  }
  text.remove_prefix(end);
  contents.wants_gradient = operand.type == ElementType::kFloat32;
  const char role = text.empty() ? ' ' : text[0];
  if (role == '*' || role == '~' || role == '!') text.remove_prefix(1);
  contents.is_constant = role == '*' || role == '!';
  ParseContents(text, operand, contents);
  if (role != '!' && (role == '~' || contents.is_constant)) contents.wants_gradient = false;
  return operand;
}

}  // namespace

OpCase ParseCase(const CaseRow& row) {
  OpCase result;
  result.text =
      std::string(row.type) + " " + std::string(row.operands) + " " + std::string(row.attributes);
  result.tolerance = row.tolerance;
  const size_t at = row.type.find('@');
  result.spec.type = std::string(row.type.substr(0, at));
  result.spec.name = "node_of_" + result.spec.type;
  result.spec.opset = at == std::string_view::npos ? 20 : ParseInt(row.type.substr(at + 1));
  bool is_output = false;
  for (const std::string_view operand : SplitText(row.operands, ' ')) {
    if (operand == "->") {
      is_output = true;
      continue;
    }
    Contents contents;
    auto& operands = is_output ? result.spec.outputs : result.spec.inputs;
    operands.push_back(ParseOperand(operand, contents));
    if (!is_output) result.contents.push_back(std::move(contents));
  }
  for (const std::string_view attribute : SplitText(row.attributes, ' ')) {
    const size_t equals = attribute.find('=');
    CKPLAN_CHECK(equals != std::string_view::npos, "an attribute is NAME=VALUE");
    result.spec.attributes.emplace(std::string(attribute.substr(0, equals)),
                                   ParseAttribute(attribute.substr(equals + 1)));
  }
  return result;
}

}  // namespace ckplan::reference
