// Parses a user's description of an unknown operator:
//
//   acme::Norm=like:0                           the output has the type and shape of input 0
//   acme::Mul=[0.0,0.-2,64];flops=128;reads=x0  two axes of input 0, and 64; 128 FLOPs per output
//                                               element; backward reads input 0
//   acme::Top=like:0|int64[0.0,5];reads=none    two outputs; backward reads nothing
//   acme::Linear=[0.*,@N]                       all axes of input 0 except the last, and the node's
//                                               attribute N
//   acme::Resize=[0.0,1{0},1{1}]                one axis of input 0, and the first two elements of
//                                               input 1
//
// Without `flops`, the cost is the memory traffic; without `reads`, backward reads everything.
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
    int64_t input = -1;            // Negative: the dimension is `size`.
    int64_t axis = 0;              // Of that input; counts from the end if negative.
    bool is_all_but_last = false;  // All axes of that input except the last.
    bool is_content = false;       // Element `axis` of that input's contents.
    int64_t size = 0;
    std::string attribute;  // If not empty, the attribute of the node that holds the size.
  };
  struct OutputRule {
    int64_t like = -1;  // The input with the same type and shape. Negative: see `dims`.
    std::string type;   // For example "int64"; empty for the type of the first input.
    std::vector<Dim> dims;
  };
  std::string domain;
  std::string type;
  std::vector<OutputRule> outputs;  // The last rule also applies to further outputs.
  int64_t flops = 0;                // Per element of the first output.
  bool has_reads = false;
  std::vector<size_t> read_inputs;  // Used with `has_reads`.
  std::vector<size_t> read_outputs;
};

// kUsage: the text does not have the form above.
Result<OpHint> ParseOpHint(std::string_view text);

// Returns the text without blanks, as plans store it.
std::string CanonicalOpHint(std::string_view text);

// The attributes of an OpSpec that hold the `flops` and `reads` of a hint.
inline constexpr std::string_view kHintedFlops = "ckplan.flops";
inline constexpr std::string_view kHintedInputs = "ckplan.reads_inputs";
inline constexpr std::string_view kHintedOutputs = "ckplan.reads_outputs";

}  // namespace ckplan
