#include <doctest/doctest.h>

#include "cli/ckbench/commands.h"

namespace ckplan {
namespace {

TEST_CASE("ckbench arena: files are read with any ids and line ends") {
  const auto intervals = ParseIntervals("id,lower,upper,size\r\nb1,0,3,4\r\n2,3,9,5", "a.csv");
  REQUIRE(intervals.ok());
  REQUIRE(intervals->size() == 2);
  CHECK((*intervals)[0].upper == 3);
  CHECK((*intervals)[0].size == 4);
  CHECK((*intervals)[1].lower == 3);
  CHECK((*intervals)[1].size == 5);
}

TEST_CASE("ckbench arena: all malformed lines are named") {
  const auto intervals = ParseIntervals(
      "id,lower,upper,size\n1,0,3\n2,4,3,1\n3,0,3,-1\n4,0,3,1\n5,0,3,1x\n6,0,3,1,2\n"
      "7,0,1,9223372036854775807\n8,0,1,99999999999999999999\n",
      "a.csv");
  REQUIRE(!intervals.ok());
  CHECK(intervals.error().message == "\"a.csv\" has 7 faulty lines");
  CHECK(intervals.error().notes.size() == 7);
  CHECK(intervals.error().notes[5] == "line 8: the sizes add up to more than 2^60 bytes");
  CHECK(!ParseIntervals("", "a.csv").ok());
  CHECK(!ParseIntervals("buffer,start,end,size\n", "a.csv").ok());
}

}  // namespace
}  // namespace ckplan
