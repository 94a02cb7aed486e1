// Reads the protobuf wire format in place and rewrites it piecewise.
//
// ONNX files contain their weights; protobuf itself refuses files over 2 GB, and parsing copies
// everything. Here a file is memory-mapped and stays in place. A rewritten file is a Rope: a list
// of views into the original, with a few new bytes in between. The cost is linear in the number of
// fields, not bytes. On top of it, models are copied without their weights or with other markers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;       // kVarint.
  std::string_view payload;  // kLength: the bytes after the length.
  std::string_view whole;    // The field as in the file, including its tag.
};

// Reads the fields of one message in order.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Returns the next field; nullopt at the end or if the message is damaged, which is_damaged()
  // distinguishes.
  std::optional<WireField> Next();
  bool is_damaged() const { return is_damaged_; }
  std::string_view rest() const { return rest_; }

 private:
  bool ReadVarint(uint64_t& value);

  std::string_view rest_;
  bool is_damaged_ = false;
};

// A sequence of bytes in pieces: views that the caller keeps alive, and strings that the rope owns.
class Rope {
 public:
  void Append(std::string_view bytes);
  void AppendOwned(std::string bytes);
  // Appends an embedded message or string: tag, length and content.
  void AppendMessage(uint32_t number, Rope content);
  void AppendString(uint32_t number, std::string bytes);

  uint64_t size() const { return size_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::string Flatten() const;

 private:
  std::vector<std::string_view> pieces_;
  std::list<std::string> owned_;  // A list, so that its strings never move.
  uint64_t size_ = 0;
};

// A file that is mapped read-only for the lifetime of this object.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile() = default;

  const char* data_ = nullptr;
  size_t size_ = 0;
};

// The prefix of ckplan's own keys in metadata_props. They are dropped before new ones are written.
inline constexpr std::string_view kMarkerPrefix = "ckplan.";

using Markers = std::map<std::string, std::string>;

struct RewriteOptions {
  // Tensor contents larger than this are omitted; name, type and shape stay.
  uint64_t largest_tensor_bytes = std::numeric_limits<uint64_t>::max();
  bool drops_markers = false;
  // Markers to append to the nodes of the main graph, by position, and to the model; null for none.
  const std::vector<Markers>* node_markers = nullptr;
  const Markers* model_markers = nullptr;
};

struct RewrittenModel {
  Rope bytes;                 // Contains views into the source.
  bool has_left_out = false;  // Some tensor contents were omitted.
};

// Fails with kInvalidInput if the source, called `path` in messages, is damaged: a field extends
// beyond its message. Fails with kUnsupported if the source is nested more deeply than protobuf
// supports. Messages that are copied whole are not inspected.
Result<RewrittenModel> RewriteModel(std::string_view source, const RewriteOptions& options,
                                    const std::string& path);

// A marker as it occurs in a file. A key may occur several times.
struct FoundMarker {
  std::string key;
  std::string value;
};

struct FoundMarkers {
  struct OfNode {
    std::string name;
    std::vector<FoundMarker> markers;
  };
  std::vector<FoundMarker> model;
  std::vector<OfNode> nodes;           // One for each node of the main graph.
  std::vector<FoundMarker> elsewhere;  // Markers on nodes in functions, branches and training
                                       // graphs.
  bool empty() const;
};

// Finds all markers that RewriteModel would drop. Fails like RewriteModel.
Result<FoundMarkers> FindMarkers(std::string_view source, const std::string& path);

// Returns the value of a metadata entry of the model itself; nullopt if the key does not exist.
std::optional<std::string> FindModelMetadata(std::string_view source, std::string_view key);

}  // namespace ckplan
