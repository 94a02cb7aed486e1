#include "lib/files/model/model_impl.h"

namespace ckplan {

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, int64_t otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->i();
}

double FloatAttribute(const onnx::NodeProto& node, std::string_view name, double otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : static_cast<double>(attribute->f());
}

std::string StringAttribute(const onnx::NodeProto& node, std::string_view name,
                            std::string_view otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::vector<int64_t> IntsAttribute(const onnx::NodeProto& node, std::string_view name) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  if (attribute == nullptr) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

}  // namespace ckplan
