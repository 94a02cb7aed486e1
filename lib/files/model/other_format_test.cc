#include "lib/files/model/other_format.h"

#include <doctest/doctest.h>

#include "lib/files/model/testing/models.h"

namespace ckplan {
namespace {

TEST_CASE("other formats: files that are no ONNX are named, with what to do") {
  struct Row {
    std::string bytes;
    const char* what;
  };
  using namespace std::string_literals;
  const Row rows[] = {
      {"PK\x03\x04"s + std::string(26, '\0') + "net/data.pkl", "PyTorch file"},
      {"PK\x03\x04"s + std::string(26, '\0') + "net/model.onnx", "zip archive"},
      {"\x80\x02\x8a\x0a"
       "l\xfc"s,
       "old PyTorch file"},
      {"GGUF\x03\0\0\0"s, "GGUF"},
      {"\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}"s, "safetensors"},
      {"\x1c\0\0\0TFL3\0\0"s, "TensorFlow Lite"},
      {"\x89HDF\r\n\x1a\n"s, "HDF5"},
      {"\x20\0\0\0ORTM\0\0"s, "ONNX Runtime's own format"},
      {"\x93NUMPY\x01\0"s, "NumPy array"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "git lfs pull"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\x1f\x8b\x08\0"s, "gzip archive"},
      {std::string(257, 'm') + "ustar\0"s, "tar archive"},
      {"ir_version: 9\ngraph {}", "name that ends with .textproto"},
      {"<\n  ir_version: 9\n>\ng (float[4] x)", "name that ends with .onnxtxt"},
      {"{\"irVersion\": \"9\", \"graph\": {}}", "ONNX model in JSON"}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const auto text = OtherFormatText(row.bytes);
    REQUIRE(text.has_value());
    CHECK(text->find(row.what) != std::string::npos);
    const TemporaryFile file("other.onnx");
    file.Write(row.bytes);
    const auto model = LoadModel(file.path(), {});
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kInvalidInput);
    CHECK(model.error().message.find(row.what) != std::string::npos);
  }
  CHECK(!OtherFormatText("{\"nodes\": []}"));
  CHECK(!OtherFormatText(ModelFileBytes("g (float[4] x) => (float[4] y) { y = Relu(x) }")));
  CHECK(!OtherFormatText(""));
}

TEST_CASE("other formats: text inputs and training graphs are named") {
  const auto text = LoadText("g (string[4] x) => (int64[4] y) { y = Shape(x) }");
  REQUIRE_FALSE(text.ok());
  CHECK(text.error().message.find("input \"x\" is text") != std::string::npos);
  const auto training =
      LoadText("g (float[4] x) => (float[4] y) { h = com.microsoft.ReluGrad(x, z) y = Relu(h) }");
  REQUIRE_FALSE(training.ok());
  CHECK(training.error().message.find("a training graph from ONNX Runtime") != std::string::npos);
}

}  // namespace
}  // namespace ckplan
