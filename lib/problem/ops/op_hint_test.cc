#include "lib/problem/ops/op_hint.h"

#include <doctest/doctest.h>

namespace ckplan {
namespace {

TEST_CASE("op hint: shapes, FLOPs and reads are read") {
  const OpHint like = *ParseOpHint("acme::Norm=like:0");
  CHECK(like.domain == "acme");
  CHECK(like.type == "Norm");
  CHECK(like.outputs.at(0).like == 0);
  CHECK_FALSE(like.has_reads);
  const OpHint full =
      *ParseOpHint("a.b::Top = [0.0, 1.-2, 64] | int64[] ; flops=16; reads=y0,x2,x2");
  CHECK(full.domain == "a.b");
  CHECK(full.outputs.at(0).dims.at(1).input == 1);
  CHECK(full.outputs.at(0).dims.at(1).axis == -2);
  CHECK(full.outputs.at(0).dims.at(2).size == 64);
  CHECK(full.outputs.at(1).type == "int64");
  CHECK(full.outputs.at(1).dims.empty());
  CHECK(full.flops == 16);
  CHECK(full.read_inputs == std::vector<size_t>{2});
  CHECK(full.read_outputs == std::vector<size_t>{0});
  const OpHint content = *ParseOpHint("a::R=[0.0, 1{3}]");
  CHECK(content.outputs.at(0).dims.at(1).is_content);
  CHECK(content.outputs.at(0).dims.at(1).input == 1);
  CHECK(content.outputs.at(0).dims.at(1).axis == 3);
  CHECK(ParseOpHint("Norm=like:0;reads=none")->has_reads);
  CHECK(ParseOpHint("Norm=like:0")->domain.empty());
}

TEST_CASE("op hint: what describes no operator is refused") {
  for (const char* text : {"",
                           "acme::Norm",
                           "=like:0",
                           "acme::=like:0",
                           "a::N=",
                           "a::N=like:",
                           "a::N=like:-1",
                           "a::N=like:x",
                           "a::N=[",
                           "a::N=[0.]",
                           "a::N=[-1]",
                           "a::N=[99999999999999999999]",
                           "a::N=text[1]",
                           "a::N=like:0;",
                           "a::N=like:0;flops",
                           "a::N=like:0;flops=-1",
                           "a::N=like:0;reads=",
                           "a::N=like:0;reads=z0",
                           "a::N=like:0;reads=x999",
                           "a::N=like:0|",
                           "a::N=like:0;cost=3",
                           "a::N=[1{}]",
                           "a::N=[{0}]",
                           "a::N=[1{-1}]",
                           "a::N=[1{0]",
                           "a::N=[1}{]",
                           "a::N=[300.0]"}) {
    CAPTURE(text);
    const Result<OpHint> hint = ParseOpHint(text);
    REQUIRE_FALSE(hint.ok());
    CHECK(hint.error().code == ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace ckplan
