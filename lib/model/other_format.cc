#include "lib/model/other_format.h"

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

std::optional<OtherFormat> OtherFormatOf(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr size_t kSizeBytes = 8;
  if (bytes.starts_with("PK\x03\x04")) {
    constexpr size_t kHeadBytes = 4096;
    const bool is_torch = bytes.substr(0, kHeadBytes).find("data.pkl") != std::string_view::npos;
    if (is_torch) return OtherFormat{"a PyTorch file (.pt) without a graph in ONNX", kExport};
    return OtherFormat{"a zip archive", "unpack it and name the .onnx file in it"};
  }
  if (bytes.starts_with("\x80\x02\x8a\x0a"sv)) return OtherFormat{"an old PyTorch file", kExport};
  if (bytes.starts_with("GGUF")) return OtherFormat{"weights in GGUF, without a graph", kExport};
  if (bytes.size() > kSizeBytes && bytes.substr(kSizeBytes).starts_with("{\"") &&
      bytes.substr(4, 4) == "\0\0\0\0"sv) {
    return OtherFormat{"weights in safetensors, without a graph", kExport};
  }
  if (bytes.size() > kSizeBytes && bytes.substr(4).starts_with("TFL3")) {
    return OtherFormat{"a TensorFlow Lite model",
                       "convert it with `python -m tf2onnx.convert --tflite FILE --output "
                       "model.onnx` and name model.onnx"};
  }
  if (bytes.starts_with("\x89HDF\r\n")) {
    return OtherFormat{"an HDF5 file, as Keras writes", "export the model to ONNX with tf2onnx"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> OtherFormatText(std::string_view bytes) {
  if (IsOnnxInJson(bytes)) return std::string(kOnnxInJson);
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
