#include "cli/common/memory_limit.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

// A system with its own files.
class System {
 public:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return folder_.path().string(); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("memory limit: the free memory is what the system reports") {
  const System system;
  CHECK(!FreeMemory(system.root()));
  system.Write("/proc/meminfo", "MemTotal:   2000 kB\nMemFree:  10 kB\nMemAvailable:   1000 kB\n");
  CHECK(FreeMemory(system.root()) == Bytes(1000 * 1024));
}

TEST_CASE("memory limit: a control group, or one around it, may leave less") {
  const System system;
  system.Write("/proc/meminfo", "MemAvailable: 1000 kB\n");
  system.Write("/proc/self/cgroup", "0::/outer/inner\n");
  system.Write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  system.Write("/sys/fs/cgroup/outer/inner/memory.current", "5000\n");
  CHECK(FreeMemory(system.root()) == Bytes(1000 * 1024));
  system.Write("/sys/fs/cgroup/outer/memory.max", "9000\n");
  system.Write("/sys/fs/cgroup/outer/memory.current", "7000\n");
  CHECK(FreeMemory(system.root()) == Bytes(2000));
  system.Write("/sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 500\n");
  CHECK(FreeMemory(system.root()) == Bytes(2500));
  system.Write("/sys/fs/cgroup/outer/inner/memory.max", "5001\n");
  CHECK(FreeMemory(system.root()) == Bytes(1));
}

TEST_CASE("memory limit: the first version of control groups") {
  const System system;
  system.Write("/proc/meminfo", "MemAvailable: 1000 kB\n");
  system.Write("/proc/self/cgroup", "9:cpu:/\n4:memory:/box\n0::/\n");
  system.Write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4000\n");
  system.Write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3000\n");
  CHECK(FreeMemory(system.root()) == Bytes(1000));
}

TEST_CASE("memory limit: a limit that is no size is refused") {
  CHECK(LimitMemory("much").error().code == ErrorCode::kUsage);
}

// Sets a soft limit while it lives.
class SoftLimit {
 public:
  SoftLimit(decltype(RLIMIT_AS) resource, rlim_t bytes) : resource_(resource) {
    REQUIRE(getrlimit(resource_, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(setrlimit(resource_, &limit) == 0);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { setrlimit(resource_, &before_); }

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
};

TEST_CASE("memory limit: an inherited limit that is tighter is the one that messages name") {
  if (!kCanLimitMemory) return;
  constexpr rlim_t kTebibyte = rlim_t{1} << 40;
  {
    const SoftLimit space(RLIMIT_AS, 512 * kTebibyte);
    CHECK(DescribeMemoryLimit().limit == "the limit on address space of 549755813888 KiB");
    CHECK(DescribeMemoryLimit().setting == "ulimit -v");
    CHECK(MemoryLimit());
    const SoftLimit data(RLIMIT_DATA, 2 * kTebibyte);
    CHECK(DescribeMemoryLimit().limit == "the limit on the data segment of 2147483648 KiB");
    CHECK(DescribeMemoryLimit().setting == "ulimit -d");
    CHECK(MemoryLimit() == Bytes(int64_t{2} << 40));
    CHECK(LimitMemory("4TiB").ok());
    CHECK(DescribeMemoryLimit().setting == "ulimit -d");
    CHECK(LimitMemory("1TiB").ok());
    CHECK(DescribeMemoryLimit().limit == "the memory limit of 1.00 TiB");
    CHECK(DescribeMemoryLimit().setting == "--memory-limit");
  }
}

}  // namespace
}  // namespace ckplan
