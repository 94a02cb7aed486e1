// An empty folder for a test, removed with its contents when the object is destroyed.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace ckplan {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // mkdtemp(3) requires six X and replaces them with a unique suffix.
    std::string name = (std::filesystem::temp_directory_path() / "ckplan_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace ckplan
