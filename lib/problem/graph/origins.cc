#include "lib/problem/graph/origins.h"

namespace ckplan {

namespace {

// Returns each beginning of the path that ends before a separator.
std::vector<std::string> BeginningsOf(std::string_view path, char separator) {
  std::vector<std::string> beginnings;
  for (size_t at = path.find(separator, 1); at != std::string_view::npos;
       at = path.find(separator, at + 1)) {
    beginnings.emplace_back(path.substr(0, at));
  }
  return beginnings;
}

}  // namespace

std::vector<std::string> ModulesOnPath(std::string_view path, char separator) {
  std::vector<std::string> modules = BeginningsOf(path, separator);
  if (!path.empty()) modules.emplace_back(path);
  return modules;
}

std::vector<std::string> ModulesInName(std::string_view name) { return BeginningsOf(name, '/'); }

}  // namespace ckplan
