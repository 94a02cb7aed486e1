// The contents of an input that are known before a step: a switch, a length, a mask.
//
//   use_cache=true    sizes=2,3    mask=[[1,0],[1,1]]    scale=0.5
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

struct SetInput {
  std::string name;
  std::vector<int64_t> dims;  // Empty for one number without brackets.
  bool is_real = false;       // A number has a point or an exponent: `reals` has all of them.
  std::vector<int64_t> ints;  // Row-major; true and false are 1 and 0.
  std::vector<double> reals;

  size_t size() const { return is_real ? reals.size() : ints.size(); }
};

// As many numbers as the loader keeps of any constant.
inline constexpr size_t kMaxSetNumbers = 4096;

// kUsage: the text has no name or no value, the value is no number, lists differ in length, or
// there are too many numbers.
Result<SetInput> ParseSetInput(std::string_view text);

// Returns the text as plans store it, without blanks: "mask=[[1,0],[1,1]]", "use_cache=1".
std::string TextOf(const SetInput& input);

// Returns the shortest text that is read as this real number, and not as an integer: "0.5", "2.0".
std::string TextOfReal(double number);

}  // namespace ckplan
