// Reads a file into a ModelProto without its large weights: `.onnx` (binary), `.onnxtxt` (ONNX's
// own text) or protobuf text.
#pragma once

#include <memory>
#include <string>

#include "lib/base/result.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct ParsedFile {
  std::unique_ptr<onnx::ModelProto> proto = std::make_unique<onnx::ModelProto>();
  // The hash of the file's bytes without ckplan's markers, so that annotating a model does not
  // change its hash. For files above 16 MiB, contents of tensors above 4 KiB are left out as well.
  std::string sha256;
};

Result<ParsedFile> ParseModelFile(const std::string& path);

// Decided by the name of the file; all other files are binary.
bool IsTextModel(const std::string& path);

Error NotOnnx(const std::string& path, std::string_view why);

}  // namespace ckplan
