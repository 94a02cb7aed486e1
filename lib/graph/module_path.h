// The modules that a node is in, by the path of the innermost or by the node's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

// The modules on a path, the outermost first: "a", "a.b" and "a.b.c" of "a.b.c".
std::vector<std::string> ModulesOnPath(std::string_view path, char separator = '.');

// What stands before each slash of a node's name: "/a" and "/a/b" of "/a/b/Conv".
std::vector<std::string> ModulesInName(std::string_view name);

}  // namespace ckplan
