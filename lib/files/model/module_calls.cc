#include "lib/files/model/module_calls.h"

#include <utility>

namespace ckplan {

namespace {

constexpr std::string_view kScopes = "pkg.torch.onnx.name_scopes";
constexpr std::string_view kClasses = "pkg.torch.onnx.class_hierarchy";
// The scope of operations outside any module, such as sizes that the exporter computes.
constexpr std::string_view kNoModule = "_empty_nn_module_stack_from_metadata_hook";

std::vector<std::string> StringsOf(const onnx::NodeProto& node, std::string_view key) {
  for (const auto& property : node.metadata_props()) {
    if (property.key() == key)
      return ParsePythonStrings(property.value()).value_or(std::vector<std::string>());
  }
  return {};
}

// The calls of the nodes so far, in the order in which they run.
class CallTree {
 public:
  // Returns the innermost call of the node, adding it and its callers if they begin here; -1 if
  // none.
  int32_t CallOf(const onnx::NodeProto& node) {
    const std::vector<std::string> scopes = StringsOf(node, kScopes);
    if (scopes.size() < 2 || scopes.front() == kNoModule) return -1;
    const std::vector<std::string> classes = ClassesOf(node);
    size_t depth = 0;
    while (depth < running_.size() && depth + 1 < scopes.size() &&
           calls_[static_cast<size_t>(running_[depth])].path == scopes[depth]) {
      ++depth;
    }
    running_.resize(depth);
    for (; depth + 1 < scopes.size(); ++depth) {
      const int32_t caller = running_.empty() ? -1 : running_.back();
      running_.push_back(static_cast<int32_t>(calls_.size()));
      calls_.push_back({scopes[depth], depth < classes.size() ? classes[depth] : "", caller});
    }
    return running_.back();
  }

  std::vector<ModuleCall> Take() && { return std::move(calls_); }

 private:
  std::vector<ModuleCall> calls_;
  std::vector<int32_t> running_;  // The calls that contain the last node, beginning with the
                                  // model's.
};

}  // namespace

std::optional<std::vector<std::string>> ParsePythonStrings(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<std::string> strings;
  size_t at = 0;
  while (at < text.size()) {
    const char quote = text[at++];
    if (quote != '\'' && quote != '"') return std::nullopt;
    std::string& string = strings.emplace_back();
    for (; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      string += text[at];
    }
    if (at == text.size()) return std::nullopt;
    ++at;
    if (at == text.size()) return strings;
    if (!text.substr(at).starts_with(", ") || at + 2 == text.size()) return std::nullopt;
    at += 2;
  }
  return strings;
}

std::vector<std::string> ClassesOf(const onnx::NodeProto& node) {
  return StringsOf(node, kClasses);
}

ModuleCalls ReadModuleCalls(const Model::Impl& model, const std::vector<NodeId>& nodes,
                            size_t node_count) {
  CallTree tree;
  ModuleCalls modules;
  modules.call_of = IdVector<NodeId, int32_t>(node_count, -1);
  const onnx::GraphProto& graph = model.proto->graph();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_none()) continue;
    modules.call_of[nodes[i]] = tree.CallOf(graph.node(model.operations[i].file_node));
  }
  modules.calls = std::move(tree).Take();
  return modules;
}

}  // namespace ckplan
