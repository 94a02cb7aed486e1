// Copies a model file at the level of the wire format, without its weights or with other markers.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/files/model/wire.h"

namespace ckplan {

// The prefix of ckplan's own keys in metadata_props. These keys are dropped before new ones are
// written.
inline constexpr std::string_view kMarkerPrefix = "ckplan.";

using Markers = std::map<std::string, std::string>;

struct RewriteOptions {
  // Tensor contents above this many bytes are left out; name, type and shape stay.
  uint64_t largest_tensor_bytes = std::numeric_limits<uint64_t>::max();
  bool drops_markers = false;
  // Markers to append to the nodes of the main graph, by position, and to the model; null for none.
  const std::vector<Markers>* node_markers = nullptr;
  const Markers* model_markers = nullptr;
};

struct RewrittenModel {
  Rope bytes;                 // It has views into the source.
  bool has_left_out = false;  // Some tensor contents are left out.
};

// kInvalidInput: the source, which messages call `path`, is damaged: a field extends beyond its
// message. kUnsupported: the source is nested more deeply than protobuf reads. Messages that are
// copied whole are not inspected.
Result<RewrittenModel> RewriteModel(std::string_view source, const RewriteOptions& options,
                                    const std::string& path);

// A marker as it occurs in a file; a key may occur several times.
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

// Finds all markers that RewriteModel would drop. Errors are those of RewriteModel.
Result<FoundMarkers> FindMarkers(std::string_view source, const std::string& path);

// Returns the value of a metadata entry of the model itself; nothing if there is none with that
// key.
std::optional<std::string> FindModelMetadata(std::string_view source, std::string_view key);

}  // namespace ckplan
