#include "lib/files/model/other_format.h"

#include <fmt/format.h>

#include <algorithm>

namespace ckplan {
namespace {

// What a file of another format is, and what to do instead.
struct OtherFormat {
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view kExport =
    "export the model with torch.onnx.export(model, args, \"model.onnx\") and name that file";

// Formats that begin with a fixed text.
struct Magic {
  std::string_view bytes;
  size_t offset = 0;
  OtherFormat format;
};

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it and name the .onnx file in it";
constexpr OtherFormat kWebPage = {"a web page", "download the model itself"};

constexpr Magic kMagics[] = {
    {"\x80\x02\x8a\x0a"sv, 0, {"an old PyTorch file", kExport}},
    {"GGUF"sv, 0, {"weights in GGUF, without a graph", kExport}},
    {"TFL3"sv,
     4,
     {"a TensorFlow Lite model",
      "convert it with `python -m tf2onnx.convert --tflite FILE --output model.onnx` and name "
      "model.onnx"}},
    {"ORTM"sv, 4, {"a model in ONNX Runtime's own format", "name the .onnx file it was made of"}},
    {"\x89HDF\r\n"sv,
     0,
     {"an HDF5 file, as Keras writes", "export the model to ONNX with tf2onnx"}},
    {"\x93NUMPY"sv, 0, {"a NumPy array", "name the model's .onnx file"}},
    {"version https://git-lfs"sv,
     0,
     {"a Git LFS pointer, not the model itself", "fetch the model with `git lfs pull`"}},
    {"<!DOCTYPE"sv, 0, kWebPage},
    {"<!doctype"sv, 0, kWebPage},
    {"<html"sv, 0, kWebPage},
    {"\x1f\x8b"sv, 0, {"a gzip archive", kUnpack}},
    {"\xfd"
     "7zXZ\0"sv,
     0,
     {"an xz archive", kUnpack}},
    {"\x28\xb5\x2f\xfd"sv, 0, {"a zstd archive", kUnpack}},
    {"BZh"sv, 0, {"a bzip2 archive", kUnpack}},
    {"7z\xbc\xaf"sv, 0, {"a 7-Zip archive", kUnpack}},
    {"ustar"sv, 257, {"a tar archive", kUnpack}},
};

// Returns the file extension that makes the loader read the file as text.
std::string_view EndingOfText(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  const std::string_view text = bytes.substr(first);
  if (text.starts_with("ir_version:")) return ".textproto";
  constexpr size_t kHeadBytes = 400;
  const bool is_onnx_text =
      text[0] == '<' && text.substr(0, kHeadBytes).find("ir_version") != std::string_view::npos;
  return is_onnx_text ? ".onnxtxt" : "";
}

std::optional<OtherFormat> OtherFormatOf(std::string_view bytes) {
  constexpr size_t kSizeBytes = 8;
  if (bytes.starts_with("PK\x03\x04")) {
    constexpr size_t kHeadBytes = 4096;
    const bool is_torch = bytes.substr(0, kHeadBytes).find("data.pkl") != std::string_view::npos;
    if (is_torch) return OtherFormat{"a PyTorch file (.pt) without a graph in ONNX", kExport};
    return OtherFormat{"a zip archive", kUnpack};
  }
  if (bytes.size() > kSizeBytes && bytes.substr(kSizeBytes).starts_with("{\"") &&
      bytes.substr(4, 4) == "\0\0\0\0"sv) {
    return OtherFormat{"weights in safetensors, without a graph", kExport};
  }
  for (const Magic& magic : kMagics) {
    if (bytes.size() <= magic.offset) continue;
    if (bytes.substr(magic.offset).starts_with(magic.bytes)) return magic.format;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> OtherFormatText(std::string_view bytes) {
  if (IsOnnxInJson(bytes)) return std::string(kOnnxInJson);
  if (const std::string_view ending = EndingOfText(bytes); !ending.empty()) {
    return fmt::format("an ONNX model in text; give it a name that ends with {}", ending);
  }
  const auto other = OtherFormatOf(bytes);
  if (!other) return std::nullopt;
  return fmt::format("{}; {}", other->what, other->remedy);
}

bool IsOnnxInJson(std::string_view text) {
  constexpr size_t kHeadBytes = 1 << 16;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  const auto has = [&](std::string_view key) {
    return text.substr(0, kHeadBytes).find(key) != std::string_view::npos ||
           text.substr(text.size() - std::min(text.size(), kHeadBytes)).find(key) !=
               std::string_view::npos;
  };
  return has("\"opsetImport\"") || has("\"opset_import\"") || has("\"irVersion\"");
}

}  // namespace ckplan
