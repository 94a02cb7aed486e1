#include "lib/files/model/rewrite.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/files/model/parse_file.h"

namespace ckplan {

namespace {

// The messages of onnx.proto on the path to a tensor or to metadata.
enum class Message : uint8_t {
  kModel,
  kMainGraph,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kFunction,
  kTraining,
};

struct Child {
  Message message;
  uint32_t field;
  Message is;
};

// Field numbers are those of onnx.proto, which never change.
constexpr std::array kChildren = {
    Child{Message::kModel, 7, Message::kMainGraph},
    Child{Message::kModel, 20, Message::kTraining},
    Child{Message::kModel, 25, Message::kFunction},
    Child{Message::kMainGraph, 1, Message::kNode},
    Child{Message::kMainGraph, 5, Message::kTensor},
    Child{Message::kMainGraph, 15, Message::kSparse},
    Child{Message::kGraph, 1, Message::kNode},
    Child{Message::kGraph, 5, Message::kTensor},
    Child{Message::kGraph, 15, Message::kSparse},
    Child{Message::kNode, 5, Message::kAttribute},
    Child{Message::kAttribute, 5, Message::kTensor},
    Child{Message::kAttribute, 10, Message::kTensor},
    Child{Message::kAttribute, 6, Message::kGraph},
    Child{Message::kAttribute, 11, Message::kGraph},
    Child{Message::kAttribute, 22, Message::kSparse},
    Child{Message::kAttribute, 23, Message::kSparse},
    Child{Message::kSparse, 1, Message::kTensor},
    Child{Message::kSparse, 2, Message::kTensor},
    Child{Message::kFunction, 7, Message::kNode},
    Child{Message::kFunction, 11, Message::kAttribute},
    Child{Message::kTraining, 1, Message::kGraph},
    Child{Message::kTraining, 2, Message::kGraph},
};

constexpr uint32_t kModelMetadata = 14;
constexpr uint32_t kNodeMetadata = 9;
constexpr uint32_t kNodeName = 3;
constexpr int kDeepest = 90;  // Protobuf itself reads 100 levels.

std::optional<Message> ChildOf(Message message, uint32_t field) {
  for (const Child& child : kChildren) {
    if (child.message == message && child.field == field) return child.is;
  }
  return std::nullopt;
}

// The fields are float_data, int32_data, string_data, int64_data, raw_data, double_data and
// uint64_data.
bool IsTensorContent(uint32_t field) {
  return (field >= 4 && field <= 7) || field == 9 || field == 10 || field == 11;
}

struct Entry {
  std::string_view key;
  std::string_view value;
};

Entry ReadEntry(std::string_view message) {
  Entry entry;
  WireReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->type != WireType::kLength) continue;
    if (field->number == 1) entry.key = field->payload;
    if (field->number == 2) entry.value = field->payload;
  }
  return entry;
}

void AppendMarkers(uint32_t number, const Markers& markers, Rope& out) {
  for (const auto& [key, value] : markers) {
    Rope entry;
    entry.AppendString(1, key);
    entry.AppendString(2, value);
    out.AppendMessage(number, std::move(entry));
  }
}

bool IsMetadata(Message message, const WireField& field) {
  return field.type == WireType::kLength &&
         ((message == Message::kModel && field.number == kModelMetadata) ||
          (message == Message::kNode && field.number == kNodeMetadata));
}

class Rewriter {
 public:
  Rewriter(const RewriteOptions& options, RewrittenModel& result)
      : options_(options), result_(result) {}

  bool Rewrite(Message message, std::string_view source, int depth, Rope& out) {
    if (depth > kDeepest) {
      is_too_deep_ = true;
      return false;
    }
    if (message == Message::kTensor) return RewriteTensor(source, out);
    WireReader reader(source);
    while (const auto field = reader.Next()) {
      const auto child = ChildOf(message, field->number);
      if (field->type != WireType::kLength) {
        out.Append(field->whole);
      } else if (IsDroppedMarker(message, *field)) {
        continue;
      } else if (!child.has_value() || CanCopy(*child, message, field->payload)) {
        out.Append(field->whole);
      } else {
        Rope content;
        if (!Rewrite(*child, field->payload, depth + 1, content)) return false;
        if (message == Message::kMainGraph && *child == Message::kNode) {
          MarkNode(main_node_++, content);
        }
        AppendChild(*field, std::move(content), out);
      }
    }
    if (message == Message::kModel && options_.model_markers != nullptr) {
      AppendMarkers(kModelMetadata, *options_.model_markers, out);
    }
    return !reader.is_damaged();
  }

  bool is_too_deep() const { return is_too_deep_; }

 private:
  // An unchanged message keeps its own header, so that long runs stay one piece.
  static void AppendChild(const WireField& field, Rope content, Rope& out) {
    const bool is_unchanged = content.pieces().size() == 1 &&
                              content.pieces()[0].data() == field.payload.data() &&
                              content.size() == field.payload.size();
    if (is_unchanged || (content.size() == 0 && field.payload.empty())) {
      out.Append(field.whole);
    } else {
      out.AppendMessage(field.number, std::move(content));
    }
  }

  // In a message this short, no contents are left out and no markers are dropped.
  bool CanCopy(Message child, Message parent, std::string_view payload) const {
    if (payload.size() > options_.largest_tensor_bytes) return false;
    const bool may_hold_markers = child == Message::kNode || parent == Message::kModel;
    return !may_hold_markers || !options_.drops_markers;
  }

  bool IsDroppedMarker(Message message, const WireField& field) const {
    return options_.drops_markers && IsMetadata(message, field) &&
           ReadEntry(field.payload).key.starts_with(kMarkerPrefix);
  }

  void MarkNode(size_t node, Rope& out) const {
    if (options_.node_markers == nullptr || node >= options_.node_markers->size()) return;
    AppendMarkers(kNodeMetadata, (*options_.node_markers)[node], out);
  }

  bool RewriteTensor(std::string_view source, Rope& out) {
    const bool is_large = source.size() > options_.largest_tensor_bytes;
    WireReader reader(source);
    while (const auto field = reader.Next()) {
      if (is_large && IsTensorContent(field->number)) {
        result_.has_left_out = true;
      } else {
        out.Append(field->whole);
      }
    }
    return !reader.is_damaged();
  }

  const RewriteOptions& options_;
  RewrittenModel& result_;
  size_t main_node_ = 0;  // The position in the main graph, which a file may give in several parts.
  bool is_too_deep_ = false;
};

Error DamagedModel(bool is_too_deep, const std::string& path) {
  return is_too_deep ? NestedTooDeep(path) : NotOnnx(path, "its protobuf encoding is damaged");
}

class MarkerFinder {
 public:
  // `own` receives the markers of this message.
  bool Find(Message message, std::string_view source, int depth, std::vector<FoundMarker>* own) {
    if (depth > kDeepest) {
      is_too_deep_ = true;
      return false;
    }
    WireReader reader(source);
    while (const auto field = reader.Next()) {
      const auto child = ChildOf(message, field->number);
      if (IsMetadata(message, *field)) {
        const Entry entry = ReadEntry(field->payload);
        if (!entry.key.starts_with(kMarkerPrefix)) continue;
        own->push_back({std::string(entry.key), std::string(entry.value)});
      } else if (child && field->type == WireType::kLength && *child != Message::kTensor &&
                 *child != Message::kSparse) {
        if (!FindIn(message, *child, field->payload, depth)) return false;
      }
    }
    return !reader.is_damaged();
  }

  FoundMarkers& found() { return found_; }
  bool is_too_deep() const { return is_too_deep_; }

 private:
  bool FindIn(Message parent, Message child, std::string_view payload, int depth) {
    if (parent != Message::kMainGraph || child != Message::kNode) {
      return Find(child, payload, depth + 1, &found_.elsewhere);
    }
    FoundMarkers::OfNode node{std::string(NameOfNode(payload)), {}};
    if (!Find(child, payload, depth + 1, &node.markers)) return false;
    found_.nodes.push_back(std::move(node));
    return true;
  }

  static std::string_view NameOfNode(std::string_view node) {
    std::string_view name;
    WireReader reader(node);
    while (const auto field = reader.Next()) {
      if (field->number == kNodeName && field->type == WireType::kLength) name = field->payload;
    }
    return name;
  }

  FoundMarkers found_;
  bool is_too_deep_ = false;
};

}  // namespace

bool FoundMarkers::empty() const {
  return model.empty() && elsewhere.empty() &&
         std::all_of(nodes.begin(), nodes.end(),
                     [](const OfNode& node) { return node.markers.empty(); });
}

Result<FoundMarkers> FindMarkers(std::string_view source, const std::string& path) {
  MarkerFinder finder;
  if (!finder.Find(Message::kModel, source, 0, &finder.found().model)) {
    return DamagedModel(finder.is_too_deep(), path);
  }
  return std::move(finder.found());
}

Result<RewrittenModel> RewriteModel(std::string_view source, const RewriteOptions& options,
                                    const std::string& path) {
  RewrittenModel result;
  Rope bytes;
  Rewriter rewriter(options, result);
  if (!rewriter.Rewrite(Message::kModel, source, 0, bytes)) {
    return DamagedModel(rewriter.is_too_deep(), path);
  }
  result.bytes = std::move(bytes);
  return result;
}

std::optional<std::string> FindModelMetadata(std::string_view source, std::string_view key) {
  std::optional<std::string> found;
  WireReader reader(source);
  while (const auto field = reader.Next()) {
    if (field->number != kModelMetadata || field->type != WireType::kLength) continue;
    const Entry entry = ReadEntry(field->payload);
    if (entry.key == key) found = std::string(entry.value);
  }
  return found;
}

}  // namespace ckplan
