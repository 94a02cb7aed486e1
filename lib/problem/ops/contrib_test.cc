// Operators of com.microsoft reject the operands and attributes that ONNX Runtime 1.32 rejects.
#include "lib/problem/ops/contrib.h"

#include <doctest/doctest.h>

#include <array>

#include "lib/executor/testing/check_op.h"

namespace ckplan {
namespace {

// The type without its domain, the operands without outputs, and attributes.
OpSpec ContribSpec(const reference::CaseRow& row) {
  const std::string operands = std::string(row.operands) + " -> f1";
  OpSpec spec = reference::ParseCase({"Identity", operands, row.attributes}).spec;
  spec.type = "com.microsoft." + std::string(row.type);
  return spec;
}

TEST_CASE("contrib: what contradicts itself is refused") {
  const Refusal rows[] = {
      {{"Attention", "f2x6x64 f64x192 f192", "num_heads=0"}, "attribute num_heads is 0"},
      {{"Attention", "f2x6x64 f64x192 f192"}, "attribute num_heads is missing"},
      {{"Attention", "f2x6x64 f64x192 f192", "num_heads=4.0"}, "num_heads is not a whole number"},
      {{"Attention", "f2x6x64 f64x190 f190", "num_heads=4"},
       "190 columns, which cannot be divided"},
      {{"Attention", "f2x6x64 f64x192 f192", "num_heads=5"}, "not divisible by 5 heads"},
      {{"Attention", "f2x6x64 f32x192 f192", "num_heads=4"}, "64 features, and its weight 32 rows"},
      {{"Attention", "f2x6x64 f64x192 f64", "num_heads=4"}, "its bias is [64] instead of [192]"},
      {{"Attention", "f2x6x64 f64x192 f192", "num_heads=4 qkv_hidden_sizes=[64,64,32]"},
       "qkv_hidden_sizes is [64,64,32]"},
      {{"Attention", "f2x6x64 f64x192 f192 _ f2x3x4x5x16", "num_heads=4"}, "its past is"},
      {{"Attention", "_ f64x192", "num_heads=4"}, "input 0 is missing"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x6x64", "num_heads=0"}, "num_heads is 0"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x6x64", "num_heads=7"},
       "not divisible by 7 heads"},
      {{"MultiHeadAttention", "f2x6x64 f3x6x64 f3x6x64", "num_heads=4"}, "2 samples of 64"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x5x64", "num_heads=4"}, "its values is"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x6x64 f100", "num_heads=4"}, "its bias is [100]"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x6x64 _ _ _ f3x4x3x16 f3x4x3x16", "num_heads=4"},
       "its past keys or values is [3,4,3,16]"},
      {{"MultiHeadAttention", "f2x6x64 f2x6x64 f2x6x64 _ _ _ f2x4x3x16", "num_heads=4"},
       "but not both"},
      {{"GroupQueryAttention", "f2x6x64 f2x6x32 f2x6x32", "num_heads=4 kv_num_heads=3"},
       "not a multiple of its 3"},
      {{"GroupQueryAttention", "f2x6x64 f2x6x32 f2x6x16", "num_heads=4 kv_num_heads=2"},
       "its values is [2,6,16]"},
      {{"GroupQueryAttention", "f2x6x64 f2x6x32 f2x6x32 f5x2x8x16 f5x2x8x16",
        "num_heads=4 kv_num_heads=2"},
       "its past keys or values is [5,2,8,16]"},
      {{"GroupQueryAttention", "f2x6x64", "num_heads=4611686018427387904 kv_num_heads=1"},
       "it must be smaller"},
      {{"RotaryEmbedding", "f2x6x64 i2x5 f9x8 f9x8"}, "its positions is [2,5] instead of [2,6]"},
      {{"RotaryEmbedding", "f2x6x64 i2x6 f9x8 f9x4"}, "its sine cache is"},
      {{"SkipLayerNormalization", "f2x6x64 f3x6x64 f64"}, "its skip is [3,6,64]"},
      {{"SkipLayerNormalization", "f1x6x64 f7x6x64 f64"}, "its skip is [7,6,64]"},
      {{"SkipLayerNormalization", "f2x6x64 f2x6x64 f1"}, "its scale is [1] instead of [64]"},
      {{"EmbedLayerNormalization", "n2x9 _ f30x8 f4x8 _ f8 f8"}, "9 tokens, but only 4 positions"},
      {{"EmbedLayerNormalization", "n2x3 _ f30x8 f4x6 _ f8 f8"}, "its tables have 8 and 6 columns"},
      {{"BiasGelu", "f2x6 f1"}, "its bias is [1] instead of [6]"},
      {{"BiasGelu", "f2x6"}, "input 1 is missing"},
      {{"BiasSplitGelu", "f2x3x7 f7"}, "7 features cannot be halved"},
      {{"BiasDropout", "f2x6 f6 f1x6"}, "its residual is [1,6] instead of [2,6]"},
      {{"FusedMatMul", "f2x6 f6x2", "transA=1.0"}, "attribute transA is not a whole number"},
      {{"MatMulNBits", "f2x6x64 i16x4x8 f64", "K=64 N=-32 bits=4 block_size=16"}, "N is -32"},
      {{"MatMulNBits", "f2x6x32 i16x4x8 f64", "K=64 N=16 bits=4 block_size=16"},
       "the last axis must have the 64 elements"},
      {{"MatMulNBits", "f2x6x64 i16x2x8 f64", "K=64 N=16 bits=4 block_size=16"},
       "its weight has 256 elements instead of 512"},
      {{"MatMulNBits", "f2x6x64 _ f64", "K=64 N=16 bits=4 block_size=16"}, "input 1 is missing"},
      {{"MatMulNBits", "f2x6x64 i16x4x8 f64", "K=64 N=16 bits=4 block_size=24"},
       "block_size is 24"},
      {{"MatMulNBits", "f2x6x64 i16x4x8 f64", "K=64 N=16 bits=9 block_size=16"}, "bits is 9"},
      {{"MatMulNBits", "f2x6x64 i16x4x8 f64",
        "K=1099511627776 N=1099511627776 bits=4 block_size=16"},
       "is too large"},
      {{"MatMulBnb4", "f2x64 i99 f32", "K=64 N=16 block_size=32"}, "99 elements instead of 512"},
      {{"DynamicQuantizeMatMul", "f2x32 i32x11 f12"}, "its second scale has 12 elements"},
      {{"MatMulFpQ4", "f2x64 i512 i2=[32,16]"}, "[2,64] and [32,16], which cannot be multiplied"},
      {{"DynamicQuantizeMatMul", "f2x32 i31x8 f1"}, "[2,32] and [31,8], which cannot be"},
      {{"MatMulIntegerToFloat", "i2x32 i32x8 f1 f1 _ _ f7"}, "its bias is [7] instead of [8]"},
  };
  for (const Refusal& row : rows) {
    CAPTURE(row.op.type);
    CAPTURE(row.op.operands);
    CAPTURE(row.op.attributes);
    const Result<Done> judged = ValidateContrib(ContribSpec(row.op));
    REQUIRE(!judged.ok());
    CAPTURE(judged.error().message);
    CHECK(judged.error().code == ErrorCode::kInvalidInput);
    CHECK(judged.error().message.find(row.message) != std::string::npos);
  }
}

TEST_CASE("contrib: what ONNX Runtime runs passes") {
  const reference::CaseRow rows[] = {
      {"Attention", "f2x6x64 f64x192 f192 _ f2x2x4x3x16", "num_heads=4"},
      {"Attention", "f2x6x64 f64x160 f160", "num_heads=4 qkv_hidden_sizes=[64,64,32]"},
      {"MultiHeadAttention", "f2x6x64 f2x8x64 f2x8x32", "num_heads=4"},
      {"MultiHeadAttention", "f2x6x4x3x16", "num_heads=4"},
      {"MultiHeadAttention", "f2x6x64 f2x8x4x2x16", "num_heads=4"},
      {"MultiHeadAttention", "f2x6x64 f2x4x8x16 f2x4x8x8", "num_heads=4"},
      {"GroupQueryAttention", "f2x6x128", "num_heads=4 kv_num_heads=2"},
      {"RotaryEmbedding", "f2x6x64 i1 f9x8 f9x8", ""},
      {"RotaryEmbedding", "f2x4x6x16 i2x6 f9x8 f9x8", ""},
      {"SkipLayerNormalization", "f2x6x64 f1x6x64 f64 f64 f64", ""},
      {"SkipLayerNormalization", "f2x6x64 f6x64 f64", ""},
      {"FastGelu", "f2x6", ""},
      {"MatMulNBits", "f2x6x60 i16x4x8 f16x4", "K=60 N=16 bits=4 block_size=16"},
      {"MatMulNBits", "f2x64 i16x4x16 f64", "K=64 N=16 bits=8 block_size=16"},
      {"MatMulBnb4", "f2x64 i512 f32", "K=64 N=16 block_size=32"},
      {"MatMulBnb4", "f2x64 i513 f33", "K=64 N=16 block_size=32"},
      {"DynamicQuantizeMatMul", "f2x32 i32x8 f8 _ f8", ""},
      {"MatMulIntegerToFloat", "i2x32 i32x8 f1 f8 _ _ f8", ""},
      {"NoSuchOperator", "f2", "num_heads=0"},
  };
  for (const reference::CaseRow& row : rows) {
    CAPTURE(row.type);
    CAPTURE(row.operands);
    const Result<Done> judged = ValidateContrib(ContribSpec(row));
    CHECK_MESSAGE(judged.ok(), judged.error().message);
  }
}

}  // namespace
}  // namespace ckplan
