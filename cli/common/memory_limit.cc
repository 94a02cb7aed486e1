#include "cli/common/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>

#include "cli/common/size_arg.h"
#include "lib/base/human_bytes.h"
#include "lib/base/read_file.h"

namespace ckplan {
namespace {

std::optional<Bytes> limit_in_force;
char limit_text[32] = "";

// Returns the number after the first `key` at the beginning of the text or of one of its lines.
std::optional<int64_t> NumberAfter(std::string_view text, std::string_view key) {
  size_t at = 0;
  while (!text.substr(at).starts_with(key)) {
    at = text.find('\n', at);
    if (at++ == std::string_view::npos) return std::nullopt;
  }
  at = text.find_first_not_of(" \t", at + key.size());
  if (at == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (fault != std::errc()) return std::nullopt;
  return number;
}

std::optional<int64_t> NumberIn(const std::string& path, std::string_view key = "") {
  const Result<std::string> text = ReadWholeFile(path);
  return text.ok() ? NumberAfter(*text, key) : std::nullopt;
}

// The places and names of the figures of one version of control groups.
struct GroupFiles {
  std::string_view line;  // How the group's line in /proc/self/cgroup begins.
  std::string_view folder;
  std::string_view limit;
  std::string_view used;
  std::string_view cache;  // The part of `used` that is reclaimed first, in memory.stat.
};
constexpr GroupFiles kGroupVersions[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "}};

// Returns the name of this process's group, or nothing if this version is not in use.
std::optional<std::string> GroupName(const std::string& groups, const GroupFiles& files) {
  for (size_t begin = 0; begin < groups.size();) {
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string_view line = std::string_view(groups).substr(begin, end - begin);
    const size_t found = line.find(files.line);
    if (found != std::string_view::npos) return std::string(line.substr(found + files.line.size()));
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<int64_t> FreeInGroup(const std::string& folder, const GroupFiles& files) {
  const auto number = [&](std::string_view file, std::string_view key) {
    return NumberIn(folder + "/" + std::string(file), key);
  };
  const std::optional<int64_t> limit = number(files.limit, "");
  const std::optional<int64_t> used = number(files.used, "");
  if (!limit || !used) return std::nullopt;
  return std::max<int64_t>(0, *limit - *used + number("memory.stat", files.cache).value_or(0));
}

// Returns the least free memory of this process's group and of the groups around it, which also
// bind it.
std::optional<int64_t> FreeInGroups(const std::string& root) {
  std::optional<int64_t> least;
  const Result<std::string> groups = ReadWholeFile(root + "/proc/self/cgroup");
  if (!groups.ok()) return least;
  for (const GroupFiles& files : kGroupVersions) {
    std::optional<std::string> name = GroupName(*groups, files);
    while (name) {
      const auto free = FreeInGroup(root + std::string(files.folder) + *name, files);
      if (free) least = std::min(*free, least.value_or(*free));
      const size_t slash = name->rfind('/');
      if (slash == std::string::npos) break;
      name->resize(slash);
    }
  }
  return least;
}

}  // namespace

std::optional<Bytes> FreeMemory(const std::string& root) {
  constexpr int64_t kKibibyte = 1024;
  const std::optional<int64_t> system = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  const std::optional<int64_t> group = FreeInGroups(root);
  if (!system) return group ? std::optional(Bytes(*group)) : std::nullopt;
  const int64_t available = *system * kKibibyte;
  return Bytes(std::min(available, group.value_or(available)));
}

Result<Done> LimitMemory(const std::optional<std::string>& given) {
  std::optional<Bytes> limit;
  if (given) {
    CKPLAN_ASSIGN_OR_RETURN(limit, ParseSize(*given, "--memory-limit"));
  } else if (const std::optional<Bytes> free = FreeMemory()) {
    limit = Bytes(free->count() / 4 * 3);
  }
  rlimit allowed{};
  if (!limit || !kCanLimitMemory || getrlimit(RLIMIT_DATA, &allowed) != 0) return Done{};
  allowed.rlim_cur = std::min(static_cast<rlim_t>(limit->count()), allowed.rlim_max);
  const std::string text = HumanBytes(*limit);
  if (setrlimit(RLIMIT_DATA, &allowed) != 0) return Done{};
  limit_in_force = limit;
  limit_text[text.copy(limit_text, sizeof(limit_text) - 1)] = '\0';
  return Done{};
}

std::optional<Bytes> MemoryLimit() { return limit_in_force; }

std::string_view MemoryLimitText() { return limit_text; }

}  // namespace ckplan
