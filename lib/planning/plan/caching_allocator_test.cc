#include "lib/planning/plan/caching_allocator.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

constexpr Bytes MiBOf(int64_t count) { return Bytes(count << 20); }

TEST_CASE("caching allocator: small blocks share segments of 2 MiB, rounded up to 512 bytes") {
  CachingAllocator allocator;
  for (int i = 0; i < 4096; ++i) REQUIRE(allocator.Allocate(Bytes(1)).has_value());
  CHECK(allocator.peak_requested() == Bytes(4096));
  CHECK(allocator.peak_reserved() == MiBOf(2));
  REQUIRE(allocator.Allocate(Bytes(1)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(4));
}

TEST_CASE(
    "caching allocator: blocks below 10 MiB share segments of 20 MiB, larger ones share none") {
  CachingAllocator allocator;
  REQUIRE(allocator.Allocate(MiBOf(2)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(20));
  REQUIRE(allocator.Allocate(MiBOf(9)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(20));
  REQUIRE(allocator.Allocate(MiBOf(10) + Bytes(1)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(20) + MiBOf(12));
}

TEST_CASE("caching allocator: a large block keeps what is left of its segment up to 1 MiB") {
  CachingAllocator allocator;
  const auto first = allocator.Allocate(MiBOf(12));
  allocator.Release(*first);
  // The block is not split, so nothing is left for another one.
  REQUIRE(allocator.Allocate(MiBOf(11)).has_value());
  REQUIRE(allocator.Allocate(MiBOf(1) + Bytes(512)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(12) + MiBOf(20));
}

TEST_CASE("caching allocator: freed neighbours merge, whatever the order") {
  for (const bool is_forward : {true, false}) {
    CachingAllocator allocator;
    const auto a = allocator.Allocate(MiBOf(9));
    const auto b = allocator.Allocate(MiBOf(9));
    allocator.Release(is_forward ? *a : *b);
    allocator.Release(is_forward ? *b : *a);
    REQUIRE(allocator.Allocate(MiBOf(20)).has_value());
    CHECK(allocator.peak_reserved() == MiBOf(20));
  }
}

TEST_CASE("caching allocator: whole free segments are given back where memory ends") {
  CachingAllocator allocator(MiBOf(40));
  const auto first = allocator.Allocate(MiBOf(30));
  allocator.Release(*first);
  CHECK(allocator.Allocate(MiBOf(36)).has_value());
  CHECK(allocator.peak_reserved() == MiBOf(36));
  CHECK_FALSE(allocator.Allocate(MiBOf(6)).has_value());
}

TEST_CASE("caching allocator: a segment with a block in use is not given back") {
  CachingAllocator allocator(MiBOf(40));
  const auto first = allocator.Allocate(MiBOf(9));
  REQUIRE(allocator.Allocate(MiBOf(9)).has_value());
  allocator.Release(*first);
  CHECK_FALSE(allocator.Allocate(MiBOf(22)).has_value());
}

TEST_CASE("caching allocator: size 0 takes nothing") {
  CachingAllocator allocator(Bytes(0));
  const auto block = allocator.Allocate(Bytes(0));
  REQUIRE(block.has_value());
  allocator.Release(*block);
  CHECK(allocator.peak_reserved() == Bytes(0));
}

}  // namespace
}  // namespace ckplan
