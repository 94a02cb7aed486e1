#include "lib/exec/weights.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "lib/model/parse_file.h"
#include "lib/model/wire.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct WeightFile::State {
  onnx::ModelProto proto;
  std::filesystem::path folder;
  std::map<std::string, const onnx::TensorProto*, std::less<>> tensors;
};

namespace {

float FromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0) {  // Zero or subnormal: mantissa units of 2^-24.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t bits =
      exponent == 31 ? 0x7F800000u | (mantissa << 13) : ((exponent + 112) << 23) | (mantissa << 13);
  return std::bit_cast<float>(sign | bits);
}

float FromBfloat(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

template <typename From, typename To, typename Convert>
std::optional<std::vector<std::byte>> Converted(std::string_view raw, int64_t count,
                                                const Convert& convert) {
  if (raw.size() != static_cast<size_t>(count) * sizeof(From)) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<size_t>(count) * sizeof(To));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    From from{};
    std::memcpy(&from, raw.data() + i * sizeof(From), sizeof(From));
    const To to = convert(from);
    std::memcpy(bytes.data() + i * sizeof(To), &to, sizeof(To));
  }
  return bytes;
}

// Little-endian elements as in raw_data, to the executor's type.
std::optional<std::vector<std::byte>> FromRaw(std::string_view raw, int32_t type, int64_t count) {
  const auto same = [](auto value) { return value; };
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return Converted<float, float>(raw, count, same);
    case onnx::TensorProto::DOUBLE:
      return Converted<double, float>(raw, count, [](double v) { return static_cast<float>(v); });
    case onnx::TensorProto::FLOAT16:
      return Converted<uint16_t, float>(raw, count, FromHalf);
    case onnx::TensorProto::BFLOAT16:
      return Converted<uint16_t, float>(raw, count, FromBfloat);
    case onnx::TensorProto::INT32:
      return Converted<int32_t, int32_t>(raw, count, same);
    case onnx::TensorProto::INT64:
      return Converted<int64_t, int64_t>(raw, count, same);
    case onnx::TensorProto::BOOL:
      return Converted<uint8_t, uint8_t>(raw, count,
                                         [](uint8_t v) { return static_cast<uint8_t>(v != 0); });
    default:
      return std::nullopt;
  }
}

// The typed lists as raw elements of the tensor's own type.
std::string ListedBytes(const onnx::TensorProto& tensor) {
  std::string raw;
  const auto append = [&raw](auto value) {
    raw.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      for (const float v : tensor.float_data()) append(v);
      break;
    case onnx::TensorProto::DOUBLE:
      for (const double v : tensor.double_data()) append(v);
      break;
    case onnx::TensorProto::INT64:
      for (const int64_t v : tensor.int64_data()) append(v);
      break;
    case onnx::TensorProto::INT32:
      for (const int32_t v : tensor.int32_data()) append(v);
      break;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      for (const int32_t v : tensor.int32_data()) append(static_cast<uint16_t>(v));
      break;
    case onnx::TensorProto::BOOL:
      for (const int32_t v : tensor.int32_data()) append(static_cast<uint8_t>(v));
      break;
    default:
      break;
  }
  return raw;
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

int64_t FileElementBytes(int32_t type) {
  switch (type) {
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
      return 8;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      return 2;
    case onnx::TensorProto::BOOL:
      return 1;
    default:
      return 4;
  }
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
  const int32_t type = tensor.data_type();
  const int64_t count = operand.elements();
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    const auto raw = ExternalBytes(tensor, state_->folder, count * FileElementBytes(type));
    return raw ? FromRaw(*raw, type, count) : std::nullopt;
  }
  if (tensor.has_raw_data()) return FromRaw(tensor.raw_data(), type, count);
  return FromRaw(ListedBytes(tensor), type, count);
}

}  // namespace ckplan
