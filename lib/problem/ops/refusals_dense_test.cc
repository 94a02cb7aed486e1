// Tests which operands and attributes are rejected by convolutions, pools, recurrent layers,
// attention, products, normalisations and losses.
#include <doctest/doctest.h>

#include <array>

#include "lib/executor/testing/check_op.h"
#include "lib/problem/ops/attention.h"
#include "lib/problem/ops/sliding.h"

namespace ckplan {
namespace {

TEST_CASE("refusals: convolutions") {
  const Refusal rows[] = {
      {{"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x5x6"}, "spatial axis 0 of its output is 5"},
      {{"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x6x6", "kernel_shape=[5,5]"},
       "kernel_shape is [5,5], but the kernel of its weights is [3,3]"},
      {{"Conv", "f2x4x8x8 f4x3x3x3 -> f2x4x6x6"}, "its weight is [4,3,3,3] instead of [4,4,3,3]"},
      {{"Conv", "f2x4x8x8 f4x4 -> f2x4x6x6"}, "its weight has 2 axes and its input 4"},
      {{"Conv", "f1x1x8 f1x1x4294967296 -> f1x1x1", "dilations=[4294967296]"},
       "an entry of the kernel of its weights is 4294967296",
       kUnsupported},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "group=0"}, "attribute group is 0"},
      {{"Conv", "f2x4x8x8 f4x2x3x3 -> f2x4x6x6", "group=3"}, "attribute group is 3"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 f1 -> f2x4x6x6"}, "its bias is [1] instead of [4]"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 f0 -> f2x4x6x6"}, "its bias is [0] instead of [4]"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 i4 -> f2x4x6x6"}, "its bias is int64 instead of float32"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f3x4x6x6"}, "its output has 3 samples and its input 2"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "strides=[0,1]"}, "attribute strides is [0,1]"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "strides=[1]"}, "has 1 entries instead of 2"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "dilations=[-1,1]"}, "attribute dilations is"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "pads=[1,1]"}, "has 2 entries instead of 4"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x4x4", "pads=[-1,-1,-1,-1]"}, "attribute pads is"},
      {{"Conv", "f2x4x2x8 f4x4x3x3 -> f2x4x1x6"},
       "its window covers 3 elements, more than its input's 2"},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x6x6", "auto_pad='SAME'"}, "auto_pad is \"SAME\""},
      {{"Conv", "f2x4x8x8 f4x4x3x3 -> f2x4x5x4", "auto_pad='SAME_UPPER' strides=[2,2]"},
       "spatial axis 0 of its output is 5, but its windows give 4"},
      {{"Conv", "f2x4 f4x4 -> f2x4"}, "its input has 2 axes", kUnsupported},
      {{"Conv", "f4294967296x1x1x1 f1x1x1x1 -> f4294967296x1x1x1"}, "its batch", kUnsupported},
      {{"Conv", "i2x4x8x8 f4x4x3x3 -> f2x4x6x6"}, "input 0 is int64", kUnsupported},
      {{"Conv", "f2x0x8x8 f4x0x3x3 -> f2x4x6x6"}, "which is empty", kUnsupported},
      {{"ConvTranspose", "f2x3x4x5 f4x3x3x3 -> f2x4x6x7"}, "its weight is"},
      {{"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x7x7"}, "output is 7, but its windows give 6"},
      {{"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x6x7", "output_shape=[8,8]"},
       "output is 6, but its windows give 8"},
      {{"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x7x8", "output_padding=[1,1]"},
       "leaves room for another window",
       kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: pools") {
  const Refusal rows[] = {
      {{"MaxPool", "f2x3x7x8 -> f2x3x5x6"}, "attribute kernel_shape is missing"},
      {{"MaxPool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[3]"}, "1 entries instead of 2"},
      {{"MaxPool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[0,3]"}, "attribute kernel_shape is"},
      {{"MaxPool", "f2x3x7x8 -> f2x4x5x6", "kernel_shape=[3,3]"}, "differ in axes, samples"},
      {{"MaxPool", "f2x3x7x8 -> f2x3x5x6 i2x3x5", "kernel_shape=[3,3]"}, "its second output is"},
      {{"MaxPool", "f2x3x7x8 -> f2x3x5x6 n2x3x5x6", "kernel_shape=[3,3]"},
       "int32 instead of int64"},
      {{"MaxPool", "f1x1x3 -> f1x1x1", "kernel_shape=[7] strides=[4] ceil_mode=1"},
       "its window covers 7 elements, more than its input's 3"},
      {{"AveragePool", "f1x1x3 -> f1x1x1", "kernel_shape=[7] strides=[7]"},
       "its window covers 7 elements, more than its input's 3"},
      {{"MaxPool", "f1x1x4 -> f1x1x9", "kernel_shape=[2] pads=[3,3]"},
       "window 8 of 9 lies entirely"},
      {{"MaxPool", "f1x1x4 -> f1x1x7", "kernel_shape=[2] pads=[0,4]"},
       "window 6 of 7 lies entirely"},
      {{"MaxPool", "f1x1x1 -> f1x1x2", "kernel_shape=[2] dilations=[3] pads=[2,3] strides=[2]"},
       "window 0 of 2 lies entirely"},
      {{"AveragePool", "f2x3x8x8 -> f2x3x8x8", "kernel_shape=[3,3] dilations=[0,0]"},
       "attribute dilations is [0,0]"},
      {{"AveragePool", "f1x1x8 -> f1x1x4", "kernel_shape=[3] strides=[2] ceil_mode=0"},
       "output is 4, but its windows give 3"},
      {{"AveragePool", "f1x1x8 -> f1x1x5", "kernel_shape=[3] strides=[2] ceil_mode=1"},
       "output is 5, but its windows give 4"},
      // Rounding up would add a window that begins in the padding.
      {{"AveragePool", "f1x1x2 -> f1x1x2", "kernel_shape=[3] strides=[3] pads=[1,1] ceil_mode=1"},
       "output is 2, but its windows give 1"},
      {{"MaxPool", "f1x1x8 -> f1x1x3", "kernel_shape=[3] strides=[2] ceil_mode=1"},
       "output is 3, but its windows give 4"},
      {{"GlobalMaxPool", "f2x3x4 -> f2x3x2"}, "its output is [2,3,2] instead of [2,3,1]"},
      {{"GlobalAveragePool", "f2 -> f2"}, "differ in axes, samples"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: LSTM and GRU") {
  const Refusal rows[] = {
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 f1x1 -> f4x1x2x5"}, "its bias is [1,1] instead of [1,40]"},
      {{"LSTM", "f4x2x3 f1x4x3 f1x20x5 -> f4x1x2x5"}, "its weight is [1,4,3] instead of [1,20,3]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x19x5 -> f4x1x2x5"}, "its recurrence weight is [1,19,5]"},
      {{"LSTM", "f4x2 f1x20x3 f1x20x5 -> f4x1x2x5"}, "input 0 has 2 axes instead of 3"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x4"}, "its output is [4,1,2,4]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5 f1x2x4"}, "its last state is [1,2,4]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5 _ f2x5"}, "its last cell is [2,5]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 _ _ f1x1x5 -> f4x1x2x5"}, "its initial state is [1,1,5]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 _ _ _ f1x1x5 -> f4x1x2x5"}, "its initial cell is [1,1,5]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5", "hidden_size=6"}, "hidden_size is 6"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5", "direction='both'"}, "\"both\" instead of"},
      {{"LSTM", "f4x2x3 f2x20x3 f2x20x5 -> f4x2x2x5"}, "its weight is [2,20,3]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 _ n3=[4,4,4] -> f4x1x2x5"}, "its list of lengths is [3]"},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 _ n2=[4,3] -> f4x1x2x5"},
       "its sequence lengths are unknown or less than",
       kUnsupported},
      {{"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5", "activations='Tanh,Tanh,Tanh'"},
       "it sets its activations",
       kUnsupported},
      {{"GRU", "f4x2x3 f1x12x1 f1x12x4 -> f4x1x2x4"}, "its weight is [1,12,1] instead of"},
      {{"GRU", "f4x2x3 f1x12x3 f1x12x4 -> f4x1x2x4 _ f1x2x4"}, "a third output"},
      {{"GRU", "f4x2x3 f1x12x3 f1x12x4 -> f4x1x2x4", "layout=1"}, "layout", kUnsupported},
      {{"GRU", "f65536x65536x1 f1x3x1 f1x3x1 -> f65536x1x65536x1"},
       "steps and samples is",
       kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: recurrent layers may name the default activations") {
  const reference::CaseRow rows[] = {
      {"LSTM", "f4x2x3 f1x20x3 f1x20x5 -> f4x1x2x5", "activations='Sigmoid,Tanh,Tanh'"},
      {"LSTM", "f4x2x3 f2x20x3 f2x20x5 -> f4x2x2x5",
       "activations='Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh' direction='bidirectional'"},
      {"GRU", "f4x2x3 f1x12x3 f1x12x4 -> f4x1x2x4", "activations='Sigmoid,Tanh'"}};
  for (const reference::CaseRow& row : rows) {
    CAPTURE(row.attributes);
    CHECK(ValidateOp(SpecOf(row)).ok());
  }
}

TEST_CASE("refusals: attention") {
  const Refusal rows[] = {
      {{"Attention", "f2x3x5x4 f2x3x6x3 f2x3x6x4 -> f2x3x5x4"}, "its key is [2,3,6,3]"},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x7x4 -> f2x3x5x4"}, "its value is [2,3,7,4]"},
      {{"Attention", "f2x3x5x4 f2x2x6x4 f2x2x6x4 -> f2x3x5x4"},
       "not a multiple of its 2 key heads"},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x5"}, "its output is [2,3,5,5]"},
      {{"Attention", "f2x3x5x4 f2x6x12 f2x3x6x4 -> f2x3x5x4"}, "its queries have 4 axes"},
      {{"Attention", "f2x4 f2x4 f2x4 -> f2x4"}, "its queries have 2 axes instead of 3 or 4"},
      {{"Attention", "f2x5x12 f2x6x12 f2x6x9 -> f2x5x9", "q_num_heads=5 kv_num_heads=3"},
       "12 features, not divisible by 5 heads"},
      {{"Attention", "f2x5x12 f2x6x12 f2x6x9 -> f2x5x9", "q_num_heads=3 kv_num_heads=0"},
       "not divisible by 0 heads"},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b4x6 -> f2x3x5x4"}, "its mask is [4,6], which"},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b1x2x3x5x6 -> f2x3x5x4"}, "which cannot be"},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 i5x6 -> f2x3x5x4"},
       "its mask is int64",
       kUnsupported},
      {{"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4", "softcap=1.0"},
       "are capped",
       kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: products of matrices") {
  const Refusal rows[] = {
      {{"MatMul", "f3x4 f5x6 -> f3x6"}, "[3,4] and [5,6], which cannot be multiplied"},
      {{"MatMul", "fs f4x5 -> f5"}, "[] and [4,5], which cannot be multiplied"},
      {{"MatMul", "f2x3x4 f3x4x5 -> f2x3x5"}, "[2,3,4] and [3,4,5], which cannot be"},
      {{"MatMul", "f2x3x4 f4x5 -> f3x5"}, "its output is [3,5] instead of [2,3,5]"},
      {{"MatMul", "f3x4 f4 -> f3x1"}, "its output is [3,1] instead of [3]"},
      {{"MatMul", "i3x4 i4x5 -> i3x5"}, "input 0 is int64", kUnsupported},
      {{"MatMul", "f65536x65536x2 f2x1 -> f65536x65536x1"}, "rows of its product", kUnsupported},
      {{"MatMul", "f3x0 f0x5 -> f3x5"}, "which is empty", kUnsupported},
      {{"Gemm", "f3x4 f4x5 -> f3x5", "transA=1"}, "with transA=1 and transB=0"},
      {{"Gemm", "f3x4 f4x5 -> f5x3"}, "its output is [5,3] instead of [3,5]"},
      {{"Gemm", "f3x4 f4x5 f4 -> f3x5"}, "its third input is [4], which cannot be broadcast"},
      {{"Gemm", "f3x4 f4x5 f1x3x5 -> f3x5"}, "its third input is [1,3,5]"},
      {{"Gemm", "f2x3x4 f4x5 -> f2x3x5"}, "cannot be multiplied"},
      {{"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk,kl->il'"}, "3 terms for 2 operands"},
      {{"Einsum", "f3x4 f4x5 -> f3x5", "equation='ijk,jk->ik'"}, "\"ijk\" for an operand of 2"},
      {{"Einsum", "f3x4 f5x6 -> f3x6", "equation='ij,jk->ik'"},
       "label j for axes of sizes 4 and 5"},
      {{"Einsum", "f3x4 f4x5 -> f3x6", "equation='ij,jk->ik'"}, "its output is [3,6]"},
      {{"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk->il'"}, "result has the label l"},
      {{"Einsum", "f3 -> f3x3", "equation='i->ii'"}, "result has the label i"},
      {{"Einsum", "f3x4 -> f3", "equation='i1->i'"}, "is not made of letters"},
      {{"Einsum", "f3x4 -> f3", "equation='..i->i'"}, "is not made of letters"},
      {{"Einsum", "f1x1x1x1x1x1x1x1x1x1 -> fs", "equation='abcdefghij->'"},
       "has 10 axes",
       kUnsupported},
      {{"Einsum", "f4194304 f4194304 f4194304 -> fs", "equation='a,b,c->'"},
       "does not fit 64",
       kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: normalisations") {
  const Refusal rows[] = {
      {{"BatchNormalization", "f3x4x5 f3! f4! f4* f4* -> f3x4x5"}, "its scale is [3]"},
      {{"BatchNormalization", "f3x4x5 f4! f5! f4* f4* -> f3x4x5"}, "its bias is [5]"},
      {{"BatchNormalization", "f3x4x5 f4! f4! f5* f4* -> f3x4x5"}, "its running mean is [5]"},
      {{"BatchNormalization", "f3x4x5 f4! f4! f4* f4* -> f3x4x5 f5"}, "its second output is [5]"},
      {{"BatchNormalization", "f3x4x5 f4! f4! f4* f4* -> f3x5x4"}, "its output is [3,5,4]"},
      {{"BatchNormalization", "fs f1! f1! f1* f1* -> fs"}, "its input has no axes"},
      {{"BatchNormalization", "f3x4x5 f4 f4! f4* f4* -> f3x4x5"}, "not kept", kUnsupported},
      {{"LayerNormalization", "f2x3x8 f7! -> f2x3x8"}, "its scale is [7] instead of [8]"},
      {{"LayerNormalization", "f2x3x4 f4x3! -> f2x3x4", "axis=1"}, "its scale is [4,3]"},
      {{"LayerNormalization", "f2x3x8 f1! -> f2x3x8"},
       "its scale is [1] and is broadcast to [8]",
       kUnsupported},
      {{"LayerNormalization", "f2x3x8* f8* f8* -> f2x3x8 f2x3x8"}, "has 48 elements instead of 6"},
      {{"LayerNormalization", "f2x3x8 f8! -> f2x3x8", "axis=3"}, "axis 3"},
      {{"RMSNormalization@23", "f2x3x8 f7! -> f2x3x8"}, "its scale is [7] instead of [8]"},
      {{"GroupNormalization@21", "f2x6x4 f6! f6! -> f2x6x4", "num_groups=4"}, "num_groups is 4"},
      {{"GroupNormalization@21", "f2x6x4 f6! f6! -> f2x6x4", "num_groups=0"}, "num_groups is 0"},
      {{"GroupNormalization@21", "f2x6x4 f5! f5! -> f2x6x4", "num_groups=3"}, "its scale is [5]"},
      {{"GroupNormalization@21", "f2x6x4 f3! f3! -> f2x6x4", "num_groups=3"},
       "its scale is [3]; in opset 21 it needs one for each of its 6 channels"},
      {{"GroupNormalization@18", "f2x6x4 f6! f6! -> f2x6x4", "num_groups=3"},
       "its scale is [6]; in opset 18 it needs one for each of its 3 groups"},
      {{"InstanceNormalization", "f2x3x4 f3! f2! -> f2x3x4"}, "its bias is [2] instead of [3]"},
      {{"InstanceNormalization", "f3 f3! f3! -> f3"}, "no axis of channels"},
      {{"MeanVarianceNormalization", "f3x4x5 -> f3x4x5", "axes=[1]"}, "not adjacent", kUnsupported},
      {{"MeanVarianceNormalization", "f3x4x5 -> f3x4x5"}, "axis 3"},
      {{"LRN", "f2x7x3 -> f2x7x3", "size=0"}, "attribute size is 0"},
      {{"LRN", "f2x7x3 -> f2x7x4", "size=3"}, "its output is [2,7,4]"},
      {{"LRN", "f2 -> f2", "size=3"}, "no axis of channels"},
      {{"Softmax", "f3x7 -> f3x8"}, "its output is [3,8] instead of [3,7]"},
      {{"Softmax", "f3x7 -> f3x7", "axis=2"}, "axis 2"},
      {{"LogSoftmax", "f3x0 -> f3x0"}, "which is empty", kUnsupported},
      {{"LpNormalization", "f3x7 -> f3x7", "p=0"}, "attribute p is 0"},
      {{"LpNormalization", "f3x7 -> f3x6"}, "its output is [3,6]"},
      {{"GlobalLpPool", "f3x7x5 -> f3x7x5"}, "its output is [3,7,5] instead of [3,7,1]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: losses") {
  const Refusal rows[] = {
      {{"SoftmaxCrossEntropyLoss", "f3x5 i4 -> fs"}, "its list of labels is [4] instead of [3]"},
      {{"SoftmaxCrossEntropyLoss", "f3x5 f3~ -> fs"}, "its list of labels is float32"},
      {{"SoftmaxCrossEntropyLoss", "f3x5 i3 f4* -> fs"}, "its list of weights is [4]"},
      {{"SoftmaxCrossEntropyLoss", "f3x5 i3 -> f3"}, "its loss has 3 elements instead of 1"},
      {{"SoftmaxCrossEntropyLoss", "f3x5 i3 -> fs", "reduction='none'"}, "its loss is []"},
      {{"SoftmaxCrossEntropyLoss", "f3x5 i3 -> fs f5x3"}, "its second output is [5,3]"},
      {{"NegativeLogLikelihoodLoss", "f3x5 i3 -> fs", "reduction='max'"}, "reduction is \"max\""},
      {{"NegativeLogLikelihoodLoss", "f3 i3 -> fs"}, "its scores have no axis of classes"},
      {{"PointwiseLoss", "f3x5 f3x5 -> fs", "function='l1_loss'"}, "its function is not a loss"},
      {{"PointwiseLoss", "f3x5 f3 -> fs", "function='mse_loss'"}, "its target"},
      {{"PointwiseLoss", "f3x5 f3x5 -> f3", "function='mse_loss'"}, "its loss"},
      {{"PointwiseLoss", "f3x5 f3x5 -> fs", "function='soft_margin_loss'"},
       "only its prediction has a gradient",
       kUnsupported},
  };
  CheckRefusals(rows);
}

// A statistic must have the size that forward saves, and must exist if a gradient is requested.
TEST_CASE("refusals: fused attention") {
  const Refusal rows[] = {
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
        "batch=0 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4"},
       "its attribute batch is 0"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=2 queries=5 keys=6 size=4 value_size=4"},
       "not a multiple of its 2 key heads"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=7 size=4 value_size=4"},
       "its operand k has 144 elements instead of 2 x 3 x 7 x 4"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 q_axes='bhds'"},
       "is \"bhds\", not an order of the axes"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 y_axes='bhhd'"},
       "is \"bhhd\", not an order of the axes"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b5x6~ -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[1,1,5,5]"},
       "its mask has 30 elements as [1,1,5,5]"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 b5x6~ -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4"},
       "its mask has 30 elements as []"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 f3x5x6~ -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[3,1,5,6]"},
       "its mask has 90 elements as [3,1,5,6]"},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 i5x6 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 mask_dims=[1,1,5,6]"},
       "its mask is int64",
       kUnsupported},
      {{"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 _ f2x1x1x6 -> f2x3x5x4",
        "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4 bias_dims=[2,1,1,6]"},
       "its bias needs a gradient",
       kUnsupported},
      {{"FusedAttention", "f1x1x5x129 f1x1x6x129 f1x1x6x4 -> f1x1x5x4",
        "batch=1 heads=1 key_heads=1 queries=5 keys=6 size=129 value_size=4"},
       "129 and 4 elements, more than 128",
       kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: saved statistics") {
  const reference::CaseRow rows[] = {
      {"BatchNormalization", "f3x4x5 f4! f4! f4* f4* -> f3x4x5"},
      {"LayerNormalization", "f2x3x8 f8! -> f2x3x8"},
      {"InstanceNormalization", "f2x3x4 f3! f3! -> f2x3x4"},
      {"MaxPool", "f1x1x8 -> f1x1x6", "kernel_shape=[3]"},
      {"LSTM", "f4x2x3 f1x20x3! f1x20x5! -> f4x1x2x5"},
      {"GRU", "f4x2x3 f1x15x3! f1x15x5! -> f4x1x2x5"},
      {"Attention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4"},
      {"FusedAttention", "f2x3x5x4 f2x3x6x4 f2x3x6x4 -> f2x3x5x4",
       "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=4 value_size=4"},
  };
  for (const reference::CaseRow& row : rows) {
    CAPTURE(row.type);
    OpSpec spec = SpecOf(row);
    CHECK(ValidateOp(spec).ok());
    spec.statistic_bytes = 0;
    CheckRefusal(spec, "the values that it saves for backward are not kept", kUnsupported);
    spec.statistic_bytes = 4;
    CheckRefusal(spec, "bytes for backward, but has room for 4", kUnsupported);
    spec.statistic_bytes = 0;
    for (Operand& input : spec.inputs) input.has_gradient = false;
    CHECK(ValidateOp(spec).ok());
  }
}

// An output of indices that exists and is kept serves as the statistic.
TEST_CASE("refusals: indices that are not saved") {
  const auto check = [](const reference::CaseRow& row, std::string_view message) {
    OpSpec spec = SpecOf(row);
    spec.statistic_bytes = 0;
    spec.outputs[1].is_read_by_backward = true;
    CHECK(ValidateOp(spec).ok());
    spec.outputs[1].is_read_by_backward = false;
    CheckRefusal(spec, message, kUnsupported);
    spec.statistic_bytes = spec.outputs[1].bytes();
    CHECK(ValidateOp(spec).ok());
  };
  check({"MaxPool", "f1x1x8 -> f1x1x6 i1x1x6", "kernel_shape=[3]"},
        "the values that it saves for backward are not kept");
  check({"TopK", "f3x4 i1=[2] -> f3x2 i3x2"}, "its indices are not kept for backward");
}

TEST_CASE("dense operators: a shape describes the operands") {
  const auto mask =
      ReadAttentionShape(SpecOf({"Attention", "f2x6x5x4 f2x2x7x4 f2x2x7x3 f6x1x7* -> f2x6x5x3"}));
  REQUIRE(mask.ok());
  CHECK(mask->group() == 3);
  CHECK(mask->scores() == 35);
  CHECK(mask->value_size == 3);
  CHECK(mask->mask.strides == std::array<int64_t, 4>{0, 7, 0, 1});
  const auto pool = ReadPoolShape(SpecOf({"GlobalMaxPool", "f2x3x4x5 -> f2x3x1x1"}));
  REQUIRE(pool.ok());
  CHECK(pool->planes == 6);
  CHECK(pool->is_one_window());
}

}  // namespace
}  // namespace ckplan
