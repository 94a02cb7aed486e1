#include "lib/model/weights.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "lib/model/constant.h"
#include "lib/model/parse_file.h"
#include "lib/model/tensor_elements.h"
#include "lib/model/wire.h"

namespace ckplan {

struct WeightFile::State {
  onnx::ModelProto proto;
  std::filesystem::path folder;
  std::map<std::string, const onnx::TensorProto*, std::less<>> tensors;
};

namespace {

// All elements as numbers of type To, whatever the file's own type is. `visit` calls what it is
// given with each of the `count` elements, or with none and is then false.
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
    case ElementType::kBFloat16:  // Weights do not depend on the batch: they are never stored so.
      break;
  }
  return std::nullopt;
}

std::optional<int64_t> NumberAt(const onnx::TensorProto& tensor, std::string_view key,
                                int64_t otherwise) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() != key) continue;
    int64_t number = 0;
    const char* const end = entry.value().data() + entry.value().size();
    const auto parsed = std::from_chars(entry.value().data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end || number < 0) return std::nullopt;
    return number;
  }
  return otherwise;
}

// The bytes of a tensor in a file beside the model. A name that leads out of the model's folder is
// not followed.
std::optional<std::string> ExternalBytes(const onnx::TensorProto& tensor,
                                         const std::filesystem::path& folder, int64_t bytes) {
  std::filesystem::path location;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
  }
  const std::filesystem::path normal = location.lexically_normal();
  if (normal.empty() || normal.is_absolute() || *normal.begin() == "..") return std::nullopt;
  const std::optional<int64_t> offset = NumberAt(tensor, "offset", 0);
  const std::optional<int64_t> length = NumberAt(tensor, "length", bytes);
  if (!offset || !length || *length != bytes) return std::nullopt;
  std::error_code fault;
  const uintmax_t size = std::filesystem::file_size(folder / normal, fault);
  if (fault || size < static_cast<uintmax_t>(bytes) ||
      static_cast<uintmax_t>(*offset) > size - static_cast<uintmax_t>(bytes)) {
    return std::nullopt;
  }
  std::ifstream file(folder / normal, std::ios::binary);
  std::string content(static_cast<size_t>(bytes), '\0');
  file.seekg(*offset);
  if (!file.read(content.data(), bytes)) return std::nullopt;
  return content;
}

Result<Done> ParseWhole(const std::string& path, onnx::ModelProto& proto) {
  if (IsTextModel(path)) {
    CKPLAN_ASSIGN_OR_RETURN(ParsedFile parsed, ParseModelFile(path));
    proto = std::move(*parsed.proto);
    return Done{};
  }
  CKPLAN_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(path));
  const std::string_view bytes = mapped.bytes();
  // Protobuf reads no more than 2 GB; weights in so large a file come from the seed.
  if (bytes.size() > uint64_t{std::numeric_limits<int>::max()}) return Done{};
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return NotOnnx(path, "its protobuf encoding is damaged");
  }
  return Done{};
}

}  // namespace

WeightFile::WeightFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
WeightFile::WeightFile(WeightFile&&) noexcept = default;
WeightFile::~WeightFile() = default;

Result<WeightFile> WeightFile::Open(const std::string& model_path) {
  auto state = std::make_unique<State>();
  CKPLAN_RETURN_IF_ERROR(ParseWhole(model_path, state->proto));
  state->folder = std::filesystem::path(model_path).parent_path();
  const onnx::GraphProto& graph = state->proto.graph();
  for (const onnx::NodeProto& node : graph.node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.name() == "value") state->tensors[node.output(0)] = &attribute.t();
    }
  }
  for (const onnx::TensorProto& tensor : graph.initializer())
    state->tensors[tensor.name()] = &tensor;
  return WeightFile(std::move(state));
}

std::optional<std::vector<std::byte>> WeightFile::Read(std::string_view name,
                                                       const Operand& operand) const {
  const auto found = state_->tensors.find(name);
  if (found == state_->tensors.end()) return std::nullopt;
  const onnx::TensorProto& tensor = *found->second;
  const int64_t count = operand.elements();
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) {
    // An element takes a byte at least, so that what is allocated grows with the file.
    if (count < 0 || static_cast<size_t>(count) > tensor.ByteSizeLong()) return std::nullopt;
    return CollectAs(operand.type, count,
                     [&](const auto& take) { return VisitElements(tensor, count, take); });
  }
  const int32_t type = tensor.data_type();
  const std::optional<int64_t> bytes = TensorBytes(type, operand.dims);
  if (!bytes) return std::nullopt;
  const std::optional<std::string> raw = ExternalBytes(tensor, state_->folder, *bytes);
  if (!raw) return std::nullopt;
  return CollectAs(operand.type, count,
                   [&](const auto& take) { return VisitRawElements(type, *raw, count, take); });
}

}  // namespace ckplan
