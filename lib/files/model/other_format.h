// Recognises files that users often pass instead of an ONNX model: weights, and models of other
// programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ckplan {

// Returns what the file is and what to do: "weights in GGUF, without a graph; export ..."; nullopt
// if its first bytes match no other format.
std::optional<std::string> OtherFormatText(std::string_view bytes);

// True if the text is an ONNX model as JSON. Large lists may precede its keys, so both the
// beginning and the end are searched.
bool IsOnnxInJson(std::string_view text);

// What to do with such a file.
inline constexpr std::string_view kOnnxInJson =
    "an ONNX model in JSON; convert it with python -c \"import onnx; "
    "onnx.save(onnx.load('m.json', format='json'), 'm.onnx')\" and name m.onnx";

}  // namespace ckplan
