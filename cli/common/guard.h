// The last line of defence of every program: what escapes from it still ends with an exit code.
#pragma once

#include <functional>
#include <string_view>

namespace ckplan {

// Runs `program` and returns its exit status; an exception ends it with a message and code 70,
// memory that runs out with code 3.
int RunGuarded(std::string_view name, const std::function<int()>& program);

}  // namespace ckplan
