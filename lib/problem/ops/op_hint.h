// How a user describes an operator that ckplan doesn't know, in one line of text:
//
//   acme::Norm=like:0                           the output has the type and shape of input 0
//   acme::Mul=[0.0,0.-2,64];flops=128;reads=x0  two axes of input 0, and 64; 128 FLOPs for each
//                                               element of the output; backward reads input 0
//   acme::Top=like:0|int64[0.0,5];reads=none    two outputs; backward reads nothing
//   acme::Linear=[0.*,@N]                       all axes of input 0 but the last, and the number in
//                                               the node's attribute N
//   acme::Resize=[0.0,1{0},1{1}]                one axis of input 0, and two numbers that input 1
//                                               holds
//
// Without `flops` it costs the movement of its bytes; without `reads` backward reads everything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

struct OpHint {
  struct Dim {
    int64_t input = -1;            // Below 0: the dimension is `size`.
    int64_t axis = 0;              // Of that input; counted from the end if it is negative.
    bool is_all_but_last = false;  // All axes of that input but the last.
    bool is_content = false;       // The number at position `axis` of that input's contents.
    int64_t size = 0;
    std::string attribute;  // If it is not empty, the node has the size in this attribute.
  };
  struct OutputRule {
    int64_t like = -1;  // The input whose type and shape it has; below 0: `dims`.
    std::string type;   // "int64"; empty for the type of the first input.
    std::vector<Dim> dims;
  };
  std::string domain;
  std::string type;
  std::vector<OutputRule> outputs;  // The last one stands for all further outputs.
  int64_t flops = 0;                // For each element of the first output.
  bool has_reads = false;
  std::vector<size_t> read_inputs;  // With `has_reads`.
  std::vector<size_t> read_outputs;
};

// kUsage: the text has not the form above.
Result<OpHint> ParseOpHint(std::string_view text);

// Returns the text without blanks, as plans store it.
std::string CanonicalOpHint(std::string_view text);

// By these attributes, an OpSpec has the `flops` and `reads` of a hint.
inline constexpr std::string_view kHintedFlops = "ckplan.flops";
inline constexpr std::string_view kHintedInputs = "ckplan.reads_inputs";
inline constexpr std::string_view kHintedOutputs = "ckplan.reads_outputs";

}  // namespace ckplan
