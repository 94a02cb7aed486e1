#include "lib/model/weights.h"

#include <cmath>
#include <cstring>

#include "lib/model/testing_proto.h"

namespace ckplan {
namespace {

Operand Shaped(ElementType type, std::vector<int64_t> dims) {
  Operand operand;
  operand.is_present = true;
  operand.type = type;
  operand.dims = std::move(dims);
  return operand;
}

template <typename T>
std::vector<T> Read(const WeightFile& file, std::string_view name, const Operand& operand) {
  const auto bytes = file.Read(name, operand);
  REQUIRE(bytes.has_value());
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

WeightFile Open(const TemporaryFile& file, const onnx::ModelProto& proto) {
  file.Write(proto.SerializeAsString());
  return WeightFile::Open(file.path()).value();
}

}  // namespace

TEST_CASE("weights: initializers of each type, in the executor's") {
  const TemporaryFile path("weights.onnx");
  onnx::ModelProto proto = ParseGraph(
      "g (float[2] x) => (float[2] y) <float[2] f = {1.5, -2}, double[2] d = {0.25, 4}, "
      "int64[2] i = {-7, 9000000000}> { y = Add(x, f) }");
  onnx::TensorProto& half = *proto.mutable_graph()->add_initializer();
  half.set_name("h");
  half.set_data_type(onnx::TensorProto::FLOAT16);
  half.add_dims(6);
  for (const int32_t bits : {0x3C00, 0xB800, 0x7BFF, 0x8001, 0xFC00, 0x7E00}) {
    half.add_int32_data(bits);
  }
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CHECK(Read<float>(file, "f", pair) == std::vector<float>{1.5F, -2});
  CHECK(Read<float>(file, "d", pair) == std::vector<float>{0.25F, 4});
  const std::vector<float> halves = Read<float>(file, "h", Shaped(ElementType::kFloat32, {6}));
  CHECK(std::vector<float>(halves.begin(), halves.begin() + 5) ==
        std::vector<float>{1, -0.5F, 65504, -0x1p-24F, -HUGE_VALF});
  CHECK(std::isnan(halves[5]));
  CHECK(Read<int64_t>(file, "i", Shaped(ElementType::kInt64, {2})) ==
        std::vector<int64_t>{-7, 9000000000});
  CHECK_FALSE(file.Read("none", pair).has_value());
}

TEST_CASE("weights: bfloat16 and booleans from raw bytes") {
  const TemporaryFile path("raw.onnx");
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  const auto add = [&proto](const char* name, int32_t type, const std::string& raw) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    tensor.add_dims(2);
    tensor.set_raw_data(raw);
  };
  add("b", onnx::TensorProto::BFLOAT16, {'\x80', '\x3F', '\x20', '\xC0'});  // 1, -2.5
  add("is", onnx::TensorProto::BOOL, {'\x01', '\x00'});
  add("short", onnx::TensorProto::FLOAT, {'\x00', '\x00', '\x80', '\x3F'});  // One of two.
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CHECK(Read<float>(file, "b", pair) == std::vector<float>{1, -2.5F});
  CHECK(Read<uint8_t>(file, "is", Shaped(ElementType::kBool, {2})) == std::vector<uint8_t>{1, 0});
  CHECK_FALSE(file.Read("short", pair).has_value());
}

TEST_CASE(
    "weights: beside the model, from an offset; nothing where that file is too short, or where the "
    "name leads out of the model's folder") {
  const TemporaryFile data("weights.data");
  const std::vector<float> values{9, 8, 7, 6};
  data.Write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  const std::filesystem::path beside(data.path());
  const auto add = [&](const char* name, int64_t offset, const std::string& location) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(2);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto entry = [&tensor](const std::string& key, const std::string& value) {
      auto& pair = *tensor.add_external_data();
      pair.set_key(key);
      pair.set_value(value);
    };
    entry("location", location);
    entry("offset", std::to_string(offset));
    entry("length", "8");
  };
  const std::string name = beside.filename().string();
  const std::string folder = beside.parent_path().filename().string();
  add("tail", 8, name);
  add("beyond", 12, name);
  add("round", 8, "into/../" + name);
  add("absolute", 8, beside.string());
  add("out", 8, "../" + folder + "/" + name);
  add("out later", 8, "into/../../" + folder + "/" + name);
  const TemporaryFile path("external.onnx");
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CHECK(Read<float>(file, "tail", pair) == std::vector<float>{7, 6});
  CHECK(Read<float>(file, "round", pair) == std::vector<float>{7, 6});
  for (const char* unread : {"beyond", "absolute", "out", "out later"}) {
    CAPTURE(unread);
    CHECK_FALSE(file.Read(unread, pair).has_value());
  }
}

}  // namespace ckplan
