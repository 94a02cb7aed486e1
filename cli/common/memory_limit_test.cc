#include "cli/common/memory_limit.h"

#include <doctest/doctest.h>

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
  CHECK(!MemoryLimit());
}

}  // namespace
}  // namespace ckplan
