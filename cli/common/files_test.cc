#include "cli/common/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>

#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

size_t FileCount(const TemporaryFolder& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder.path()), {}));
}

TEST_CASE("files: written files can be read back, and no other file remains") {
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

TEST_CASE("files: a full disk is reported") {
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

TEST_CASE(
    "files: a named pipe that nobody reads is an error, and with a reader it gets the bytes") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto alone = WriteFiles({{folder / "a", "one"}, {pipe, "two"}});
  REQUIRE(!alone.ok());
  CHECK(alone.error().code == ErrorCode::kIo);
  CHECK(alone.error().message ==
        "cannot write \"" + pipe + "\": nothing reads from this pipe; start the reader first");
  CHECK(FileCount(folder) == 1);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  // The pipe is opened by its own name, and as a shell names the pipe of a process substitution.
  for (const std::string& name : {pipe, "/dev/fd/" + std::to_string(reader)}) {
    CAPTURE(name);
    CHECK(WriteFiles({{folder / "a", "one"}, {name, "two"}}).ok());
    std::string got(8, '\0');
    CHECK(read(reader, got.data(), got.size()) == 3);
    CHECK(got.substr(0, 3) == "two");
  }
  close(reader);
}

TEST_CASE(
    "files: more bytes than a pipe holds are written completely, though the pipe is opened without "
    "waiting") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text(1 << 20, 'x');
  size_t count = 0;
  std::thread reader([&] {
    const int fd = open(pipe.c_str(), O_RDONLY);
    std::string part(1 << 12, '\0');
    for (ssize_t got = 1; got > 0; count += static_cast<size_t>(std::max<ssize_t>(got, 0))) {
      got = read(fd, part.data(), part.size());
    }
    close(fd);
  });
  CHECK(WriteFiles({{pipe, text}}).ok());
  reader.join();
  CHECK(count == text.size());
}

TEST_CASE("files: a symbolic link stays one, and its target gets the bytes") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "target", "old"}}).ok());
  fs::create_symlink("target", folder / "link");
  REQUIRE(WriteFiles({{folder / "link", "new"}}).ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(*ReadWholeFile(folder / "target") == "new");
}

TEST_CASE("files: an output that cannot be written is refused before the work") {
  const TemporaryFolder folder;
  CHECK(CheckWritable(folder / "a").ok());
  CHECK(CheckWritable("-").ok());
  CHECK(CheckWritable("/dev/null").ok());
  CHECK(!CheckWritable(folder / "no/a").ok());
  CHECK(!CheckWritable(folder.path().string()).ok());
}

// Returns the message of the refusal, or "" if there is none.
std::string Refusal(const std::vector<InputFile>& inputs, const std::vector<std::string>& outputs) {
  const Result<Done> checked = CheckApart(inputs, outputs);
  if (checked.ok()) return "";
  CHECK(checked.error().code == ErrorCode::kUsage);
  return checked.error().message;
}

TEST_CASE("files: an output that is an input is refused, whatever links lead there") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "net.onnx", "model"}, {folder / "costs.json", "{}"}}).ok());
  fs::create_symlink("net.onnx", folder / "symbolic.onnx");
  fs::create_symlink("symbolic.onnx", folder / "twice.onnx");
  fs::create_hard_link(folder / "net.onnx", folder / "hard.onnx");
  fs::create_directory_symlink(folder.path(), folder.path() / "here");
  const std::vector<InputFile> inputs = {{"the model", folder / "net.onnx"},
                                         {"the costs", folder / "costs.json"}};
  CHECK(Refusal(inputs, {folder / "net.onnx"}) == "refusing to overwrite the model \"" +
                                                      (folder / "net.onnx") +
                                                      "\"; name another file to write");
  for (const char* const name : {"symbolic.onnx", "twice.onnx", "hard.onnx", "./net.onnx",
                                 "here/net.onnx", "here/./hard.onnx"}) {
    CAPTURE(name);
    CHECK(Refusal(inputs, {folder / "plan.json", folder / name}) ==
          "refusing to overwrite the model \"" + (folder / "net.onnx") + "\" (\"" +
              (folder / name) + "\" is the same file); name another file to write");
  }
  CHECK(Refusal(inputs, {folder / "costs.json"}).find("the costs") != std::string::npos);
  CHECK(Refusal(inputs, {folder / "plan.json", "-", "/dev/null"}) == "");
  // A file that does not exist cannot be lost.
  CHECK(Refusal({{"the model", folder / "absent"}}, {folder / "absent"}) == "");
}

TEST_CASE("files: two outputs that are one file are refused, even before the file exists") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  fs::create_symlink("a", folder / "dangling");
  CHECK(Refusal({}, {folder / "a", folder / "a"}) ==
        "\"" + (folder / "a") + "\" is named for two outputs");
  for (const char* const name : {"./a", "sub/../a", "A", "dangling"}) {
    CAPTURE(name);
    CHECK(Refusal({}, {folder / "a", folder / name}) ==
          "\"" + (folder / "a") + "\" and \"" + (folder / name) +
              "\" are the same file; name a different file for each output");
  }
  CHECK(Refusal({}, {folder / "a", folder / "b", folder / "sub/a"}) == "");
  CHECK(Refusal({}, {"/dev/null", "/dev/null"}) == "");
  REQUIRE(WriteFiles({{folder / "b", ""}, {folder / "B", ""}}).ok());
  CHECK(Refusal({}, {folder / "b", folder / "B"}) ==
        "");  // These are two files where case matters.
  fs::create_hard_link(folder / "b", folder / "hard");
  CHECK(Refusal({}, {folder / "b", folder / "hard"}) != "");
}

TEST_CASE("files: a suggested name differs from every name in use, whatever its spelling") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "costs.json", ""}}).ok());
  fs::create_symlink(folder / "costs.json", folder / "link.json");
  CHECK(NewJsonFile("plan", {}) == "plan.json");
  CHECK(NewJsonFile("plan", {"", "net.onnx"}) == "plan.json");
  CHECK(NewJsonFile("plan", {"./plan.json"}) == "plan2.json");
  CHECK(NewJsonFile("plan", {"PLAN.json", "plan2.json"}) == "plan3.json");
  CHECK(NewJsonFile(folder / "costs", {folder / "link.json"}) == folder / "costs2.json");
}

TEST_CASE("files: a replaced file keeps its permissions; a new file has the usual ones") {
  const TemporaryFolder folder;
  const mode_t mask = umask(022);
  REQUIRE(WriteFiles({{folder / "new", "x"}}).ok());
  CHECK(fs::status(folder / "new").permissions() == fs::perms(0644));
  fs::create_symlink("new", folder / "link");
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0755), fs::perms(0666)}) {
    fs::permissions(folder / "new", mode);
    REQUIRE(WriteFiles({{folder / "link", "y"}}).ok());
    CHECK(fs::status(folder / "new").permissions() == mode);
  }
  umask(mask);
}

TEST_CASE("files: another hard link keeps the old contents") {
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "a", "old"}}).ok());
  fs::create_hard_link(folder / "a", folder / "b");
  REQUIRE(WriteFiles({{folder / "a", "new"}}).ok());
  CHECK(*ReadWholeFile(folder / "a") == "new");
  CHECK(*ReadWholeFile(folder / "b") == "old");
}

TEST_CASE("files: a symbolic link to a missing file stays a link, and its target appears") {
  const TemporaryFolder folder;
  fs::create_symlink("target", folder / "link");
  REQUIRE(WriteFiles({{folder / "link", "new"}}).ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(*ReadWholeFile(folder / "target") == "new");
}

TEST_CASE("files: a write-protected file is not replaced") {
  if (geteuid() == 0) {
    MESSAGE("SKIPPED: root may write to every file");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(WriteFiles({{folder / "a", "old"}}).ok());
  fs::permissions(folder / "a", fs::perms(0444));
  CHECK(!CheckWritable(folder / "a").ok());
}

TEST_CASE("files: files that were written elsewhere appear with the others, or not at all") {
  const TemporaryFolder folder;
  for (const bool fails : {true, false}) {
    PendingFiles pending;
    pending.push_back(std::move(PendingFile::Create(folder / "a")).value());
    REQUIRE(pending[0]->Append("one").ok());
    CHECK(FinishFiles({{fails ? "/dev/full" : folder / "b", "two"}}, pending).ok() == !fails);
    CHECK(!fs::exists(folder / "a"));
    if (!fails) CHECK(CommitFiles(pending).ok());
  }
  CHECK(*ReadWholeFile(folder / "a") == "one");
  CHECK(*ReadWholeFile(folder / "b") == "two");
}

TEST_CASE("files: reading a missing file names it") {
  const auto text = ReadWholeFile("/no/such/file");
  REQUIRE(!text.ok());
  CHECK(text.error().code == ErrorCode::kIo);
  CHECK(text.error().message == "cannot read \"/no/such/file\": No such file or directory");
}

}  // namespace
}  // namespace ckplan
