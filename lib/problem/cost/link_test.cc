#include "lib/problem/cost/link.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace ckplan {
namespace {

std::string Links(const std::string& rows) { return R"({"links": [)" + rows + "]}"; }

TEST_CASE("link: a preset has 85 % of its nominal rate each way") {
  const Link pcie4 = ParseLink("pcie4").value();
  CHECK(pcie4 == Link{"pcie4", 26'775'000'000, 26'775'000'000, 10'000, Duplex::kFull});
  CHECK(ParseLink("pcie5").value().out_bytes_per_second == 53'550'000'000);
  // 85 % of 450 GB/s, with the time of 4,000 GB/s: 1 / (1 / 382.5 + 1 / 4000).
  CHECK(ParseLink("c2c").value().in_bytes_per_second == 349'115'000'000);
  CHECK(ParseLink("c2c").value().out_bytes_per_second == 349'115'000'000);
  CHECK(ParseLink("c2c:400").value().in_bytes_per_second == 400'000'000'000);
}

TEST_CASE("link: rates, the duplex and the latency can be said") {
  CHECK(ParseLink("pcie4:25").value() ==
        Link{"pcie4", 25'000'000'000, 25'000'000'000, 10'000, Duplex::kFull});
  CHECK(ParseLink("c2c:400/380.5").value() ==
        Link{"c2c", 400'000'000'000, 380'500'000'000, 10'000, Duplex::kFull});
  CHECK(ParseLink("pcie5:0.000000001,half,latency=0").value() ==
        Link{"pcie5", 1, 1, 0, Duplex::kHalf});
  CHECK(ParseLink("pcie5,latency=5,full").value().latency_ns == 5);
}

TEST_CASE("link: the text of a link is read as the same link") {
  for (const char* text : {"pcie4", "pcie5:50/49.999999999", "c2c:400,half",
                           "pcie4:25/24,half,latency=7", "pcie4:1000000"}) {
    CAPTURE(text);
    const Link link = ParseLink(text).value();
    CHECK(ParseLink(TextOf(link)).value() == link);
  }
  CHECK(TextOf(ParseLink("pcie4").value()) == "pcie4:26.775/26.775");
  CHECK(TextOf(ParseLink("pcie4:25,half,latency=1").value()) == "pcie4:25/25,half,latency=1");
}

TEST_CASE("link: what has not the form is refused with the form and the names") {
  for (const char* text :
       {"pcie4:", "pcie4:0", "pcie4:-1", "pcie4:25/", "pcie4:/25", "pcie4:25/25/25", "pcie4:1e3",
        "pcie4:25.", "pcie4:.5", "pcie4:0.0000000001", "pcie4:1000001", "pcie4,", "pcie4,quarter",
        "pcie4,latency=", "pcie4,latency=-1", "pcie4,latency=1000000001", "pcie4,half,"}) {
    CAPTURE(text);
    const Result<Link> link = ParseLink(text);
    REQUIRE_FALSE(link.ok());
    CHECK(link.error().code == ErrorCode::kUsage);
    CHECK(link.error().message.find("LINK[:OUT[/IN]]") != std::string::npos);
  }
  CHECK(ParseLink("pcie").error().message ==
        "no link is named \"pcie\"; did you mean \"pcie4\"? the links are pcie4, pcie5, c2c");
  CHECK(ParseLink("").error().message == "no link is named \"\"; the links are pcie4, pcie5, c2c");
}

TEST_CASE("link: a copy takes its latency and its bytes, rounded up") {
  const Link link{"pcie4", 2'000'000'000, 3, 10, Duplex::kFull};
  CHECK(link.TimeOf(CopyWay::kOut, Bytes(0)) == Cost(10));
  CHECK(link.TimeOf(CopyWay::kOut, Bytes(4)) == Cost(12));
  CHECK(link.TimeOf(CopyWay::kOut, Bytes(5)) == Cost(13));
  // From 2^33 bytes on, the computation needs more than 64 bits.
  CHECK(link.TimeOf(CopyWay::kOut, Bytes((int64_t{1} << 33) - 1)) == Cost(4'294'967'306));
  CHECK(link.TimeOf(CopyWay::kOut, Bytes(int64_t{1} << 33)) == Cost(4'294'967'306));
  CHECK(link.TimeOf(CopyWay::kOut, Bytes((int64_t{1} << 33) + 1)) == Cost(4'294'967'307));
  CHECK(link.TimeOf(CopyWay::kIn, Bytes(2)) == Cost(666'666'667 + 10));
  // At one byte per second, the nanoseconds for 2^56 bytes exceed 64 bits.
  const Link slow{"pcie4", 1, 1, 0, Duplex::kFull};
  CHECK(slow.TimeOf(CopyWay::kOut, Bytes(int64_t{1} << 56)) == kLongestCopy);
}

TEST_CASE("link: a slower link has the percentage of both rates, rounded down") {
  const Link link{"pcie4", 1001, 199, 10, Duplex::kHalf};
  CHECK(link.AtPercent(85) == Link{"pcie4", 850, 169, 10, Duplex::kHalf});
  CHECK(Link{"pcie4", 1, 1, 0, Duplex::kFull}.AtPercent(50).out_bytes_per_second == 1);
}

TEST_CASE("link: a table is refused if a row is damaged") {
  const std::string row =
      R"({"name": "a", "description": "d", "bytes_per_second": 1e9, "latency_ns": 5})";
  CHECK(ReadLinks(Links(row)).value().at(0).Default().out_bytes_per_second == 850'000'000);
  CHECK_FALSE(ReadLinks("{}").ok());
  CHECK_FALSE(ReadLinks(Links(row + "," + row)).ok());
  const std::pair<std::string, std::string> kDamages[] = {
      {"\"a\"", "\"\""}, {"1e9", "0"},        {"1e9", "2e15"},
      {"5", "-1"},       {"5", "2000000000"}, {"latency_ns", "latency"}};
  for (const auto& [part, other] : kDamages) {
    std::string damaged = row;
    damaged.replace(damaged.find(part), part.size(), other);
    CAPTURE(damaged);
    CHECK(ReadLinks(Links(damaged)).error().code == ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace ckplan
