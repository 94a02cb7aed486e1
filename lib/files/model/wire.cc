#include "lib/files/model/wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/files/model/parse_file.h"

namespace ckplan {
namespace {

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  return bytes;
}

std::string LengthHeader(uint32_t number, uint64_t length) {
  return Varint(uint64_t{number} << 3 | 2) + Varint(length);
}

}  // namespace

bool WireReader::ReadVarint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::optional<WireField> WireReader::Next() {
  if (rest_.empty() || is_damaged_) return std::nullopt;
  const char* start = rest_.data();
  is_damaged_ = true;  // Until the whole field has been read.
  uint64_t tag = 0;
  if (!ReadVarint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return std::nullopt;
  WireField field;
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  size_t length = 0;
  switch (field.type) {
    case WireType::kVarint:
      if (!ReadVarint(field.varint)) return std::nullopt;
      break;
    case WireType::kFixed64:
      length = 8;
      break;
    case WireType::kFixed32:
      length = 4;
      break;
    case WireType::kLength:
      if (!ReadVarint(field.varint)) return std::nullopt;
      length = field.varint;
      break;
    default:  // Groups became obsolete before ONNX existed.
      return std::nullopt;
  }
  if (length > rest_.size()) return std::nullopt;
  field.payload = rest_.substr(0, length);
  rest_.remove_prefix(length);
  field.whole = {start, static_cast<size_t>(rest_.data() - start)};
  is_damaged_ = false;
  return field;
}

void Rope::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == bytes.data()) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + bytes.size()};
  } else {
    pieces_.push_back(bytes);
  }
}

void Rope::AppendOwned(std::string bytes) {
  owned_.push_back(std::move(bytes));
  size_ += owned_.back().size();
  pieces_.emplace_back(owned_.back());
}

void Rope::AppendMessage(uint32_t number, Rope content) {
  AppendOwned(LengthHeader(number, content.size_));
  for (const std::string_view piece : content.pieces_) Append(piece);
  owned_.splice(owned_.end(), content.owned_);
}

void Rope::AppendString(uint32_t number, std::string bytes) {
  AppendOwned(LengthHeader(number, bytes.size()));
  AppendOwned(std::move(bytes));
}

std::string Rope::Flatten() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const std::string_view piece : pieces_) bytes += piece;
  return bytes;
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const auto failure = [&path](std::string_view why) {
    return MakeError(ErrorCode::kIo, fmt::format("cannot read \"{}\": {}", path, why));
  };
  // Otherwise, opening a pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failure(std::strerror(errno));
  MappedFile file;
  struct stat info {};
  const bool is_known = ::fstat(descriptor, &info) == 0;
  if (!is_known || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return failure(is_known && S_ISDIR(info.st_mode)
                       ? "it is a directory, not a regular file; name the .onnx file in it"
                       : "it is not a regular file");
  }
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ > 0) {
    void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      const int reason = errno;
      ::close(descriptor);
      return failure(std::strerror(reason));
    }
    file.data_ = static_cast<const char*>(data);
  }
  ::close(descriptor);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

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

// The fields float_data, int32_data, string_data, int64_data, raw_data, double_data and
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

  // In such a short message, nothing is omitted and no markers are dropped.
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
  size_t main_node_ = 0;  // Position in the main graph, which may have several parts.
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
