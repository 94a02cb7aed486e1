// Recognises files that are often named in place of an ONNX model: weights, and models of other
// programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ckplan {

// Returns what the file is and what to do: "weights in GGUF, without a graph; export ..."; nothing
// if its first bytes are those of no other format.
std::optional<std::string> OtherFormatText(std::string_view bytes);

// Returns whether the text is an ONNX model as JSON. Large lists may stand before its keys, so the
// beginning and the end are searched.
bool IsOnnxInJson(std::string_view text);

// What to do with such a file.
inline constexpr std::string_view kOnnxInJson =
    "an ONNX model in JSON; convert it with python -c \"import onnx; "
    "onnx.save(onnx.load('m.json', format='json'), 'm.onnx')\" and name m.onnx";

}  // namespace ckplan
