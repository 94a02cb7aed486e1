#include "lib/files/model/expansion_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "lib/files/model/bind_dims.h"

namespace ckplan {

namespace {

using onnx::FunctionProto;
using onnx::NodeProto;

constexpr int kDeepestCalls = 64;
// These amount to about a gigabyte of memory. The file's own operations are limited by its size.
constexpr int64_t kMaxExpandedOperations = 250'000;
constexpr int64_t kMaxExpandedEntries = 5'000'000;
constexpr int64_t kMaxExpandedNameBytes = int64_t{256} << 20;

// Sums are capped here, so that no count overflows.
constexpr int64_t kBeyondAll = int64_t{1} << 40;

int64_t Sum(int64_t a, int64_t b) { return std::min(a + b, kBeyondAll); }
int64_t Product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kBeyondAll : std::min(product, kBeyondAll);
}

// The result of one expansion of a body.
struct Size {
  int64_t operations = 0;
  int64_t entries = 0;     // Operands, attributes and declarations that are visited.
  int64_t names = 0;       // Names, each of which begins with the prefix of the call.
  int64_t name_bytes = 0;  // Bytes of these names without that prefix.
  int depth = 0;           // The nesting of calls within it.

  void Add(const Size& other, int64_t prefix_bytes) {
    operations = Sum(operations, other.operations);
    entries = Sum(entries, other.entries);
    names = Sum(names, other.names);
    name_bytes = Sum(name_bytes, Sum(other.name_bytes, Product(other.names, prefix_bytes)));
    depth = std::max(depth, other.depth);
  }
};

class ExpansionCounter {
 public:
  explicit ExpansionCounter(const ModelFunctions& functions) : functions_(functions) {}

  // `is_call` says whether operations count; those within a call do.
  template <typename Nodes>
  Size OfNodes(const Nodes& nodes, bool is_call, int depth) {
    Size size;
    for (const NodeProto& node : nodes) AddNode(node, is_call, depth, size);
    return size;
  }

  bool is_too_deep() const { return is_too_deep_; }

 private:
  void AddNode(const NodeProto& node, bool is_call, int depth, Size& size) {
    const int64_t prefix = PrefixBytes(node);
    if (const FunctionProto* function = functions_.Find(node)) {
      size.entries = Sum(size.entries, EntriesOf(node));
      return size.Add(OfFunction(*function, depth), prefix);
    }
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) size.Add(OfNodes(attribute.g().node(), is_call, depth), prefix);
      for (const auto& graph : attribute.graphs()) {
        size.Add(OfNodes(graph.node(), is_call, depth), prefix);
      }
    }
    if (!is_call) return;
    size.operations = Sum(size.operations, 1);
    size.entries = Sum(size.entries, EntriesOf(node));
    size.names = Sum(size.names, 1 + node.output_size());
    size.name_bytes = Sum(size.name_bytes, prefix);
    for (const std::string& output : node.output()) {
      size.name_bytes = Sum(size.name_bytes, static_cast<int64_t>(output.size()));
    }
  }

  Size OfFunction(const FunctionProto& function, int depth) {
    if (depth >= kDeepestCalls) {
      is_too_deep_ = true;
      return {};
    }
    auto found = sizes_.find(&function);
    if (found == sizes_.end()) {
      Size size = OfNodes(function.node(), true, depth + 1);
      size.entries =
          Sum(size.entries, function.input_size() + function.attribute_proto_size() +
                                function.opset_import_size() + function.value_info_size());
      ++size.depth;
      found = sizes_.emplace(&function, size).first;
    }
    is_too_deep_ = is_too_deep_ || depth + found->second.depth > kDeepestCalls;
    return found->second;
  }

  static int64_t EntriesOf(const NodeProto& node) {
    return int64_t{node.input_size()} + node.output_size() + node.attribute_size();
  }

  // Returns the length of the prefix of names that are expanded in place of a node.
  static int64_t PrefixBytes(const NodeProto& node) {
    if (!node.name().empty()) return static_cast<int64_t>(node.name().size()) + 1;
    const size_t output = node.output_size() > 0 ? node.output(0).size() : 0;
    return static_cast<int64_t>(node.op_type().size() + output) + 2;
  }

  const ModelFunctions& functions_;
  std::unordered_map<const FunctionProto*, Size> sizes_;
  bool is_too_deep_ = false;
};

}  // namespace

Result<Done> CheckExpansion(const onnx::ModelProto& model, const ModelFunctions& functions,
                            const std::string& file) {
  if (functions.empty()) return Done{};
  ExpansionCounter counter(functions);
  const Size size = counter.OfNodes(model.graph().node(), false, 0);
  if (counter.is_too_deep()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("{}: its functions call each other more than {} levels deep; "
                                 "inline them first",
                                 file, kDeepestCalls));
  }
  if (size.operations > kMaxExpandedOperations || size.entries > kMaxExpandedEntries ||
      size.name_bytes > kMaxExpandedNameBytes) {
    return MakeError(
        ErrorCode::kUnsupported,
        fmt::format("{}: its functions expand to more than {} operations, {} operands or {} MiB of "
                    "names; export it with fewer or smaller functions",
                    file, kMaxExpandedOperations, kMaxExpandedEntries,
                    kMaxExpandedNameBytes >> 20));
  }
  return Done{};
}

}  // namespace ckplan
