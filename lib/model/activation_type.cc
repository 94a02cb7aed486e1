#include "lib/model/activation_type.h"

#include <fmt/format.h>

#include "lib/base/checked.h"
#include "lib/model/facts.h"

namespace ckplan {

namespace {

constexpr int64_t kFloat32Bytes = 4;
constexpr int64_t kBFloat16Bytes = 2;

}  // namespace

bool FollowsActivationType(int32_t elem_type) {
  return elem_type == onnx::TensorProto::FLOAT || elem_type == onnx::TensorProto::FLOAT16 ||
         elem_type == onnx::TensorProto::BFLOAT16 || elem_type == onnx::TensorProto::DOUBLE;
}

Result<Done> SetActivationType(Model::Impl& model, ActivationType type) {
  model.activation_type = type;
  if (type == ActivationType::kOfModel) return Done{};
  const int64_t element = type == ActivationType::kFloat32 ? kFloat32Bytes : kBFloat16Bytes;
  const ModelFacts facts = FindFacts(model);
  for (size_t i = 0; i < model.values.size(); ++i) {
    ModelValue& value = model.values[i];
    if (!facts.values[i].is_batch || !FollowsActivationType(value.elem_type)) continue;
    const auto bytes =
        CheckedMul(ElementCount(value.dims).value_or(kMaxTotalBytes.count()), element);
    if (!bytes || *bytes > kMaxTotalBytes.count()) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("{}: \"{}\" is beyond any machine; use smaller dimensions",
                                   model.identity.name, value.name));
    }
    value.bytes = Bytes(*bytes);
  }
  return Done{};
}

}  // namespace ckplan
