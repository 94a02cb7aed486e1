// Input values that are known before a step: a switch, a length, a mask.
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
  std::vector<int64_t> dims;  // Empty for a single number without brackets.
  bool is_real = false;       // Some number has a point or an exponent; then all are in `reals`.
  std::vector<int64_t> ints;  // Row-major; true and false are 1 and 0.
  std::vector<double> reals;

  size_t size() const { return is_real ? reals.size() : ints.size(); }
};

// As many numbers as the loader keeps of a constant.
inline constexpr size_t kMaxSetNumbers = 4096;

// Fails with kUsage if the name or the value is missing, the value is not a number or a list, lists
// differ in length, or there are too many numbers.
Result<SetInput> ParseSetInput(std::string_view text);

// Returns the text as plans store it, without spaces: "mask=[[1,0],[1,1]]", "use_cache=1".
std::string TextOf(const SetInput& input);

// Returns the shortest text that reads as this real number and not as an integer: "0.5", "2.0".
std::string TextOfReal(double number);

}  // namespace ckplan
