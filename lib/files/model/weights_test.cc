#include "lib/files/model/weights.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstring>

#include "lib/files/model/constant.h"
#include "lib/files/model/testing/proto.h"

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
  const Result<WeightContents> contents = file.Read(name, operand);
  REQUIRE(contents.ok());
  REQUIRE(contents->bytes.has_value());
  std::vector<T> values(contents->bytes->size() / sizeof(T));
  std::memcpy(values.data(), contents->bytes->data(), contents->bytes->size());
  return values;
}

void CheckAbsent(const WeightFile& file, std::string_view name, const Operand& operand,
                 AbsentWeight absent) {
  const Result<WeightContents> contents = file.Read(name, operand);
  REQUIRE(contents.ok());
  CHECK_FALSE(contents->bytes.has_value());
  CHECK(contents->absent == absent);
}

// Returns the fault of the contents that the error reports.
std::string Refusal(const WeightFile& file, std::string_view name, const Operand& operand) {
  const Result<WeightContents> contents = file.Read(name, operand);
  REQUIRE_FALSE(contents.ok());
  CHECK(contents.error().code == ErrorCode::kInvalidInput);
  CHECK(contents.error().message.find(name) != std::string::npos);
  return contents.error().message;
}

bool Says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

WeightFile Open(const TemporaryFile& file, const onnx::ModelProto& proto) {
  file.Write(proto.SerializeAsString());
  return WeightFile::Open(file.path()).value();
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// Adds a tensor of two floats in another file.
void AddExternal(onnx::ModelProto& proto, const std::string& name, const Entries& entries) {
  onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : entries) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
}

}  // namespace

TEST_CASE("weights: initializers of each type are read in the executor's types") {
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
  CheckAbsent(file, "none", pair, AbsentWeight::kLeftOut);
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
  add("short", onnx::TensorProto::FLOAT, {'\x00', '\x00', '\x80', '\x3F'});  // One of two elements.
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CHECK(Read<float>(file, "b", pair) == std::vector<float>{1, -2.5F});
  CHECK(Read<uint8_t>(file, "is", Shaped(ElementType::kBool, {2})) == std::vector<uint8_t>{1, 0});
  CheckAbsent(file, "short", pair, AbsentWeight::kUnreadable);
}

TEST_CASE(
    "weights: beside the model, from an offset; refused where that file is too short, or where the "
    "name is outside the model's folder") {
  const TemporaryFile data("weights.data");
  const std::vector<float> values{9, 8, 7, 6};
  data.Write({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  const std::filesystem::path beside(data.path());
  const auto add = [&](const char* name, int64_t offset, const std::string& location) {
    AddExternal(proto, name,
                {{"location", location}, {"offset", std::to_string(offset)}, {"length", "8"}});
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
  CHECK(Says(Refusal(file, "beyond", pair), "has 16 bytes, but 8 from byte 12 on are needed"));
  for (const char* unread : {"absolute", "out", "out later"}) {
    CAPTURE(unread);
    CHECK(Says(Refusal(file, unread, pair), "is outside the model's folder"));
  }
}

TEST_CASE("weights: a file beside the model that is missing or empty leaves them out") {
  const TemporaryFile empty("empty.data");
  empty.Write("");
  const std::string name = std::filesystem::path(empty.path()).filename().string();
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  AddExternal(proto, "empty", {{"location", name}, {"offset", "8"}, {"length", "8"}});
  AddExternal(proto, "missing", {{"location", name + ".missing"}});
  const TemporaryFile path("stripped.onnx");
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CheckAbsent(file, "empty", pair, AbsentWeight::kNoFile);
  CheckAbsent(file, "missing", pair, AbsentWeight::kNoFile);
}

TEST_CASE("weights: a name with a NUL is refused, though what precedes it is a file") {
  const TemporaryFile data("nul.data");
  data.Write(std::string(16, '\0'));
  std::string name = std::filesystem::path(data.path()).filename().string();
  name += std::string("\0/../elsewhere", 14);
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  AddExternal(proto, "w", {{"location", name}});
  const TemporaryFile path("nul.onnx");
  CHECK(
      Says(Refusal(Open(path, proto), "w", Shaped(ElementType::kFloat32, {2})), "contains a NUL"));
}

TEST_CASE("weights: offsets and lengths outside the file are not followed") {
  const TemporaryFile data("places.data");
  data.Write(std::string(16, '\0'));
  const std::string name = std::filesystem::path(data.path()).filename().string();
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  AddExternal(proto, "whole", {{"location", name}, {"offset", "8"}});
  const char* const offsets[] = {
      "9", "-8", "9223372036854775807", "18446744073709551608", "0x", "8.0", " 8", "", "eight"};
  for (const char* const offset : offsets) {
    AddExternal(proto, std::string("offset ") + offset, {{"location", name}, {"offset", offset}});
  }
  const char* const lengths[] = {
      "0", "7", "16", "-8", "9223372036854775807", "18446744073709551624"};
  for (const char* const length : lengths) {
    AddExternal(proto, std::string("length ") + length, {{"location", name}, {"length", length}});
  }
  const TemporaryFile path("places.onnx");
  const WeightFile file = Open(path, proto);
  const Operand pair = Shaped(ElementType::kFloat32, {2});
  CHECK(Read<float>(file, "whole", pair).size() == 2);
  for (const auto& tensor : proto.graph().initializer()) {
    CAPTURE(tensor.name());
    if (tensor.name() != "whole") Refusal(file, tensor.name(), pair);
  }
}

TEST_CASE("weights: only regular files are read, whatever the name leads to") {
  const TemporaryFile pipe("pipe");
  const TemporaryFile device("device");
  const TemporaryFile nowhere("nowhere");
  REQUIRE(::mkfifo(pipe.path().c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/zero", device.path());
  std::filesystem::create_symlink(nowhere.path(), nowhere.path());
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  for (const TemporaryFile* const file : {&pipe, &device, &nowhere}) {
    const std::string name = std::filesystem::path(file->path()).filename().string();
    AddExternal(proto, name, {{"location", name}});
  }
  const std::string odd[] = {"", ".", "x/..", std::string("..\0/x", 5), std::string(5000, 'n')};
  for (const std::string& location : odd) {
    AddExternal(proto, "odd " + location, {{"location", location}});
  }
  AddExternal(proto, "none", {});
  const TemporaryFile path("special.onnx");
  const WeightFile file = Open(path, proto);
  for (const auto& tensor : proto.graph().initializer()) {
    CAPTURE(tensor.name());
    Refusal(file, tensor.name(), Shaped(ElementType::kFloat32, {2}));
  }
}

TEST_CASE("weights: an operand of more elements than the file has bytes takes no memory") {
  const TemporaryFile path("few.onnx");
  const WeightFile file = Open(path, ParseGraph("g (float[2] x) => (float[2] y) "
                                                "<float[2] w = {1, 2}> { y = Add(x, w) }"));
  for (const int64_t dim : {int64_t{1} << 40, int64_t{1} << 62}) {
    CheckAbsent(file, "w", Shaped(ElementType::kFloat32, {dim}), AbsentWeight::kUnreadable);
  }
}

TEST_CASE("external files: tensors anywhere in the model are found") {
  onnx::ModelProto proto = ParseGraph("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  const auto refer = [](onnx::TensorProto* tensor, const char* location) {
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto& length = *tensor->add_external_data();
    length.set_key("length");
    length.set_value("8");
    auto& pair = *tensor->add_external_data();
    pair.set_key("location");
    pair.set_value(location);
  };
  onnx::GraphProto& graph = *proto.mutable_graph();
  refer(graph.add_initializer(), "c.data");
  refer(graph.add_initializer(), "a.data");
  refer(graph.add_initializer(), "a.data");
  refer(graph.add_sparse_initializer()->mutable_values(), "sub/d.data");
  refer(graph.mutable_node(0)->add_attribute()->mutable_t(), "b.data");
  onnx::GraphProto& branch = *graph.mutable_node(0)->add_attribute()->mutable_g();
  refer(branch.add_node()->add_attribute()->add_tensors(), "e.data");
  refer(proto.add_functions()->add_node()->add_attribute()->mutable_t(), "f.data");
  const TemporaryFile path("external.onnx");
  path.Write(proto.SerializeAsString());
  const std::filesystem::path folder = std::filesystem::path(path.path()).parent_path();
  std::vector<std::string> expected;
  for (const char* const name : {"a.data", "b.data", "c.data", "e.data", "f.data", "sub/d.data"}) {
    expected.push_back((folder / name).string());
  }
  CHECK(ExternalFiles(path.path()) == expected);
  CHECK(ExternalFiles("/no/such/model.onnx").empty());
}

namespace {

std::string Bytes32(const std::vector<int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}

TEST_CASE("tensor file: an ONNX model whose initializers are the tensors, in their order") {
  const std::string bytes = TensorFileBytes(
      "tensors", {{"a", ElementType::kInt32, {2, 1}, Bytes32({7, -3})},
                  {"b", ElementType::kBool, {}, std::string(1, '\1')},
                  {"c", ElementType::kBFloat16, {2}, {'\x80', '\x3F', '\x20', '\xC0'}}});
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(bytes));
  CHECK(model.graph().name() == "tensors");
  CHECK(model.graph().node_size() == 0);
  REQUIRE(model.graph().initializer_size() == 3);
  CHECK(model.graph().initializer(0).name() == "a");
  const auto a = ReadTensor(model.graph().initializer(0));
  REQUIRE(a.has_value());
  CHECK(a->dims == Dims{2, 1});
  CHECK(a->ints == std::vector<int64_t>{7, -3});
  const auto b = ReadTensor(model.graph().initializer(1));
  REQUIRE(b.has_value());
  CHECK(b->dims.empty());
  CHECK(b->ints == std::vector<int64_t>{1});
  const auto c = ReadTensor(model.graph().initializer(2));
  REQUIRE(c.has_value());
  CHECK(c->reals == std::vector<double>{1, -2.5});
}

}  // namespace

}  // namespace ckplan
