#include "lib/files/model/check_markers.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/text.h"
#include "lib/files/model/wire.h"

namespace ckplan {
namespace {

constexpr size_t kLongestValue = 80;  // The most bytes of a marker shown in a message.

const FoundMarker* Find(const std::vector<FoundMarker>& markers, const std::string& key) {
  const auto found = std::find_if(markers.begin(), markers.end(),
                                  [&](const FoundMarker& one) { return one.key == key; });
  return found == markers.end() ? nullptr : &*found;
}

std::string Quoted(const std::string& value) {
  return fmt::format("\"{}\"", Printable(value, kLongestValue));
}

// `where` is the model or one of its nodes.
void Compare(const std::string& where, const std::vector<FoundMarker>& found,
             const Markers& expected, std::vector<std::string>* faults) {
  for (const auto& [key, value] : expected) {
    const FoundMarker* const marker = Find(found, key);
    if (marker == nullptr) {
      faults->push_back(fmt::format("{}: marker {} is missing", where, key));
    } else if (marker->value != value) {
      faults->push_back(fmt::format("{}: marker {} is {}, the plan says {}", where, key,
                                    Quoted(marker->value), Quoted(value)));
    }
  }
  for (const FoundMarker& marker : found) {
    const std::string key = Printable(marker.key, kLongestValue);
    if (expected.count(marker.key) == 0) {
      faults->push_back(fmt::format("{}: the plan has no marker {} there", where, key));
    } else if (Find(found, marker.key) != &marker) {
      faults->push_back(fmt::format("{}: marker {} is there more than once", where, key));
    }
  }
}

}  // namespace

Result<FoundMarkers> ReadMarkers(const std::string& path) {
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return FindMarkers(file.bytes(), path);
}

std::vector<std::string> FaultsOfMarkers(const FoundMarkers& found, const Annotation& expected) {
  const FoundMarker* const version = Find(found.model, "ckplan.schema_version");
  const std::string& written = expected.model.at("ckplan.schema_version");
  if (version == nullptr || version->value != written) {
    return {fmt::format(
        "the model: its markers are not of version {}, which this program writes{}; "
        "`ckplan apply` writes the plan into the model anew",
        written, written == kMarkerVersionWithCopies ? " for plans that copy to the host" : "")};
  }
  if (found.nodes.size() != expected.nodes.size()) {
    return {fmt::format("the model: it has {} nodes, the plan's model has {}", found.nodes.size(),
                        expected.nodes.size())};
  }
  std::vector<std::string> faults;
  Compare("the model", found.model, expected.model, &faults);
  for (size_t i = 0; i < found.nodes.size(); ++i) {
    const std::string where =
        fmt::format("node {} \"{}\"", i, Printable(found.nodes[i].name, kLongestValue));
    Compare(where, found.nodes[i].markers, expected.nodes[i], &faults);
  }
  Compare("a function, a branch or a training graph", found.elsewhere, {}, &faults);
  return faults;
}

}  // namespace ckplan
