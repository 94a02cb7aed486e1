#include "cli/ckplan/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/ckplan/annotation.h"
#include "cli/common/files.h"
#include "lib/base/nearest_name.h"
#include "lib/emit/division_tree_dot.h"
#include "lib/emit/dot.h"
#include "lib/emit/json_graph.h"
#include "lib/emit/json_plan.h"

namespace ckplan {
namespace {

struct KindName {
  OutputKind kind;
  std::string_view name;
};
constexpr std::array kKinds = {
    KindName{OutputKind::kJson, "json"}, KindName{OutputKind::kDot, "dot"},
    KindName{OutputKind::kDivisionTree, "division-tree"}, KindName{OutputKind::kOnnx, "onnx"}};

Result<OutputKind> ReadKind(std::string_view text) {
  std::vector<std::string_view> names;
  for (const KindName& row : kKinds) {
    if (row.name == text) return row.kind;
    names.push_back(row.name);
  }
  return MakeError(
      ErrorCode::kUsage,
      fmt::format("--emit: \"{}\" is none of json, dot, division-tree, onnx; did you mean \"{}\"?",
                  text.substr(0, 80), NearestName(text, names)));
}

Error TwoForStdout() {
  return MakeError(ErrorCode::kUsage,
                   "standard output can take one thing alone; give a file to the others");
}

}  // namespace

Result<Outputs> Outputs::Create(const Options& options, OutputKind main) {
  Outputs outputs;
  outputs.model_path_ = options.source;
  if (options.output) outputs.items_.push_back({main, *options.output});
  for (const std::string& emit : options.emits) {
    const size_t equals = emit.find('=');
    if (equals == std::string::npos || equals + 1 == emit.size()) {
      return MakeError(ErrorCode::kUsage,
                       fmt::format("--emit: \"{}\" is not of the form KIND=FILE", emit));
    }
    CKPLAN_ASSIGN_OR_RETURN(const OutputKind kind, ReadKind(emit.substr(0, equals)));
    outputs.items_.push_back({kind, emit.substr(equals + 1)});
  }
  int for_stdout = options.format == "text" ? 0 : 1;
  std::vector<std::string> paths;
  for (const Item& item : outputs.items_) {
    if (item.path.empty()) return MakeError(ErrorCode::kUsage, "-o: the file has no name");
    if (item.path == kStandardStream && ++for_stdout > 1) return TwoForStdout();
    if (item.path == kStandardStream && item.kind == OutputKind::kOnnx) {
      return MakeError(ErrorCode::kUsage, "an ONNX file is not written to standard output");
    }
    if (std::find(paths.begin(), paths.end(), item.path) != paths.end()) {
      return MakeError(ErrorCode::kUsage, fmt::format("\"{}\" is written twice", item.path));
    }
    paths.push_back(item.path);
    CKPLAN_RETURN_IF_ERROR(CheckWritable(item.path));
  }
  return outputs;
}

Result<Done> Outputs::CheckFor(const Source& source) const {
  if (source.is_model || !Has(OutputKind::kOnnx)) return Done{};
  return MakeError(ErrorCode::kUsage, "--emit onnx needs a model; a graph file is none");
}

Result<Done> Outputs::Write(const Source& source, const Plan& plan, const Screen& screen) const {
  std::vector<Content> contents;
  for (const Item& item : items_) {
    if (item.kind == OutputKind::kJson) {
      contents.push_back({item.path, WritePlanJson(plan, source.graph)});
    } else if (item.kind == OutputKind::kDot) {
      contents.push_back({item.path, WriteDot(source.graph, &plan)});
    } else if (item.kind == OutputKind::kDivisionTree) {
      const bool is_folded = plan.request.granularity == Granularity::kLayer;
      const std::string tree = is_folded ? WriteDivisionTreeDot(FoldLayers(source.graph).graph)
                                         : WriteDivisionTreeDot(source.graph);
      contents.push_back({item.path, tree});
    } else {
      CKPLAN_ASSIGN_OR_RETURN(const auto warnings,
                              WriteAnnotatedModel(source, plan, model_path_, item.path));
      for (const std::string& warning : warnings) screen.Warn(warning);
    }
  }
  return WriteContents(contents, screen);
}

Result<Done> Outputs::WriteGraph(const TensorGraph& graph, const Screen& screen) const {
  std::vector<Content> contents;
  for (const Item& item : items_) {
    const bool is_tree = item.kind == OutputKind::kDivisionTree;
    contents.push_back({item.path, is_tree                         ? WriteDivisionTreeDot(graph)
                                   : item.kind == OutputKind::kDot ? WriteDot(graph, nullptr)
                                                                   : WriteGraphJson(graph)});
  }
  return WriteContents(contents, screen);
}

Result<Done> Outputs::WriteContents(const std::vector<Content>& contents, const Screen& screen) {
  std::vector<OutputFile> files;
  for (const Content& content : contents) {
    if (content.path != kStandardStream) files.push_back({content.path, content.text});
  }
  CKPLAN_RETURN_IF_ERROR(WriteFiles(files));
  for (const Content& content : contents) {
    if (content.path == kStandardStream) CKPLAN_RETURN_IF_ERROR(screen.Print(content.text));
  }
  return Done{};
}

bool Outputs::TakesStdout() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const Item& item) { return item.path == kStandardStream; });
}

bool Outputs::Has(OutputKind kind) const {
  return std::any_of(items_.begin(), items_.end(),
                     [kind](const Item& item) { return item.kind == kind; });
}

std::vector<std::string> Outputs::Files() const {
  std::vector<std::string> files;
  for (const Item& item : items_) {
    if (item.path != kStandardStream) files.push_back(item.path);
  }
  return files;
}

std::string Outputs::FileOf(OutputKind kind) const {
  for (const Item& item : items_) {
    if (item.kind == kind && item.path != kStandardStream) return item.path;
  }
  return "";
}

}  // namespace ckplan
