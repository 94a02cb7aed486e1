#include "lib/files/model/plain_numbers.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/text.h"

namespace ckplan {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

// Returns the part after the last slash, without TensorFlow's ":0".
std::string_view LastPart(std::string_view name) {
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && IsNumber(name.substr(colon + 1))) {
    name = name.substr(0, colon);
  }
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0.
}

// "onnx::Mul_12", as PyTorch's older exporter names values without a name.
bool IsNumbered(std::string_view name) {
  const size_t end = name.rfind('_');
  return name.starts_with("onnx::") && end != std::string_view::npos &&
         IsNumber(name.substr(end + 1));
}

bool IsNameOfConstant(std::string_view name) {
  if (IsNumber(name) || IsNumbered(name) || name.starts_with("ortshared_")) return true;
  if (name.starts_with("val_") && IsNumber(name.substr(4))) return true;
  const std::string_view last = LastPart(name);
  const bool is_operand = name.find('/') != std::string_view::npos && (last == "x" || last == "y");
  const std::string lower = LowerCase(last);
  return is_operand || lower.find("const") != std::string::npos ||
         lower.find("cst") != std::string::npos;
}

}  // namespace

bool IsPlainNumber(const ModelValue& value) {
  return value.source == ModelValue::Source::kInitializer && ElementCount(value.dims) == 1 &&
         IsNameOfConstant(value.name);
}

}  // namespace ckplan
