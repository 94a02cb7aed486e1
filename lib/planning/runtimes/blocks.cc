#include "lib/planning/runtimes/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ckplan {
namespace {

// Elements of nested lists with fewer forward operations are parts of blocks, such as the linear
// layers of an nn.Sequential.
constexpr double kMinOps = 8.0;

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns the end of the part of the path that starts at `begin`.
size_t EndOfPart(const std::string& path, size_t begin) {
  return std::min(path.find('.', begin), path.size());
}

// Returns the path up to its `depth`th number, counted from 1: "layers.3" of "layers.3.mlp.0" for
// 1. Empty if it has fewer numbers.
std::string ElementOf(const std::string& path, int depth) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = EndOfPart(path, begin);
    if (IsNumber(std::string_view(path).substr(begin, end - begin)) && --depth == 0) {
      return path.substr(0, end);
    }
    begin = end + 1;
  }
  return "";
}

bool IsWithin(const std::string& path, const std::string& module) {
  return path.size() > module.size() && path[module.size()] == '.' && path.starts_with(module);
}

// Returns the depth of the blocks in nested lists.
int DepthOfBlocks(const JointGraph& graph) {
  int chosen = 1;
  for (int depth = 2;; ++depth) {
    std::map<std::string, int64_t> counts;
    int64_t sum = 0;
    for (const OpId id : graph.ops().ids()) {
      if (graph.op(id).phase != Phase::kForward) continue;
      const std::string element = ElementOf(graph.op(id).module, depth);
      if (element.empty()) continue;
      ++counts[element];
      ++sum;
    }
    if (counts.empty()) return chosen;
    const double average = static_cast<double>(sum) / static_cast<double>(counts.size());
    if (average >= kMinOps) chosen = depth;
  }
}

// Returns the path of the block for operations outside lists: the outermost enclosing module that
// contains no element of a list.
std::string ModuleAround(const std::string& path, const std::vector<std::string>& elements) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = EndOfPart(path, begin);
    const std::string prefix = path.substr(0, end);
    const bool has_elements =
        std::any_of(elements.begin(), elements.end(),
                    [&](const std::string& element) { return IsWithin(element, prefix); });
    if (!has_elements) return prefix;
    begin = end + 1;
  }
  return "";  // An operation of a module that contains blocks.
}

// The modules of one level, in the order of their first forward operations.
class Modules {
 public:
  void Add(const std::string& path, OpId id, Phase phase) {
    const auto [entry, is_new] = by_path_.try_emplace(path, modules_.size());
    if (is_new) {
      if (phase != Phase::kForward) {
        by_path_.erase(entry);
        return;  // The module only computes gradients.
      }
      modules_.push_back({path, {}, {}});
    }
    ModuleOps& ops = modules_[entry->second];
    (phase == Phase::kForward ? ops.forward : ops.backward).push_back(id);
  }
  std::vector<ModuleOps> Take() && { return std::move(modules_); }

 private:
  std::map<std::string, size_t> by_path_;
  std::vector<ModuleOps> modules_;
};

std::vector<ModuleOps> PartsOf(const JointGraph& graph, const ModuleOps& block) {
  Modules parts;
  const auto add = [&](OpId id) {
    const std::string& path = graph.op(id).module;
    if (!IsWithin(path, block.path)) return;
    parts.Add(path.substr(0, EndOfPart(path, block.path.size() + 1)), id, graph.op(id).phase);
  };
  for (const OpId id : block.forward) add(id);
  for (const OpId id : block.backward) add(id);
  return std::move(parts).Take();
}

// Describes what equal blocks have in common.
std::string ShapeOf(const JointGraph& graph, const Block& block) {
  std::string shape;
  for (const std::vector<OpId>* ops : {&block.ops.forward, &block.ops.backward}) {
    for (const OpId id : *ops) {
      const Operation& op = graph.op(id);
      const std::string& path = graph.op(id).module;
      const std::string within =
          path.size() > block.ops.path.size() ? path.substr(block.ops.path.size()) : "";
      shape += fmt::format("{}|{}|{}|{}", op.op, within, op.cost.count(), op.may_repeat);
      for (const ValueId write : op.writes) {
        shape += fmt::format("|{}", graph.counted_bytes(write).count());
      }
      shape += '\n';
    }
    shape += '\n';
  }
  return shape;
}

// True if the block's forward operations contain none of another block in between.
bool IsContiguous(const std::vector<OpId>& forward, const IdVector<OpId, int32_t>& block_of) {
  for (OpId id = forward.front(); id < forward.back(); ++id) {
    if (block_of[id] >= 0 && block_of[id] != block_of[forward.front()]) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<Block>> FindBlocks(const JointGraph& graph) {
  const bool has_paths = std::any_of(graph.ops().begin(), graph.ops().end(),
                                     [](const Operation& op) { return !op.module.empty(); });
  if (!has_paths) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{} does not say which module its operations come from; export it with "
                    "torch.onnx.export(dynamo=True), or use the graph that ckplan.torch writes",
                    graph.name()));
  }
  const int depth = DepthOfBlocks(graph);
  std::vector<std::string> elements;
  for (const OpId id : graph.ops().ids()) {
    std::string element = ElementOf(graph.op(id).module, depth);
    if (!element.empty()) elements.push_back(std::move(element));
  }
  std::sort(elements.begin(), elements.end());
  elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
  Modules modules;
  for (const OpId id : graph.ops().ids()) {
    std::string path = ElementOf(graph.op(id).module, depth);
    if (path.empty()) path = ModuleAround(graph.op(id).module, elements);
    if (!path.empty()) modules.Add(path, id, graph.op(id).phase);
  }
  std::vector<ModuleOps> found = std::move(modules).Take();
  IdVector<OpId, int32_t> block_of(graph.ops().size(), -1);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const OpId id : found[i].forward) block_of[id] = static_cast<int32_t>(i);
  }
  std::vector<Block> blocks;
  std::map<std::string, int32_t> kinds;
  for (ModuleOps& ops : found) {
    if (!IsContiguous(ops.forward, block_of)) continue;
    Block block;
    block.is_repeated = std::binary_search(elements.begin(), elements.end(), ops.path);
    block.ops = std::move(ops);
    block.parts = PartsOf(graph, block.ops);
    const auto number = static_cast<int32_t>(kinds.size());
    block.kind = kinds.try_emplace(ShapeOf(graph, block), number).first->second;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace ckplan
