#include "cli/common/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "cli/common/size_arg.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr int64_t kKibibyte = 1024;

// The limit that LimitMemory has set.
std::optional<Bytes> own_limit;
char own_limit_text[32] = "";
// The text of a limit, made in place because memory may have run out.
char limit_text[64] = "";

std::optional<int64_t> SoftLimit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

// Address space that counts for RLIMIT_AS but not for RLIMIT_DATA: code, files, shared memory.
int64_t SpaceBesideData() {
  char text[256];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof(text));
  close(file);
  // The figures are pages: size, resident, shared, text, lib, data.
  constexpr int kSize = 0, kData = 5;
  int64_t size = 0, data = 0;
  const char* at = text;
  const char* const end = text + std::max<ssize_t>(length, 0);
  for (int figure = 0; figure <= kData && at < end; ++figure) {
    int64_t pages = 0;
    at = std::from_chars(at, end, pages).ptr;
    while (at < end && *at == ' ') ++at;
    if (figure == kSize) size = pages;
    if (figure == kData) data = pages;
  }
  return std::max<int64_t>(0, size - data) * sysconf(_SC_PAGESIZE);
}

// What a limit is called, what raises it, and how many bytes of data it leaves.
struct LimitInForce {
  std::string_view name;
  std::string_view setting;
  int64_t bytes = 0;
  int64_t data_bytes = 0;
  bool is_own = false;
};

std::optional<LimitInForce> FindTightestLimit() {
  std::optional<LimitInForce> tightest;
  const auto consider = [&tightest](const LimitInForce& limit) {
    if (!tightest || limit.data_bytes < tightest->data_bytes) tightest = limit;
  };
  if (own_limit) {
    consider({"the memory limit of ", "--memory-limit", own_limit->count(), own_limit->count(),
              /*is_own=*/true});
  }
  if (const auto data = SoftLimit(RLIMIT_DATA);
      data && (!own_limit || *data < own_limit->count())) {
    consider({"the limit on the data segment of ", "ulimit -d", *data, *data});
  }
  if (const auto space = SoftLimit(RLIMIT_AS)) {
    consider({"the limit on address space of ", "ulimit -v", *space,
              std::max<int64_t>(0, *space - SpaceBesideData())});
  }
  return tightest;
}

// Appends to `limit_text` without allocating memory.
void AppendToLimitText(std::string_view text) {
  const size_t used = std::string_view(limit_text).size();
  const size_t copied = text.copy(limit_text + used, sizeof(limit_text) - 1 - used);
  limit_text[used + copied] = '\0';
}

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
  // A tighter limit that the process inherits stays.
  allowed.rlim_cur = std::min(static_cast<rlim_t>(limit->count()), allowed.rlim_cur);
  const std::string text = HumanBytes(*limit);
  if (setrlimit(RLIMIT_DATA, &allowed) != 0) return Done{};
  own_limit = limit;
  own_limit_text[text.copy(own_limit_text, sizeof(own_limit_text) - 1)] = '\0';
  return Done{};
}

std::optional<Bytes> MemoryLimit() {
  const std::optional<LimitInForce> limit = FindTightestLimit();
  return limit ? std::optional(Bytes(limit->data_bytes)) : std::nullopt;
}

MemoryLimitWords DescribeMemoryLimit() {
  const std::optional<LimitInForce> limit = FindTightestLimit();
  if (!limit) return {};
  limit_text[0] = '\0';
  AppendToLimitText(limit->name);
  if (limit->is_own) {
    AppendToLimitText(own_limit_text);
  } else {
    // The shell's ulimit takes and prints kibibytes.
    char digits[24];
    const char* const end =
        std::to_chars(std::begin(digits), std::end(digits), limit->bytes / kKibibyte).ptr;
    AppendToLimitText({digits, static_cast<size_t>(end - digits)});
    AppendToLimitText(" KiB");
  }
  return {limit_text, limit->setting};
}

}  // namespace ckplan
