#include "lib/executor/testing/op_case.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_table.h"

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
               "a case has a valid integer: " + std::string(text));
  return value;
}

double ParseReal(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  CKPLAN_CHECK(end != nullptr && *end == '\0' && !copy.empty(),
               "a case has a valid number: " + copy);
  return value;
}

bool IsReal(std::string_view text) {
  return text.find_first_of(".e") != std::string_view::npos || text.find("inf") < text.size() ||
         text.find("nan") < text.size();
}

std::string_view StripBrackets(std::string_view text) { return text.substr(1, text.size() - 2); }

AttributeValue ParseAttribute(std::string_view text) {
  CKPLAN_CHECK(!text.empty(), "an attribute has a value");
  if (text[0] == '\'') return std::string(StripBrackets(text));
  if (text[0] != '[' && text[0] != '{') {
    if (IsReal(text)) return ParseReal(text);
    return ParseInt(text);
  }
  KnownValue list;
  for (const std::string_view item : SplitText(StripBrackets(text), ',')) {
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
      CKPLAN_CHECK(letter == 'b', "an operand's type is f, i, n or b");
      return ElementType::kBool;
  }
}

void ParseContents(std::string_view text, Operand& operand, Contents& contents) {
  const bool is_float = operand.type == ElementType::kFloat32;
  contents.low = is_float ? -2 : 0;
  contents.high = is_float ? 2 : 1;
  if (text.empty()) return;
  if (text[0] == '(') {
    const std::string_view range = StripBrackets(text);
    const size_t dots = range.find("..");
    CKPLAN_CHECK(dots != std::string_view::npos, "a case's range has two ends");
    contents.low = ParseReal(range.substr(0, dots));
    contents.high = ParseReal(range.substr(dots + 2));
    return;
  }
  CKPLAN_CHECK(text.size() >= 3 && text[1] == '[', "contents are =[...] or @[...]");
  for (const std::string_view item : SplitText(StripBrackets(text.substr(1)), ',')) {
    contents.values.push_back(ParseReal(item));
  }
  CKPLAN_CHECK(static_cast<int64_t>(contents.values.size()) == operand.elements(),
               "a case's contents fit its dimensions: " + std::string(text));
  if (text[0] != '=') return;
  contents.is_constant = true;
  operand.known.emplace();
  if (is_float) {
    operand.known->reals = contents.values;
    return;
  }
  // Integers are not parsed as real numbers, because doubles cannot represent the largest ones.
  for (const std::string_view item : SplitText(StripBrackets(text.substr(1)), ',')) {
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
  contents.needs_gradient = operand.type == ElementType::kFloat32;
  const char role = text.empty() ? ' ' : text[0];
  if (role == '*' || role == '~' || role == '!') text.remove_prefix(1);
  contents.is_constant = role == '*' || role == '!';
  ParseContents(text, operand, contents);
  if (role != '!' && (role == '~' || contents.is_constant)) contents.needs_gradient = false;
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

namespace {

class Filler {
 public:
  Filler(const OpCase& op_case, uint64_t seed) : rng_(seed) {
    int64_t count = 0;
    for (const Operand& operand : op_case.spec.inputs) {
      if (operand.is_present && operand.type == ElementType::kFloat32) count += operand.elements();
    }
    count += count % 2;  // With an even number of cells, 0 lies between two cells.
    for (int64_t i = 0; i < count; ++i) {
      const double jitter = static_cast<double>(rng_.Between(-25, 25)) / 100.0;
      points_.push_back((static_cast<double>(i) + 0.5 + jitter) / static_cast<double>(count));
    }
    for (size_t i = points_.size(); i > 1; --i) {
      const auto other = static_cast<size_t>(rng_.Between(0, static_cast<int64_t>(i) - 1));
      std::swap(points_[i - 1], points_[other]);
    }
  }

  Tensor Fill(const Operand& operand, const Contents& contents) {
    Tensor tensor = EmptyTensor(operand);
    if (!operand.is_present) return tensor;
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      tensor.values[i] = contents.values.empty() ? Next(operand, contents) : contents.values[i];
    }
    return tensor;
  }

 private:
  double Next(const Operand& operand, const Contents& contents) {
    if (operand.type != ElementType::kFloat32) {
      return static_cast<double>(
          rng_.Between(static_cast<int64_t>(contents.low), static_cast<int64_t>(contents.high)));
    }
    const double point = points_.back();
    points_.pop_back();
    return static_cast<float>(contents.low + (contents.high - contents.low) * point);
  }

  Rng rng_;
  std::vector<double> points_;
};

}  // namespace

Tensor EmptyTensor(const Operand& operand) {
  Tensor tensor{operand.is_present, operand.type, operand.dims, {}};
  if (operand.is_present) tensor.values.assign(static_cast<size_t>(operand.elements()), 0.0);
  return tensor;
}

std::vector<Tensor> FillInputs(const OpCase& op_case, uint64_t seed) {
  Filler filler(op_case, seed);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < op_case.spec.inputs.size(); ++i) {
    inputs.push_back(filler.Fill(op_case.spec.inputs[i], op_case.contents[i]));
  }
  return inputs;
}

Tensor RandomGradient(const Operand& operand, Rng& rng) {
  if (operand.type != ElementType::kFloat32) return {};
  Tensor gradient = EmptyTensor(operand);
  for (double& value : gradient.values) {
    value = static_cast<float>(static_cast<double>(rng.Between(-1000, 1000)) / 1000.0);
  }
  return gradient;
}

namespace {

void SetStatistic(OpSpec& spec, Autograd autograd) {
  std::vector<bool> is_stored;
  for (const Operand& output : spec.outputs) is_stored.push_back(output.is_present);
  if (const auto saved = StatisticOf(spec, autograd, is_stored)) {
    spec.statistic_bytes = saved->bytes.count();
  } else if (OutputServesAsStatistic(spec)) {
    spec.outputs[1].is_read_by_backward = true;
  }
}

void MarkReads(OpSpec& spec, Autograd autograd) {
  const BackwardReads reads = FindBackwardReads(spec, autograd);
  for (const size_t i : reads.inputs) spec.inputs[i].is_read_by_backward = true;
  for (const size_t i : reads.outputs) {
    spec.outputs[i].is_read_by_backward = spec.outputs[i].is_present;
  }
  if (reads.statistic) SetStatistic(spec, autograd);
}

}  // namespace

void SetGradientRoles(OpSpec& spec, const std::vector<bool>& needs_gradient,
                      const std::vector<bool>& is_constant, const std::vector<bool>& arrives,
                      Autograd autograd) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    spec.inputs[i].has_gradient = needs_gradient[i];
    spec.inputs[i].is_read_by_backward = is_constant[i] && spec.inputs[i].is_present;
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    spec.outputs[i].has_gradient = arrives[i];
    spec.outputs[i].is_read_by_backward = false;
  }
  spec.statistic_bytes = 0;
  if (std::find(needs_gradient.begin(), needs_gradient.end(), true) != needs_gradient.end())
    MarkReads(spec, autograd);
}

OpSpec SpecOfCase(const CaseRow& row, Autograd autograd) {
  OpCase parsed = ParseCase(row);
  std::vector<bool> needs_gradient, is_constant, arrives;
  for (size_t i = 0; i < parsed.contents.size(); ++i) {
    needs_gradient.push_back(parsed.contents[i].needs_gradient && IsDifferentiable(parsed.spec, i));
    is_constant.push_back(parsed.contents[i].is_constant);
  }
  const bool has_any =
      std::find(needs_gradient.begin(), needs_gradient.end(), true) != needs_gradient.end();
  for (const Operand& output : parsed.spec.outputs) {
    arrives.push_back(has_any && output.is_present && IsFloat(output.type));
  }
  SetGradientRoles(parsed.spec, needs_gradient, is_constant, arrives, autograd);
  return std::move(parsed.spec);
}

namespace {

struct Family {
  std::span<const FunctionRow> (*references)();
  std::span<const CaseRow> (*cases)();
};

constexpr Family kFamilies[] = {
#define CKPLAN_FAMILY(Name) {Name##References, Name##Cases},
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
};

}  // namespace

Function FindFunction(std::string_view type) {
  for (const Family& family : kFamilies) {
    for (const FunctionRow& row : family.references()) {
      if (row.type == type) return row.function;
    }
  }
  return nullptr;
}

int CountCases(std::string_view type) {
  int count = 0;
  for (const Family& family : kFamilies) {
    for (const CaseRow& row : family.cases()) {
      if (row.type.substr(0, row.type.find('@')) == type) ++count;
    }
  }
  return count;
}

}  // namespace ckplan::reference
