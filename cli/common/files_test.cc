#include "cli/common/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

size_t FileCount(const TemporaryFolder& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder.path()), {}));
}

TEST_CASE("files: what is written is read back, and nothing else is left behind") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "a", "one"}, {folder / "b", ""}}).ok());
  CHECK(*ReadWholeFile(folder / "a") == "one");
  CHECK(*ReadWholeFile(folder / "b") == "");
  REQUIRE(WriteFiles({{folder / "a", "two"}}).ok());
  CHECK(*ReadWholeFile(folder / "a") == "two");
  CHECK(FileCount(folder) == 2);
}

TEST_CASE("files: when one of them cannot be written, none is") {
  const TemporaryFolder folder;
  const auto done = WriteFiles({{folder / "a", "one"}, {folder / "no/such/b", "two"}});
  REQUIRE(!done.ok());
  CHECK(done.error().code == ErrorCode::kIo);
  CHECK(done.error().message.find("no/such/b") != std::string::npos);
  CHECK(FileCount(folder) == 0);
}

TEST_CASE("files: a full disk is told") {
  const auto done = WriteFiles({{"/dev/full", "x"}});
  REQUIRE(!done.ok());
  CHECK(done.error().message.find("No space left") != std::string::npos);
}

TEST_CASE("files: a device is written to, not replaced") {
  REQUIRE(WriteFiles({{"/dev/null", "x"}}).ok());
  struct stat status {};
  REQUIRE(stat("/dev/null", &status) == 0);
  CHECK(S_ISCHR(status.st_mode));
}

TEST_CASE("files: a symbolic link stays one, and its target gets the bytes") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "target", "old"}}).ok());
  fs::create_symlink("target", folder / "link");
  REQUIRE(WriteFiles({{folder / "link", "new"}}).ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(*ReadWholeFile(folder / "target") == "new");
}

TEST_CASE("files: an output that cannot be written is known before the work") {
  const TemporaryFolder folder;
  CHECK(CheckWritable(folder / "a").ok());
  CHECK(CheckWritable("-").ok());
  CHECK(CheckWritable("/dev/null").ok());
  CHECK(!CheckWritable(folder / "no/a").ok());
  CHECK(!CheckWritable(folder.path().string()).ok());
}

TEST_CASE("files: reading what is not there names it") {
  const auto text = ReadWholeFile("/no/such/file");
  REQUIRE(!text.ok());
  CHECK(text.error().code == ErrorCode::kIo);
  CHECK(text.error().message == "cannot read \"/no/such/file\": No such file or directory");
}

}  // namespace
}  // namespace ckplan
