// Reads a file into a ModelProto without its large weights: `.onnx` (binary), `.onnxtxt` (ONNX's
// text format) or protobuf text.
#pragma once

#include <memory>
#include <string>

#include "lib/base/result.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct ParsedFile {
  std::unique_ptr<onnx::ModelProto> proto = std::make_unique<onnx::ModelProto>();
  std::string sha256;  // From GraphHash.
};

Result<ParsedFile> ParseModelFile(const std::string& path);

// Decided by the file's name. All other files are binary.
bool IsTextModel(const std::string& path);

Error NotOnnx(const std::string& path, std::string_view why);
Error NestedTooDeep(const std::string& path);

}  // namespace ckplan
