#include "lib/files/model/weights.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "lib/base/file.h"
#include "lib/files/model/constant.h"
#include "lib/files/model/parse_file.h"
#include "lib/files/model/tensor_elements.h"
#include "lib/files/model/wire.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct WeightFile::State {
  onnx::ModelProto proto;
  std::filesystem::path folder;
  std::map<std::string, const onnx::TensorProto*, std::less<>> tensors;
  std::map<std::string, const onnx::SparseTensorProto*, std::less<>> sparse;
  bool is_too_large = false;
};

namespace {

// Returns all elements converted to type To. `visit` calls its argument with each of the `count`
// elements, or with none and returns false.
template <typename To, typename Visit>
std::optional<std::vector<std::byte>> Collect(int64_t count, const Visit& visit) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(To));
  std::byte* next = bytes.data();
  const bool is_whole = visit([&next](auto element) {
    const To to = static_cast<To>(element);
    std::memcpy(next, &to, sizeof(To));
    next += sizeof(To);
  });
  if (!is_whole) return std::nullopt;
  return bytes;
}

template <typename Visit>
std::optional<std::vector<std::byte>> CollectAs(ElementType type, int64_t count,
                                                const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32:
      return Collect<float>(count, visit);
    case ElementType::kInt32:
      return Collect<int32_t>(count, visit);
    case ElementType::kInt64:
      return Collect<int64_t>(count, visit);
    case ElementType::kBool:
      return Collect<bool>(count, visit);
    // Weights do not depend on the batch, so they are never stored in this type.
    case ElementType::kBFloat16:
      break;
  }
  return std::nullopt;
}

// Returns the dense contents of a sparse tensor. The operand's size is already within the memory
// limit.
std::optional<std::vector<std::byte>> ReadSparseAs(const Operand& operand,
                                                   const onnx::SparseTensorProto& sparse) {
  const auto positions = SparsePositions(sparse);
  if (!positions ||
      ElementCount({sparse.dims().begin(), sparse.dims().end()}) != operand.elements()) {
    return std::nullopt;
  }
  const auto count = static_cast<int64_t>(positions->size());
  const auto listed = CollectAs(operand.type, count, [&](const auto& take) {
    return VisitElements(sparse.values(), count, take);
  });
  if (!listed) return std::nullopt;
  std::vector<std::byte> dense(static_cast<size_t>(operand.bytes()));
  const size_t width = positions->empty() ? 0 : listed->size() / positions->size();
  for (size_t i = 0; i < positions->size(); ++i) {
    std::memcpy(dense.data() + static_cast<size_t>((*positions)[i]) * width,
                listed->data() + i * width, width);
  }
  return dense;
}

// The location that an external tensor claims. It may be anything.
class ExternalPlace {
 public:
  ExternalPlace(const onnx::TensorProto& tensor, const std::filesystem::path& folder, int64_t bytes)
      : tensor_(tensor), folder_(folder), bytes_(bytes) {}

  // Returns the bytes from a file next to the model, or nullopt if the file is missing or empty.
  // Does not read files outside the model's folder.
  Result<std::optional<std::string>> Read() const {
    CKPLAN_ASSIGN_OR_RETURN(const std::string location, Location());
    const std::filesystem::path path = folder_ / location;
    std::error_code fault;
    const auto status = std::filesystem::status(path, fault);
    if (status.type() == std::filesystem::file_type::not_found) return NoContents();
    if (status.type() != std::filesystem::file_type::regular) {
      return UnusableError(fmt::format("\"{}\" is not a regular file", location));
    }
    const uintmax_t size = std::filesystem::file_size(path, fault);
    if (!fault && size == 0) return NoContents();
    CKPLAN_ASSIGN_OR_RETURN(const int64_t offset, NumberAt("offset", 0));
    CKPLAN_ASSIGN_OR_RETURN(const int64_t length, NumberAt("length", bytes_));
    if (length != bytes_) {
      return UnusableError(
          fmt::format("its length is {} bytes, but its shape and type need {}", length, bytes_));
    }
    const auto end = static_cast<uintmax_t>(offset) + static_cast<uintmax_t>(bytes_);
    if (fault || size < end) {
      return UnusableError(fmt::format("\"{}\" has {} bytes, but {} from byte {} on are needed",
                                       location, fault ? 0 : size, bytes_, offset));
    }
    std::ifstream file(path, std::ios::binary);
    std::string content(static_cast<size_t>(bytes_), '\0');
    file.seekg(offset);
    if (!file.read(content.data(), bytes_))
      return UnusableError(IoError("read", location, errno).message);
    return std::optional(std::move(content));
  }

 private:
  static std::optional<std::string> NoContents() { return std::nullopt; }

  Error UnusableError(std::string_view why) const {
    return MakeError(
        ErrorCode::kInvalidInput,
        fmt::format("the weight \"{}\" cannot be read from its file: {}; check that the "
                    "model and its files are complete, or export it again",
                    tensor_.name(), why));
  }

  const std::string* Entry(std::string_view key) const {
    for (const auto& entry : tensor_.external_data()) {
      if (entry.key() == key) return &entry.value();
    }
    return nullptr;
  }

  Result<std::string> Location() const {
    const std::string* const location = Entry("location");
    if (location == nullptr) return UnusableError("the model does not name it");
    // For the system, a name ends at a NUL, so it would open another file.
    if (location->find('\0') != std::string::npos) return UnusableError("its name contains a NUL");
    const std::filesystem::path normal = std::filesystem::path(*location).lexically_normal();
    if (normal.empty() || normal == ".") return UnusableError("its name is empty");
    if (normal.is_absolute() || *normal.begin() == "..") {
      return UnusableError(fmt::format("\"{}\" is outside the model's folder", *location));
    }
    return normal.string();
  }

  Result<int64_t> NumberAt(std::string_view key, int64_t otherwise) const {
    const std::string* const text = Entry(key);
    if (text == nullptr) return otherwise;
    int64_t number = 0;
    const char* const end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number >= 0) return number;
    return UnusableError(
        fmt::format("its {} is \"{}\", which is not a number of bytes", key, *text));
  }

  const onnx::TensorProto& tensor_;
  const std::filesystem::path& folder_;
  const int64_t bytes_;
};

// True if the file is too large for protobuf.
bool IsTooLarge(const MappedFile& file) {
  return file.bytes().size() > uint64_t{std::numeric_limits<int>::max()};
}

// Returns false if the file is too large.
Result<bool> ParseWhole(const std::string& path, onnx::ModelProto& proto) {
  if (IsTextModel(path)) {
    CKPLAN_ASSIGN_OR_RETURN(ParsedFile parsed, ParseModelFile(path));
    proto = std::move(*parsed.proto);
    return true;
  }
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  if (IsTooLarge(mapped)) return false;
  const std::string_view bytes = mapped.bytes();
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return NotOnnx(path, "its protobuf encoding is damaged");
  }
  return true;
}

}  // namespace

WeightFile::WeightFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightFile::WeightFile(WeightFile&&) noexcept = default;
WeightFile::~WeightFile() = default;

Result<WeightFile> WeightFile::Open(const std::string& model_path) {
  auto state = std::make_unique<State>();
  CKPLAN_ASSIGN_OR_RETURN(const bool is_read, ParseWhole(model_path, state->proto));
  state->is_too_large = !is_read;
  state->folder = std::filesystem::path(model_path).parent_path();
  const onnx::GraphProto& graph = state->proto.graph();
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "value") state->tensors[node.output(0)] = &attribute.t();
      if (attribute.name() == "sparse_value") {
        state->sparse[node.output(0)] = &attribute.sparse_tensor();
      }
    }
  }
  for (const onnx::TensorProto& tensor : graph.initializer())
    state->tensors[tensor.name()] = &tensor;
  for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) {
    state->sparse[sparse.values().name()] = &sparse;
  }
  return WeightFile(std::move(state));
}

Result<WeightContents> WeightFile::Read(std::string_view name, const Operand& operand) const {
  if (state_->is_too_large) return WeightContents{std::nullopt, AbsentWeight::kTooLarge};
  if (const auto sparse = state_->sparse.find(name); sparse != state_->sparse.end()) {
    return WeightContents{ReadSparseAs(operand, *sparse->second), AbsentWeight::kUnreadable};
  }
  const auto found = state_->tensors.find(name);
  if (found == state_->tensors.end()) return WeightContents{std::nullopt, AbsentWeight::kLeftOut};
  const onnx::TensorProto& tensor = *found->second;
  const int64_t count = operand.elements();
  WeightContents contents{std::nullopt, AbsentWeight::kUnreadable};
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) {
    // An element takes at least a byte, so the file's size limits allocations.
    if (count < 0 || static_cast<size_t>(count) > tensor.ByteSizeLong()) return contents;
    contents.bytes = CollectAs(
        operand.type, count, [&](const auto& take) { return VisitElements(tensor, count, take); });
    return contents;
  }
  const int32_t type = tensor.data_type();
  const std::optional<int64_t> bytes = TensorBytes(type, operand.dims);
  if (!bytes) return contents;
  CKPLAN_ASSIGN_OR_RETURN(const std::optional<std::string> raw,
                          ExternalPlace(tensor, state_->folder, *bytes).Read());
  if (!raw) return WeightContents{std::nullopt, AbsentWeight::kNoFile};
  contents.bytes = CollectAs(operand.type, count, [&](const auto& take) {
    return VisitRawElements(type, *raw, count, take);
  });
  return contents;
}

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

namespace {

int32_t OnnxTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return onnx::TensorProto::FLOAT;
    case ElementType::kBFloat16:
      return onnx::TensorProto::BFLOAT16;
    case ElementType::kInt32:
      return onnx::TensorProto::INT32;
    case ElementType::kInt64:
      return onnx::TensorProto::INT64;
    case ElementType::kBool:
      return onnx::TensorProto::BOOL;
  }
  return onnx::TensorProto::UNDEFINED;
}

}  // namespace

std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors) {
  onnx::ModelProto model;
  model.set_ir_version(onnx::Version::IR_VERSION);
  model.mutable_graph()->set_name(graph_name);
  model.add_opset_import()->set_version(1);
  for (NamedTensor& tensor : tensors) {
    onnx::TensorProto& initializer = *model.mutable_graph()->add_initializer();
    initializer.set_name(std::move(tensor.name));
    initializer.set_data_type(OnnxTypeOf(tensor.type));
    for (const int64_t dim : tensor.dims) initializer.add_dims(dim);
    initializer.set_raw_data(std::move(tensor.contents));
  }
  return model.SerializeAsString();
}

}  // namespace ckplan
