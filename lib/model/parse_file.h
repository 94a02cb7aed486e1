// From a file to a ModelProto without its large weights: `.onnx` binary, `.onnxtxt` (ONNX's own
// text) and protobuf text.
#pragma once

#include <memory>
#include <string>

#include "lib/base/result.h"
#include "onnx/onnx_pb.h"

namespace ckplan {

struct ParsedFile {
  std::unique_ptr<onnx::ModelProto> proto = std::make_unique<onnx::ModelProto>();
  // The hash of the file's bytes without ckplan's own markers: an annotated model is the same
  // model. Where the file is above 16 MiB, also without the contents of tensors above 4 KiB.
  std::string sha256;
};

Result<ParsedFile> ParseModelFile(const std::string& path);

// By its name; all others are binary.
bool IsTextModel(const std::string& path);

Error NotOnnx(const std::string& path, std::string_view why);

}  // namespace ckplan
