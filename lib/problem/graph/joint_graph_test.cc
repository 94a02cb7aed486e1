#include "lib/problem/graph/joint_graph.h"

#include <doctest/doctest.h>

#include <string>

namespace ckplan {
namespace {

TEST_CASE("repeatable: searches, fused attention, random numbers and communication run once") {
  for (const char* type :
       {"topk", "aten.topk.default", "aten::topk", "TopK", "ai.onnx.TopK", "aten.sort.stable",
        "aten.argmax.default", "aten._scaled_dot_product_flash_attention.default",
        "aten._scaled_dot_product_flash_attention_for_cpu.default", "Dropout", "RandomUniformLike",
        "aten.rand_like.default", "aten.native_dropout.default", "aten.bernoulli.p",
        "RandomUniform", "_c10d_functional.all_reduce.default", "c10d::broadcast_"}) {
    CAPTURE(std::string(type));
    CHECK_FALSE(MayRepeatByType(type));
  }
}

TEST_CASE("repeatable: all other operations may run twice") {
  for (const char* type : {"", "Relu", "aten.relu.default", "aten.mm.default", "aten", "topk_gate",
                           "aten._scaled_dot_product_flash_attention_backward.default", "Softmax",
                           "Attention", "my.topk.default"}) {
    CAPTURE(std::string(type));
    CHECK(MayRepeatByType(type));
  }
}

}  // namespace
TEST_CASE("repeatable: the type says what draws random numbers") {
  for (const char* const type : {"aten.native_dropout.default", "aten.rand_like.default", "Dropout",
                                 "ai.onnx.RandomNormal"}) {
    CAPTURE(type);
    CHECK(IsRandomByType(type));
    CHECK_FALSE(MayRepeatByType(type));
  }
  for (const char* const type : {"aten.topk.default", "aten.mm.default",
                                 "aten._scaled_dot_product_flash_attention.default"}) {
    CAPTURE(type);
    CHECK_FALSE(IsRandomByType(type));
  }
}

}  // namespace ckplan
