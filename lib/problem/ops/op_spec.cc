#include "lib/problem/ops/op_spec.h"

#include <fmt/format.h>

namespace ckplan {

TensorType TensorTypeOf(int32_t number) {
  const bool is_known = number >= 0 && number <= static_cast<int32_t>(TensorType::kInt2);
  return is_known ? static_cast<TensorType>(number) : TensorType::kUndefined;
}

int64_t BitsOf(TensorType type) {
  switch (type) {
    case TensorType::kUndefined:
    case TensorType::kString:
      return 0;
    case TensorType::kUint2:
    case TensorType::kInt2:
      return 2;
    case TensorType::kUint4:
    case TensorType::kInt4:
    case TensorType::kFloat4E2M1:
      return 4;
    case TensorType::kBool:
    case TensorType::kInt8:
    case TensorType::kUint8:
    case TensorType::kFloat8E4M3FN:
    case TensorType::kFloat8E4M3FNUZ:
    case TensorType::kFloat8E5M2:
    case TensorType::kFloat8E5M2FNUZ:
    case TensorType::kFloat8E8M0:
      return 8;
    case TensorType::kInt16:
    case TensorType::kUint16:
    case TensorType::kFloat16:
    case TensorType::kBFloat16:
      return 16;
    case TensorType::kInt32:
    case TensorType::kUint32:
    case TensorType::kFloat32:
      return 32;
    case TensorType::kInt64:
    case TensorType::kUint64:
    case TensorType::kFloat64:
    case TensorType::kComplex64:
      return 64;
    case TensorType::kComplex128:
      return 128;
  }
  return 0;
}

bool IsFloat(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
    case TensorType::kFloat64:
    case TensorType::kFloat16:
    case TensorType::kBFloat16:
    case TensorType::kComplex64:
    case TensorType::kComplex128:
    case TensorType::kFloat8E4M3FN:
    case TensorType::kFloat8E4M3FNUZ:
    case TensorType::kFloat8E5M2:
    case TensorType::kFloat8E5M2FNUZ:
    case TensorType::kFloat8E8M0:
    case TensorType::kFloat4E2M1:
      return true;
    default:
      return false;
  }
}

namespace {

const Operand kAbsentOperand;

template <typename T>
const T* Find(const OpSpec& spec, std::string_view attribute) {
  const auto found = spec.attributes.find(attribute);
  return found == spec.attributes.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

std::string_view NameOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kBool:
      return "bool";
  }
  return "";
}

int64_t SizeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt64:
      return 8;
    case ElementType::kBool:
      return 1;
  }
  return 0;
}

TensorType TensorTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return TensorType::kFloat32;
    case ElementType::kBFloat16:
      return TensorType::kBFloat16;
    case ElementType::kInt32:
      return TensorType::kInt32;
    case ElementType::kInt64:
      return TensorType::kInt64;
    case ElementType::kBool:
      return TensorType::kBool;
  }
  return TensorType::kUndefined;
}

int64_t Operand::elements() const {
  int64_t count = 1;  // Cannot overflow: the loader checks products of dimensions.
  for (const int64_t dim : dims) count *= dim;
  return count;
}

const Operand& OpSpec::input(size_t position) const {
  return position < inputs.size() ? inputs[position] : kAbsentOperand;
}

const Operand& OpSpec::output(size_t position) const {
  return position < outputs.size() ? outputs[position] : kAbsentOperand;
}

int64_t OpSpec::Int(std::string_view attribute, int64_t fallback) const {
  const auto* value = Find<int64_t>(*this, attribute);
  return value == nullptr ? fallback : *value;
}

double OpSpec::Float(std::string_view attribute, double fallback) const {
  const auto* value = Find<double>(*this, attribute);
  return value == nullptr ? fallback : *value;
}

std::string OpSpec::String(std::string_view attribute, std::string_view fallback) const {
  const auto* value = Find<std::string>(*this, attribute);
  return value == nullptr ? std::string(fallback) : *value;
}

std::vector<int64_t> OpSpec::Ints(std::string_view attribute) const {
  const auto* value = Find<std::vector<int64_t>>(*this, attribute);
  return value == nullptr ? std::vector<int64_t>() : *value;
}

bool OpSpec::Has(std::string_view attribute) const {
  return attributes.find(attribute) != attributes.end();
}

Error InvalidOp(const OpSpec& spec, std::string_view what) {
  return MakeError(ErrorCode::kInvalidInput,
                   fmt::format("invalid {} \"{}\": {}", spec.type, spec.name, what));
}

Error UnsupportedOp(const OpSpec& spec, std::string_view backend, std::string_view what) {
  return MakeError(ErrorCode::kUnsupported, fmt::format("the {} backend cannot run {} \"{}\": {}",
                                                        backend, spec.type, spec.name, what));
}

Error UnsupportedOp(const OpSpec& spec, std::string_view what) {
  return MakeError(ErrorCode::kUnsupported,
                   fmt::format("no backend can run {} \"{}\": {}", spec.type, spec.name, what));
}

}  // namespace ckplan
