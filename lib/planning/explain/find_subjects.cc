#include "lib/planning/explain/find_subjects.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lib/base/name_patterns.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr size_t kShownNames = 5;

using Matcher = std::function<bool(const std::string& name)>;

struct KindFilter {
  bool nodes = true;
  bool tensors = true;
  bool modules = true;
};

class Finder {
 public:
  Finder(const TrainingStep& graph, std::span<const AbsentValue> absent)
      : graph_(graph), absent_(absent) {
    for (size_t i = 0; i < graph.node_count(); ++i) node_names_.push_back(graph.NameOf(NodeId(i)));
    for (size_t i = 0; i < graph.tensor_count(); ++i) {
      tensor_names_.push_back(graph.NameOf(TensorId(i)));
    }
  }

  std::vector<Subject> Find(std::string_view text, const KindFilter& filter) const {
    std::vector<Subject> found =
        FindByName([&](const std::string& name) { return name == text; }, filter);
    if (found.empty() && filter.modules) found = FindInModule(text);
    if (!found.empty() || !IsGlob(text)) return found;
    const Glob glob(text);
    return FindByName([&](const std::string& name) { return glob.Matches(name); }, filter);
  }

  Error NotFoundError(std::string_view text) const {
    std::vector<std::string_view> names;
    for (const auto* list : {&node_names_, &tensor_names_}) {
      names.insert(names.end(), list->begin(), list->end());
    }
    for (const AbsentValue& value : absent_) names.push_back(value.name);
    const std::string_view shown = text.substr(0, 200);
    if (IsGlob(text)) {
      return MakeError(ErrorCode::kUsage, fmt::format("no node or tensor matches \"{}\"", shown));
    }
    Error error = MakeError(
        ErrorCode::kUsage,
        fmt::format("no node, tensor or module is named \"{}\"{}", shown, DidYouMean(text, names)));
    error.notes = NamesWith(text, names);
    return error;
  }

 private:
  std::vector<Subject> FindByName(const Matcher& accepts, const KindFilter& filter) const {
    std::vector<Subject> found;
    std::set<int32_t> with_node;  // Tensors whose producers match.
    for (size_t i = 0; i < node_names_.size() && filter.nodes; ++i) {
      if (!accepts(node_names_[i])) continue;
      found.push_back(NodeSubject(NodeId(i)));
      for (const TensorId output : found.back().tensors) with_node.insert(output.index());
    }
    if (!filter.tensors) return found;
    for (size_t i = 0; i < tensor_names_.size(); ++i) {
      if (with_node.contains(static_cast<int32_t>(i)) || !accepts(tensor_names_[i])) continue;
      found.push_back({NodeId(), {TensorId(i)}, tensor_names_[i], nullptr});
    }
    for (const AbsentValue& value : absent_) {
      if (!accepts(value.name)) continue;
      Subject subject{NodeId(), {}, value.name, &value};
      if (!value.tensor.is_none()) subject.tensors.push_back(value.tensor);
      found.push_back(std::move(subject));
    }
    return found;
  }

  std::vector<Subject> FindInModule(std::string_view path) const {
    std::vector<Subject> found;
    for (size_t i = 0; i < node_names_.size(); ++i) {
      const std::vector<std::string> modules = graph_.ModulesOf(NodeId(i));
      const auto is_path = [&](const std::string& module) { return IsPath(module, path); };
      if (std::none_of(modules.begin(), modules.end(), is_path)) continue;
      found.push_back(NodeSubject(NodeId(i)));
    }
    return found;
  }

  // True if `path` is the module's path, or its last part if that is itself a path with dots, as
  // written by PyTorch's older exporter: "layer3.1" of "/layer3/layer3.1".
  static bool IsPath(std::string_view module, std::string_view path) {
    if (module == path) return true;
    const bool is_whole_path = module.starts_with('/') && path.find('.') != std::string_view::npos;
    return is_whole_path && module.substr(module.rfind('/') + 1) == path;
  }

  Subject NodeSubject(NodeId node) const {
    return {node, graph_.OutputsOf(node), node_names_[static_cast<size_t>(node.index())], nullptr};
  }

  // Finds the first names that contain the text.
  static std::vector<std::string> NamesWith(std::string_view text,
                                            const std::vector<std::string_view>& names) {
    std::vector<std::string> notes;
    const std::set<std::string_view> unique(names.begin(), names.end());
    size_t count = 0;
    for (const std::string_view name : unique) {
      if (name.find(text) == std::string_view::npos || ++count > kShownNames) continue;
      notes.push_back(fmt::format("similar: \"{}\"", name));
    }
    if (count > kShownNames) {
      notes.push_back(fmt::format("and {} more with \"*{}*\"", count - kShownNames, text));
    }
    return notes;
  }

  const TrainingStep graph_;
  std::span<const AbsentValue> absent_;
  std::vector<std::string> node_names_;
  std::vector<std::string> tensor_names_;
};

}  // namespace

Result<std::vector<Subject>> FindSubjects(const TrainingStep& graph,
                                          std::span<const AbsentValue> absent,
                                          std::string_view name) {
  CKPLAN_RETURN_IF_ERROR(CheckGlob(name));
  const Finder finder(graph, absent);
  std::vector<Subject> found = finder.Find(name, {});
  const size_t colon = name.find(':');
  if (found.empty() && colon != std::string_view::npos) {
    const std::string_view kind = name.substr(0, colon);
    const std::string_view rest = name.substr(colon + 1);
    const KindFilter filter{kind == "node", kind == "tensor", kind == "module"};
    if (filter.nodes || filter.tensors || filter.modules) {
      found = finder.Find(rest, filter);
      if (found.empty()) return finder.NotFoundError(rest);
    }
  }
  if (found.empty()) return finder.NotFoundError(name);
  return found;
}

}  // namespace ckplan
