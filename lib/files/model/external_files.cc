#include "lib/files/model/external_files.h"

#include <filesystem>
#include <set>
#include <string_view>

#include "lib/files/model/parse_file.h"
#include "lib/files/model/wire.h"

namespace ckplan {
namespace {

// Field numbers of ONNX's messages on the path from a model to the locations of its tensors.
constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kModelFunctions = 25;
constexpr uint32_t kGraphNode = 1;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kGraphSparseInitializer = 15;
constexpr uint32_t kFunctionNode = 7;
constexpr uint32_t kNodeAttribute = 5;
constexpr uint32_t kAttributeTensor = 5;
constexpr uint32_t kAttributeGraph = 6;
constexpr uint32_t kAttributeTensors = 10;
constexpr uint32_t kAttributeGraphs = 11;
constexpr uint32_t kAttributeSparse = 22;
constexpr uint32_t kAttributeSparses = 23;
constexpr uint32_t kSparseValues = 1;
constexpr uint32_t kSparseIndices = 2;
constexpr uint32_t kTensorExternalData = 13;
constexpr uint32_t kEntryKey = 1;
constexpr uint32_t kEntryValue = 2;

constexpr int kMaxLevels = 100;  // The deepest nesting of graphs; deeper models are refused when
                                 // they are read.

class LocationFinder {
 public:
  void Model(std::string_view message) {
    ForEach(message, [this](uint32_t field, std::string_view part) {
      if (field == kModelGraph) Graph(part, 0);
      if (field == kModelFunctions) Function(part);
    });
  }
  std::set<std::string> locations;

 private:
  template <typename Visit>
  static void ForEach(std::string_view message, const Visit& visit) {
    WireReader reader(message);
    while (const auto field = reader.Next()) {
      if (field->type == WireType::kLength) visit(field->number, field->payload);
    }
  }

  void Graph(std::string_view message, int level) {
    if (level > kMaxLevels) return;
    ForEach(message, [this, level](uint32_t field, std::string_view part) {
      if (field == kGraphNode) Node(part, level);
      if (field == kGraphInitializer) Tensor(part);
      if (field == kGraphSparseInitializer) SparseTensor(part);
    });
  }

  void Function(std::string_view message) {
    ForEach(message, [this](uint32_t field, std::string_view part) {
      if (field == kFunctionNode) Node(part, 0);
    });
  }

  void Node(std::string_view message, int level) {
    ForEach(message, [this, level](uint32_t field, std::string_view part) {
      if (field == kNodeAttribute) Attribute(part, level);
    });
  }

  void Attribute(std::string_view message, int level) {
    ForEach(message, [this, level](uint32_t field, std::string_view part) {
      if (field == kAttributeTensor || field == kAttributeTensors) Tensor(part);
      if (field == kAttributeSparse || field == kAttributeSparses) SparseTensor(part);
      if (field == kAttributeGraph || field == kAttributeGraphs) Graph(part, level + 1);
    });
  }

  void SparseTensor(std::string_view message) {
    ForEach(message, [this](uint32_t field, std::string_view part) {
      if (field == kSparseValues || field == kSparseIndices) Tensor(part);
    });
  }

  void Tensor(std::string_view message) {
    ForEach(message, [this](uint32_t field, std::string_view part) {
      if (field == kTensorExternalData) Entry(part);
    });
  }

  void Entry(std::string_view message) {
    std::string_view key, value;
    ForEach(message, [&](uint32_t field, std::string_view part) {
      if (field == kEntryKey) key = part;
      if (field == kEntryValue) value = part;
    });
    if (key == "location") locations.emplace(value);
  }
};

}  // namespace

std::vector<std::string> ExternalFiles(const std::string& model_path) {
  LocationFinder finder;
  if (IsTextModel(model_path)) {
    const Result<ParsedFile> parsed = ParseModelFile(model_path);
    if (parsed.ok()) finder.Model(parsed->proto->SerializeAsString());
  } else {
    const Result<MappedFile> file = MappedFile::Open(model_path);
    if (file.ok()) finder.Model(file->bytes());
  }
  std::vector<std::string> paths;
  const std::filesystem::path folder = std::filesystem::path(model_path).parent_path();
  for (const std::string& location : finder.locations) {
    paths.push_back((folder / location).string());
  }
  return paths;
}

}  // namespace ckplan
