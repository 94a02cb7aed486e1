// Tests which operands and attributes are rejected by elementwise operators, reductions, data
// movements, generators, gathering, resizing, rotary embeddings, and by every operator.
#include <doctest/doctest.h>

#include "lib/executor/testing/check_op.h"

namespace ckplan {
namespace {

TEST_CASE("refusals: sizes that no machine can hold, and operators of no family") {
  const Refusal rows[] = {
      {{"Relu", "f4194304x4194304x4194304 -> f4194304x4194304x4194304"}, "more than", kUnsupported},
      {{"Relu", "f0x4194304x4194304x4194304 -> f0"}, "more than", kUnsupported},
      {{"Relu", "f2x-1 -> f2x-1"}, "negative size: [2,-1]"},
      {{"Blend", "f2 -> f2"}, "it has no kernel for this operator", kUnsupported},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: elementwise operators of one input") {
  const Refusal rows[] = {
      {{"Relu", "f2x3 -> f2x4"}, "its output is [2,4] instead of [2,3]"},
      {{"Relu", "_ -> f2"}, "input 0 is missing"},
      {{"Relu", "f2 -> i2"}, "its output is int64 instead of float32"},
      {{"Relu", "b2 -> b2"}, "its input is boolean", kUnsupported},
      {{"Sigmoid", "i2 -> i2"}, "only floats are supported", kUnsupported},
      {{"LeakyRelu", "f2 -> f2", "alpha=-0.1"},
       "cannot compute the gradient from its output",
       kUnsupported},
      {{"Celu", "f2 -> f2", "alpha=0.0"},
       "cannot compute the gradient from its output",
       kUnsupported},
      {{"Selu", "f2 -> f2", "gamma=0.0"},
       "cannot compute the gradient from its output",
       kUnsupported},
      {{"Gelu", "f2 -> f2", "approximate='erf'"}, "\"erf\" instead of none or tanh"},
      {{"Exp", "i2 -> i2"}, "only floats are supported", kUnsupported},
      {{"Neg", "b2 -> b2"}, "its input is boolean", kUnsupported},
      {{"IsNaN", "f2 -> i2"}, "its output is int64 instead of bool"},
      {{"Not", "i2 -> i2"}, "its input is int64 instead of bool"},
      {{"Clip", "f2 f2=[0,1] -> f2"}, "its lower limit has 2 elements instead of 1"},
      {{"Clip", "f2 _ is=[1] -> f2"}, "its upper limit is int64 instead of float32"},
      {{"Clip", "f2 fs~ -> f2"}, "its limits are computed during the step", kUnsupported},
      {{"Clip@6", "i2 -> i2", "min=1.0"}, "its limits are float attributes"},
      {{"Cast", "f2 -> i3"}, "its output is [3] instead of [2]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: elementwise operators of several inputs") {
  const Refusal rows[] = {
      {{"Add", "f2x3 f4 -> f2x3"}, "input 1 is [4], which cannot be broadcast to [2,3]"},
      {{"Add", "f2x3 f3 -> f2x4"}, "its output is [2,4] instead of [2,3]"},
      {{"Add", "f2x3 f5x2x3 -> f2x3"}, "its output is [2,3] instead of [5,2,3]"},
      {{"Add", "f2 _ -> f2"}, "input 1 is missing"},
      {{"Add", "f2 i2 -> f2"}, "its second input is int64 instead of float32"},
      {{"Add", "b2 b2 -> b2"}, "its first input is boolean", kUnsupported},
      {{"Mod", "f2 f2 -> f2"}, "attribute fmod is 0", kUnsupported},
      {{"Pow", "f2 i2 -> f2"}, "its exponent has another element type", kUnsupported},
      {{"PRelu", "i2 i2 -> i2"}, "only floats are supported", kUnsupported},
      {{"Sum", "-> f2"}, "it has no inputs"},
      {{"Sum", "f2 f2 _ -> f2"}, "input 2 is missing"},
      {{"Sum", "i2 i2 -> i2"}, "only floats are supported", kUnsupported},
      {{"Max", "f2 f3 -> f2"}, "input 1 is [3], which cannot be broadcast to [2]"},
      {{"Max", "f2 i2 -> f2"}, "input 1 is int64 instead of float32"},
      {{"Equal", "f2 f2 -> f2"}, "its output is float32 instead of bool"},
      {{"Less", "f2 i2 -> b2"}, "its second input is int64 instead of float32"},
      {{"BitwiseAnd", "f2 f2 -> f2"}, "its first input is float32 instead of int32 or int64"},
      {{"Where", "f2 f2 f2 -> f2"}, "its condition is float32 instead of bool"},
      {{"Where", "b2 f2 f3 -> f2"}, "input 2 is [3], which cannot be broadcast to [2]"},
      {{"Where", "b2 f2 i2 -> f2"}, "its second choice is int64 instead of float32"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: reductions, running sums, extremes") {
  const Refusal rows[] = {
      {{"ReduceSum", "f2x3 i1=[2] -> f2x1"}, "axis 2 is out of range for rank 2"},
      {{"ReduceSum", "f2x3 i1=[1] -> f2x3"}, "its output is [2,3] instead of [2,1]"},
      {{"ReduceSum", "f2x3 i1=[1] -> f2x1", "keepdims=0"}, "its output is [2,1] instead of [2]"},
      {{"ReduceSum", "f2x3 i1 -> f2x1"},
       R"(its input "axes" is computed during the step)",
       kUnsupported},
      {{"ReduceL2", "i2x3 i1=[1] -> i2x1"}, "only floats are supported", kUnsupported},
      {{"ReduceMax", "b2x3 i1=[1] -> b2x1"}, "its input is boolean", kUnsupported},
      {{"CumSum", "f2x3 is=[2] -> f2x3"}, "axis 2 is out of range for rank 2"},
      {{"CumSum", "f2x3 i2=[0,1] -> f2x3"}, "it must have exactly one axis"},
      {{"CumSum", "f2x3 is=[0] -> f2x4"}, "its output is [2,4] instead of [2,3]"},
      {{"ArgMax", "f2x3 -> i2x3"}, "its output is [2,3] instead of [1,3]"},
      {{"ArgMax", "f2x3 -> n1x3"}, "its output is int32 instead of int64"},
      {{"ArgMin", "f2x3 -> i1x3", "axis=-3"}, "axis -3 is out of range for rank 2"},
      {{"ArgMax", "f0x3 -> i1x3"}, "axis 0 is empty"},
      {{"Hardmax", "i2x3 -> i2x3"}, "only floats are supported", kUnsupported},
      {{"TopK", "f2x7 i1=[8] -> f2x8 i2x8"}, "it selects 8 of the 7 elements of axis 1"},
      {{"TopK", "f2x7 i1=[-1] -> f2x3 i2x3"}, "it selects -1 of the 7 elements of axis 1"},
      {{"TopK", "f2x7 i1=[3] -> f2x4 i2x3"}, "its output of values is [2,4] instead of [2,3]"},
      {{"TopK", "f2x7 i1=[3] -> f2x3 i2x2"}, "its output of indices is [2,2] instead of [2,3]"},
      {{"TopK", "f2x7 i1=[3] -> f2x3 n2x3"}, "its output of indices is int32 instead of int64"},
      {{"TopK", "f2x7 i1=[3] -> _ _"}, "its output must have 2 axes"},
      {{"ReverseSequence", "f4x3 i2 -> f4x3"}, "its list of lengths has 2 elements instead of 3"},
      {{"ReverseSequence", "f4x3 n3 -> f4x3"}, "its list of lengths is int32 instead of int64"},
      {{"ReverseSequence", "f4x3x2 i3 -> f4x3x2", "time_axis=2"}, "are not the first two"},
      {{"ReverseSequence", "f4 i4 -> f4"}, "are not the first two of its 1 axes"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: movement") {
  const Refusal rows[] = {
      {{"Reshape", "f2x3 i1=[7] -> f7"}, "its output has 7 elements instead of 6"},
      {{"Identity", "f2 -> i2"}, "its output is int64 instead of float32"},
      {{"Transpose", "f4x2 -> f4x4", "perm=[0,0]"}, "attribute perm names axis 0 twice"},
      {{"Transpose", "f4x2 -> f4", "perm=[0]"}, "names 1 axes of an input of 2"},
      {{"Transpose", "f4x2 -> f4x2", "perm=[1,0]"}, "its output is [4,2] instead of [2,4]"},
      {{"Slice", "f5 i1=[1] i1=[4] -> f4"}, "4 elements along axis 0, but the slice has 3"},
      {{"Slice", "f5 i1=[1] i1~ -> f5"}, "5 elements along axis 0, but the slice has 4"},
      {{"Slice", "f5 i1=[1] i1=[4] i1=[0] i1=[0] -> f3"}, "its step of axis 0 is 0"},
      {{"Slice", "f5 i1=[4] i1=[0] i1=[0] i1=[-2] -> f3"}, "but the slice has 2"},
      {{"Slice", "f5x5 i2=[1,1] i2=[4,4] i2=[0,-2] -> f3x5"}, "it slices axis 0 twice"},
      {{"Slice", "f5 i1=[1] i2=[4,5] -> f3"}, "axes and steps differ in length"},
      {{"Slice", "f5 i1=[1] i1=[4] i1=[1] -> f3"}, "axis 1 is out of range for rank 1"},
      {{"Slice", "f5 i1=[0] i1=[5] -> f5x1"}, "its output has 2 axes and its input 1"},
      {{"Slice", "f5x6 i1=[1] i1=[4] -> f3x7"}, "7 elements along axis 1"},
      {{"DepthToSpace", "f1x8x2x2 -> f1x2x4x6", "blocksize=2"}, "blocks of 2 x 2 of [1,2,4,6]"},
      {{"DepthToSpace", "f1x9x2x2 -> f1x2x4x4", "blocksize=2"}, "are not [1,9,2,2]"},
      {{"DepthToSpace", "f1x8x2x2 -> f1x2x4x4", "blocksize=0"}, "attribute blocksize is 0"},
      {{"DepthToSpace", "f8x2x2 -> f2x4x4", "blocksize=2"}, "not both [batch, channels"},
      {{"DepthToSpace", "f1x8x2x2 -> f1x2x4x4", "blocksize=2 mode='RCD'"}, "instead of DCR or CRD"},
      {{"SpaceToDepth", "f1x2x5x4 -> f1x8x2x2", "blocksize=2"}, "are not [1,8,2,2]"},
      {{"Expand", "f3 i1=[4] -> f4"}, "its input is [3], which cannot be broadcast"},
      {{"Expand", "f2x3 i1=[3] -> f3"}, "its input is [2,3], which cannot be broadcast"},
      {{"Tile", "f2x3 i2=[1,2] -> f2x7"}, "output [2,7] is not a tiling of input [2,3]"},
      {{"Tile", "f2 i1=[2] -> f2x2"}, "its output has 2 axes and its input 1"},
      {{"Tile", "f0 i1=[2] -> f2"}, "not a tiling"},
      {{"Concat", "f2x3 f2x4 -> f2x8", "axis=1"}, "its parts have 7 elements along axis 1"},
      {{"Concat", "f2x3 f2x4 -> f2x6", "axis=1"}, "its parts have at least 7 elements"},
      {{"Concat", "f2x3 f3x4 -> f2x7", "axis=1"}, "part 1 is [3,4] instead of [2,4]"},
      {{"Concat", "f2x3 f4 -> f2x7", "axis=1"}, "part 1 is [4] instead of [2,7]"},
      {{"Concat", "f2x3 i2x4 -> f2x7", "axis=1"}, "part 1 is int64 instead of float32"},
      {{"Concat", "f2x3 f2x4 -> f2x7", "axis=2"}, "axis 2 is out of range for rank 2"},
      {{"Split", "f2x6 -> f2x2 f2x5", "axis=1"}, "its parts have at least 7 elements along axis 1"},
      {{"Split", "f2x6 -> f2x2 f2x3", "axis=1"}, "its parts have 5 elements along axis 1"},
      {{"Split", "f2x6 -> f2x2 _", "axis=1"}, "its size is unknown", kUnsupported},
      {{"Split", "f2x6 -> f3x2 f2x4", "axis=1"}, "part 0 is [3,2] instead of [2,2]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: generated and random tensors") {
  const Refusal rows[] = {
      {{"ConstantOfShape", "i1=[2] -> f2", "value={1.0,2.0}"}, "attribute value is not one number"},
      {{"ConstantOfShape", "i1=[2] -> f2", "value={1}"}, "the type of attribute value differs"},
      {{"ConstantOfShape", "i1=[2] -> i2", "value={1.5}"}, "the type of attribute value differs"},
      {{"Shape", "f2x3 -> i3"}, "its output has 3 elements instead of 2"},
      {{"Shape", "f2x3 -> n2"}, "its output is int32 instead of int64"},
      {{"Size", "f2x3 -> i2"}, "its output has 2 elements instead of 1"},
      {{"Range", "is is i2 -> i5"}, "its step has 2 elements instead of 1"},
      {{"Range", "is is ns -> i5"}, "its step is int32 instead of int64"},
      {{"Range", "bs bs bs -> b5"}, "its output is boolean", kUnsupported},
      {{"OneHot", "i4 is=[3] f2 -> f4x4"}, "its output is [4,4] instead of [4,3]"},
      {{"OneHot", "i4 is f2 -> f5x3"}, "its output is [5,3] instead of [4,3]"},
      {{"OneHot", "i4 is=[3] f3 -> f4x3"}, "its pair of values has 3 elements instead of 2"},
      {{"OneHot", "i4 is=[3] i2 -> f4x3"}, "its pair of values is int64 instead of float32"},
      {{"OneHot", "i4 is=[3] f2 -> f4x3", "axis=2"}, "axis 2 is out of range for rank 2"},
      {{"OneHot", "b4 is=[3] f2 -> f4x3"}, "its tensor of indices is boolean", kUnsupported},
      {{"EyeLike", "f3 -> f3"}, "its input has 1 axes instead of 2"},
      {{"EyeLike", "f3x4 -> f4x4"}, "its output is [4,4] instead of [3,4]"},
      {{"Trilu", "f4 -> f4"}, "its input has 1 axes instead of 2 or more"},
      {{"Trilu", "f4x4 i2=[1,2] -> f4x4"}, "its k is not one number"},
      {{"Trilu", "f4x4 is -> f4x4"}, R"(its input "k" is computed during the step)", kUnsupported},
      {{"Dropout", "f4 -> f3"}, "its output is [3] instead of [4]"},
      {{"Dropout", "f4 -> f4 b3"}, "its mask is [3] instead of [4]"},
      {{"Dropout", "f4 -> f4 f4"}, "its mask is float32; it must be bool in opset 20"},
      {{"Dropout@9", "f4 -> f4 b4"}, "its mask is bool; it must be of its input's type in opset 9"},
      {{"Dropout", "f4 fs=[1.5] -> f4"}, "its ratio is 1.5"},
      {{"Dropout@10", "f4 -> f4", "ratio=nan"}, "its ratio is nan"},
      {{"Dropout", "f4 fs -> f4"}, "its ratio is computed during the step", kUnsupported},
      {{"Dropout", "i4 -> i4"}, "only floats are supported", kUnsupported},
      {{"RandomNormal", "-> i4"}, "only floats are supported", kUnsupported},
      {{"RandomUniformLike", "f4 -> f3"}, "its output is [3] instead of [4]"},
      {{"Bernoulli", "i4 -> b4"}, "only floats are supported", kUnsupported},
      {{"Bernoulli", "f4 -> b5"}, "its output is [5] instead of [4]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: gathering and scattering") {
  const Refusal rows[] = {
      {{"Gather", "f5x3 i4 -> f4x4"}, "its output is [4,4] instead of [4,3]"},
      {{"Gather", "f5x3 i4 -> f4x3", "axis=2"}, "axis 2 is out of range for rank 2"},
      {{"Gather", "f5x3 f4 -> f4x3"}, "its tensor of indices is float32 instead of int32 or int64"},
      {{"Gather", "f0x3 i4 -> f4x3"}, "it has 4 indices into data without rows, [0,3]"},
      {{"GatherND", "f3x4 i5x3 -> f5"}, "its tuples have 3 indices, and its data has 2 axes"},
      {{"GatherND", "f3x4 i5x0 -> f5x3x4"}, "its tuples have 0 indices"},
      {{"GatherND", "f3x4 is -> f4"}, "are too many for data [3,4] and indices []"},
      {{"GatherND", "f3x4 i3x1 -> f3", "batch_dims=-1"}, "attribute batch_dims is -1"},
      {{"GatherND", "f3x4 i3x1 -> f3", "batch_dims=2"}, "2 batch axes are too many"},
      {{"GatherND", "f3x4 i2x1 -> f2", "batch_dims=1"}, "differ in batch axis 0"},
      {{"GatherND", "f3x4 i5x1 -> f5x3"}, "its output is [5,3] instead of [5,4]"},
      {{"ScatterND", "f5x3 i2x1 f3x3 -> f5x3"}, "its tensor of updates is [3,3] instead of [2,3]"},
      {{"ScatterND", "f5x3 i2x1 f2x3 -> f5x4"}, "its output is [5,4] instead of [5,3]"},
      {{"ScatterND", "f5 i2x1 i2 -> f5"}, "its tensor of updates is int64 instead of float32"},
      {{"ScatterND", "f5~ i2x1 f2~ -> f5", "reduction='avg'"}, "\"avg\" instead of none, add"},
      {{"ScatterND", "f5 i2x1 f2 -> f5", "reduction='mul'"},
       "the gradient of reduction \"mul\" is not supported",
       kUnsupported},
      {{"ScatterND", "b5 i2x1 b2 -> b5", "reduction='add'"}, "is boolean", kUnsupported},
      {{"GatherElements", "f3x4 i3 -> f3"}, "its indices have 1 axes and its data 2"},
      {{"GatherElements", "f3x4 i3x5 -> f3x5"}, "reach beyond its data [3,4] along axis 1"},
      {{"GatherElements", "f3x4 i2x4 -> f3x4"}, "its output is [3,4] instead of [2,4]"},
      {{"ScatterElements", "f3x4 i2x5 f2x5 -> f3x4"}, "reach beyond its data [3,4] along axis 1"},
      {{"ScatterElements", "f3x4 i2x4 f2x3 -> f3x4"},
       "its tensor of updates is [2,3] instead of [2,4]"},
      {{"ScatterElements", "f3x4 i2x4 f2x4 -> f2x4"}, "its output is [2,4] instead of [3,4]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: resizing and padding") {
  const Refusal rows[] = {
      {{"Resize", "f3x4 _ f2=[2,2] -> f6"}, "its output has 1 axes and its input 2"},
      {{"Resize", "f3x4 _ f2=[2,2] -> f6x9"}, "its output has 9 elements along axis 1"},
      {{"Resize", "f3x4 _ f3=[1,2,2] -> f6x8"}, "it has 3 scales instead of 2"},
      {{"Resize", "f3x4 _ f2=[2,0] -> f6x0"}, "its scale along axis 1 is 0"},
      {{"Resize", "f3x4 _ f2=[2,nan] -> f6x8"}, "its scale along axis 1 is nan"},
      {{"Resize", "f3 _ f1=[1e-30] -> f3", "mode='linear' antialias=1"},
       "its output has 3 elements"},
      {{"Resize", "f3x4 f4=[0,0,1,1] -> f6x8"}, "it has neither scales nor sizes"},
      {{"Resize", "f3x4 _ _ i1=[6] -> f6x8"}, "it has 1 sizes instead of 2"},
      {{"Resize", "f3 _ _ i1=[6] -> f7"}, "its output has 7 elements along axis 0"},
      {{"Resize", "f3 _ f1 -> f6"}, "its scales are computed during the step", kUnsupported},
      {{"Resize", "f3 _ f1=[2] -> f6", "mode='area'"}, "no kernel for mode", kUnsupported},
      {{"Resize", "f3 _ f1=[2] -> f6", "nearest_mode='up'"}, "nearest_mode \"up\"", kUnsupported},
      {{"Resize", "i3 _ f1=[2] -> i6", "mode='linear'"}, "only floats are supported", kUnsupported},
      {{"Resize", "f3 f1=[0] _ i1=[3] -> f3",
        "coordinate_transformation_mode='tf_crop_and_resize'"},
       "it has 1 bounds of a region instead of 2"},
      {{"Resize", "f3 f2=[0,inf] _ i1=[3] -> f3",
        "coordinate_transformation_mode='tf_crop_and_resize'"},
       "is out of range for its kernel",
       kUnsupported},
      {{"Resize", "f268435456 _ f1=[1] -> f268435456"}, "is longer than", kUnsupported},
      {{"Pad", "f2x3 i4=[0,1,2,3] -> f4x8"},
       "pads 1 and 3 of axis 1 do not produce 8 elements from 3"},
      {{"Pad", "f2x3 i4=[0,1,2,3] -> f4"}, "its output has 1 axes and its input 2"},
      {{"Pad", "f2 i2=[9223372036854775807,1] -> f2"}, "do not produce 2 elements from 2"},
      {{"Pad", "f2 i2=[-9223372036854775808,0] -> f2"}, "do not produce 2 elements from 2"},
      {{"Pad", "f2x3 i3=[0,1,2] -> f4x7"}, "it has 3 pads for 2 axes"},
      {{"Pad", "f2x3 i4 -> f4x7"}, R"(its input "pads" is computed during the step)", kUnsupported},
      {{"Pad", "f2 i2=[1,1] f2 -> f4"}, "its constant value has 2 elements instead of 1"},
      {{"Pad", "f2 i2=[1,1] bs -> f4"}, "its constant value is bool instead of float32"},
      {{"Pad", "f2 i2=[1,1] -> f4", "mode='mirror'"}, "\"mirror\" instead of constant"},
      {{"CenterCropPad", "f5x6 i2=[3,9] -> f3"}, "its output has 1 axes and its input 2"},
      {{"CenterCropPad", "f5 i1=[3] -> i3"}, "its output is int64 instead of float32"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: blocks of images") {
  const Refusal rows[] = {
      {{"Col2Im", "f1x5x5 i2=[5,5] -> f1x1x5x5"}, "input 2 is missing"},
      {{"Col2Im", "i1x5x5 i2=[5,5] i2=[1,5] -> i1x1x5x5"}, "only floats", kUnsupported},
      {{"Col2Im", "f1x5x5 n2=[5,5] i2=[1,5] -> f1x1x5x5"}, "its image_shape is int32"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2 -> f1x1x5x5"},
       R"(its input "block_shape" is computed during the step)",
       kUnsupported},
      {{"Col2Im", "f1x2x1 i4=[1,1,1,2] i4=[1,1,1,2] -> f1x1x1x1x1x2"},
       "its image_shape has 4 axes; 1 to 3 are supported",
       kUnsupported},
      {{"Col2Im", "f1x5x5 i2=[5,5] i1=[5] -> f1x1x5x5"}, "its block_shape has 1 entries instead"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2=[0,5] -> f1x1x5x5"}, "each entry must be at least 1"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2=[1,5] -> f1x1x5x5", "strides=[1,0]"}, "attribute strides"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2=[1,5] -> f1x1x5x5", "pads=[1,1]"},
       "attribute pads has 2 entries instead of 4"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2=[4294967296,4294967296] -> f1x1x5x5"},
       "an entry of its block_shape is 4294967296",
       kUnsupported},
      {{"Col2Im", "f1x6x5 i2=[5,5] i2=[1,6] -> f1x1x5x5"}, "its window covers 6 elements"},
      {{"Col2Im", "f5x5 i2=[5,5] i2=[1,5] -> f1x1x5x5"}, "its input is [5,5] instead of [batch"},
      {{"Col2Im", "f1x7x5 i2=[5,5] i2=[1,5] -> f1x1x5x5"}, "is 7, which is not a multiple of"},
      {{"Col2Im", "f1x5x6 i2=[5,5] i2=[1,5] -> f1x1x5x5"}, "has 6 blocks, but its image has [5,1]"},
      {{"Col2Im", "f1x5x5 i2=[5,5] i2=[1,5] -> f1x2x5x5"}, "is [1,2,5,5] instead of [1,1,5,5]"},
  };
  CheckRefusals(rows);
}

TEST_CASE("refusals: rotary embeddings") {
  const Refusal rows[] = {
      {{"RotaryEmbedding@23", "f2x3x8 f2x3x4 f2x3x4 -> f2x3x8"}, "num_heads is 0"},
      {{"RotaryEmbedding@23", "f2x4x3x8 f2x3x4 f2x3x3 -> f2x4x3x8"},
       "its sine cache is [2,3,3] instead of [2,3,4]"},
      {{"RotaryEmbedding@23", "f2x4x3x8 f2x4x3 f2x3x4 -> f2x4x3x8"},
       "its cosine cache is [2,4,3] instead of [2,3,4]"},
      {{"RotaryEmbedding@23", "f2x4x3x8 f1x3x4 f1x3x4 -> f2x4x3x8"},
       "its cosine cache is shared by all samples",
       kUnsupported},
      {{"RotaryEmbedding@23", "f2x4x3x8 f9x4 f9x4 i2x2 -> f2x4x3x8"},
       "its list of positions is [2,2] instead of [2,3]"},
      {{"RotaryEmbedding@23", "f2x4x3x8 f2x3x4 i2x3x4 -> f2x4x3x8"},
       "its sine cache is int64",
       kUnsupported},
      {{"RotaryEmbedding@23", "f2x4x3x8 f2x3x4 f2x3x4 -> f2x4x3x9"}, "instead of [2,4,3,8]"},
  };
  CheckRefusals(rows);
}

}  // namespace
}  // namespace ckplan
