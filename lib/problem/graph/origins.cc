#include "lib/problem/graph/origins.h"

namespace ckplan {

namespace {

// Returns each prefix of the path that ends before a separator.
std::vector<std::string> PrefixesOf(std::string_view path, char separator) {
  std::vector<std::string> prefixes;
  for (size_t at = path.find(separator, 1); at != std::string_view::npos;
       at = path.find(separator, at + 1)) {
    prefixes.emplace_back(path.substr(0, at));
  }
  return prefixes;
}

}  // namespace

std::vector<std::string> ModulesOnPath(std::string_view path, char separator) {
  std::vector<std::string> modules = PrefixesOf(path, separator);
  if (!path.empty()) modules.emplace_back(path);
  return modules;
}

std::vector<std::string> ModulesInName(std::string_view name) { return PrefixesOf(name, '/'); }

}  // namespace ckplan
