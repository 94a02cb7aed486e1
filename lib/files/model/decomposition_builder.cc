#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "lib/files/model/decompose.h"

namespace ckplan {

using onnx::AttributeProto;
using onnx::NodeProto;

std::string DecompositionBuilder::NameOf(const std::string& what) const {
  const auto& outputs = node_.output();
  const auto first = std::find_if(outputs.begin(), outputs.end(),
                                  [](const std::string& name) { return !name.empty(); });
  return fmt::format("{}:{}", first == outputs.end() ? node_.name() : *first, what);
}

NodeProto& DecompositionBuilder::AddNode(const char* op, std::vector<std::string> inputs,
                                         Attributes attributes, const std::string& what) {
  NodeProto& node = made_.nodes.emplace_back();
  const std::string_view name = op;
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) node.set_domain(std::string(name.substr(0, dot)));
  node.set_op_type(std::string(name.substr(dot + 1)));
  if (!node_.name().empty()) {
    node.set_name(what.empty() ? node_.name() : fmt::format("{}/{}", node_.name(), what));
  }
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  for (std::string& input : inputs) node.add_input(std::move(input));
  for (AttributeProto& attribute : attributes) *node.add_attribute() = std::move(attribute);
  return node;
}

std::vector<std::string> DecompositionBuilder::DoSeveral(const char* op,
                                                         std::vector<std::string> inputs,
                                                         const std::vector<std::string>& what,
                                                         Attributes attributes) {
  NodeProto& node = AddNode(op, std::move(inputs), std::move(attributes), what.front());
  std::vector<std::string> outputs;
  for (const std::string& one : what) {
    outputs.push_back(one.empty() ? "" : NameOf(one));
    node.add_output(outputs.back());
  }
  return outputs;
}

std::string DecompositionBuilder::Do(const char* op, std::vector<std::string> inputs,
                                     const std::string& what, Attributes attributes) {
  return DoSeveral(op, std::move(inputs), {what}, std::move(attributes)).front();
}

void DecompositionBuilder::Finish(const char* op, std::vector<std::string> inputs,
                                  Attributes attributes, size_t outputs) {
  NodeProto& node = AddNode(op, std::move(inputs), std::move(attributes), "");
  for (size_t i = 0; i < std::min(outputs, made_.outputs.size()); ++i) {
    made_.outputs[i] = node_.output(static_cast<int>(i));
    node.add_output(made_.outputs[i]);
  }
}

std::string DecompositionBuilder::Constant(const ConstantValue& value, const std::string& what) {
  AttributeProto attribute;
  attribute.set_name("value");
  attribute.set_type(AttributeProto::TENSOR);
  *attribute.mutable_t() = MakeTensor(value);
  return Do("Constant", {}, what, {attribute});
}

std::string DecompositionBuilder::Ints(const std::vector<int64_t>& list, const std::string& what) {
  return Constant({onnx::TensorProto::INT64, {static_cast<int64_t>(list.size())}, list, {}}, what);
}

std::string DecompositionBuilder::Number(double number, size_t like, const std::string& what) {
  ConstantValue value{TypeOf(like), {}, {}, {number}};
  return Constant(value, what);
}

void DecompositionBuilder::Copy(const char* name, Attributes* attributes, const char* as) const {
  const AttributeProto* attribute = FindAttribute(node_, name);
  if (attribute == nullptr) return;
  attributes->push_back(*attribute);
  if (as != nullptr) attributes->back().set_name(as);
}

AttributeProto DecompositionBuilder::Int(const char* name, int64_t value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

AttributeProto DecompositionBuilder::IntList(const char* name, const std::vector<int64_t>& values) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::INTS);
  for (const int64_t value : values) attribute.add_ints(value);
  return attribute;
}

AttributeProto DecompositionBuilder::Float(const char* name, double value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(value));
  return attribute;
}

AttributeProto DecompositionBuilder::Text(const char* name, const std::string& value) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}

std::optional<Decomposition> DecompositionBuilder::Take() && {
  std::map<std::string, std::string> names;  // Results that are outputs have the outputs' names.
  for (size_t i = 0; i < made_.outputs.size(); ++i) {
    if (!HasOutput(i)) continue;
    if (made_.outputs[i].empty()) return std::nullopt;
    names.emplace(made_.outputs[i], node_.output(static_cast<int>(i)));
  }
  const auto rename = [&](std::string& name) {
    const auto found = names.find(name);
    if (found != names.end()) name = found->second;
  };
  for (NodeProto& node : made_.nodes) {
    for (std::string& input : *node.mutable_input()) rename(input);
    for (std::string& output : *node.mutable_output()) rename(output);
  }
  for (std::string& output : made_.outputs) rename(output);
  return std::move(made_);
}

}  // namespace ckplan
