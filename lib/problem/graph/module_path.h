// The modules that contain a node, derived from the path of the innermost module or from the node's
// name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

// Returns the modules on a path, the outermost first: "a", "a.b" and "a.b.c" for "a.b.c".
std::vector<std::string> ModulesOnPath(std::string_view path, char separator = '.');

// Returns each part of a node's name that ends before a slash: "/a" and "/a/b" for "/a/b/Conv".
std::vector<std::string> ModulesInName(std::string_view name);

}  // namespace ckplan
