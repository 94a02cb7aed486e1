#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>

#include "lib/base/file.h"
#include "lib/base/hash.h"
#include "lib/base/result.h"
#include "lib/base/rng.h"
#include "lib/base/text.h"
#include "lib/base/units.h"

namespace ckplan {

TEST_CASE("lower case: letters of ASCII alone change") {
  CHECK(LowerCase("Conv_1@Z[") == "conv_1@z[");
  CHECK(LowerCase("\xC3\x84") == "\xC3\x84");  // A letter with an umlaut.
  CHECK(LowerCase("").empty());
}

TEST_CASE("sha256: the vectors of FIPS 180-4, whatever the pieces") {
  CHECK(Sha256Hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(Sha256Hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  for (const size_t piece : {1, 3, 63, 64, 65, 1000}) {
    CAPTURE(piece);
    Sha256 sha;
    for (size_t at = 0; at < million.size(); at += piece) {
      sha.Update(std::string_view(million).substr(at, piece));
    }
    CHECK(sha.HexDigest() == expected);
  }
}

TEST_CASE("sha256: every length around the padding's edges has its own hash") {
  std::string previous;
  for (size_t length = 50; length < 70; ++length) {
    const std::string digest = Sha256Hex(std::string(length, 'x'));
    CHECK(digest.size() == 64);
    CHECK(digest != previous);
    previous = digest;
  }
}

TEST_CASE("checked arithmetic: overflow is an absent value") {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(CheckedAdd(kMax, 1) == std::nullopt);
  CHECK(CheckedAdd(kMax - 1, 1) == kMax);
  CHECK(CheckedMul(kMax / 2 + 1, 2) == std::nullopt);
  CHECK(CheckedMul(-3, 4) == -12);
}

TEST_CASE("rng: the same sequence everywhere") {
  Rng rng(1);
  CHECK(rng.Next() == 0x910a2dec89025cc1U);
  for (int i = 0; i < 1000; ++i) {
    const int64_t x = rng.Between(-2, 3);
    CHECK((x >= -2 && x <= 3));
  }
}

Result<int> Half(int n) {
  if (n % 2 != 0) return MakeError(ErrorCode::kUsage, "odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  CKPLAN_ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST_CASE("result: an error travels up unchanged") {
  CHECK(*Quarter(12) == 3);
  CHECK(Quarter(6).error().message == "odd");
  CHECK(Quarter(3).error().code == ErrorCode::kUsage);
}

TEST_CASE("human bytes: binary units, two decimals, halves up") {
  const struct {
    int64_t bytes;
    std::string text;
  } kRows[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1536, "1.50 KiB"},
      {(int64_t{1} << 20) - 1, "1.00 MiB"},
      {(int64_t{1} << 20) - 6, "1023.99 KiB"},
      {int64_t{16020227294}, "14.92 GiB"},
      {int64_t{1} << 41, "2.00 TiB"},
      {int64_t{1} << 56, "64.00 PiB"},
      {std::numeric_limits<int64_t>::max(), "8192.00 PiB"},
      {-2048, "-2.00 KiB"},
      {std::numeric_limits<int64_t>::min(), "-8192.00 PiB"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.bytes);
    CHECK(HumanBytes(Bytes(row.bytes)) == row.text);
  }
}

TEST_CASE("read file: a file without an end is refused at the limit") {
  const auto text = ReadWholeFile("/dev/zero");
  REQUIRE_FALSE(text.ok());
  CHECK(text.error().code == ErrorCode::kIo);
  CHECK(text.error().message.find("larger than the 256 MiB limit") != std::string::npos);
}

TEST_CASE("read file: a named pipe is read to its end although its writer is slow") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ckplan_pipe_" + std::to_string(getpid())))
          .string();
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const pid_t writer = fork();
  if (writer == 0) {
    const int fd = open(path.c_str(), O_WRONLY);
    usleep(100'000);
    const bool is_written = write(fd, "slow", 4) == 4;
    _exit(is_written ? 0 : 1);
  }
  const auto text = ReadWholeFile(path);
  waitpid(writer, nullptr, 0);
  std::filesystem::remove(path);
  REQUIRE(text.ok());
  CHECK(*text == "slow");
}

TEST_CASE("utf-8: bytes that are not UTF-8 are replaced, the rest stays") {
  CHECK(WellFormedUtf8("conv\xff/\xe2\x80\xae") == "conv\xef\xbf\xbd/\xe2\x80\xae");
}

}  // namespace ckplan
