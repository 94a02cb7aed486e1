#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"Conv", "f2x3x8x7 f4x3x3x3 -> f2x4x6x5"},
    {"Conv", "f2x3x8x7 f4x3x3x3 f4 -> f2x4x8x7", "pads=[1,1,1,1] kernel_shape=[3,3]"},
    {"Conv", "f1x2x9x9 f3x2x3x3 f3 -> f1x3x5x5", "pads=[1,1,1,1] strides=[2,2]"},
    {"Conv", "f1x2x9x8 f3x2x3x2 -> f1x3x5x7", "pads=[0,1,2,0] strides=[2,1] dilations=[1,2]"},
    {"Conv", "f2x4x5x5 f6x2x3x3 f6 -> f2x6x5x5", "group=2 pads=[1,1,1,1]"},
    {"Conv", "f2x5x6x6 f5x1x3x3 -> f2x5x6x6", "group=5 pads=[1,1,1,1]"},
    {"Conv", "f2x16x6x6 f16x1x3x3 -> f2x16x3x3", "group=16 pads=[1,1,1,1] strides=[2,2]"},
    {"Conv", "f1x4x6x6 f8x1x3x3 -> f1x8x6x6", "group=4 pads=[1,1,1,1]"},
    {"Conv", "f3x5x4x4 f6x5x1x1 f6 -> f3x6x4x4"},
    {"Conv", "f3x5x12x12 f4x5x1x1 f4 -> f3x4x12x12"},  // Large enough for a matrix product.
    {"Conv", "f2x5x6x6 f4x5x1x1 -> f2x4x3x3", "strides=[2,2]"},
    {"Conv", "f2x3x7x8 f4x3x3x3 -> f2x4x4x4", "auto_pad='SAME_UPPER' strides=[2,2]"},
    {"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x4x4", "auto_pad='SAME_LOWER' strides=[2,2]"},
    {"Conv", "f2x3x8x8 f4x3x3x3 -> f2x4x6x6", "auto_pad='VALID'"},
    {"Conv", "f2x3x11 f4x3x3 f4 -> f2x4x6", "pads=[1,1] strides=[2]"},
    {"Conv", "f1x2x4x5x6 f3x2x2x3x2 f3 -> f1x3x3x5x5", "pads=[0,1,0,0,1,0]"},
    {"Conv", "f1x3x3x4x4 f3x1x2x2x2 -> f1x3x2x3x3", "group=3"},
    {"Conv", "f2x8x9x20 f8x4x3x3 -> f2x8x9x20", "group=2 pads=[1,1,1,1]"},
    {"Conv", "f2x6x9x10 f6x1x5x5 f6 -> f2x6x5x5", "group=6 pads=[2,2,2,2] strides=[2,2]"},
    {"Conv", "f2x6x9x10 f6x1x7x7 -> f2x6x9x10", "group=6 pads=[3,3,3,3]"},
    {"Conv", "f2x4x9x10 f8x2x2x3 -> f2x8x8x8", "group=2 dilations=[2,1] pads=[1,0,0,0]"},
    {"Conv", "f2x4x5x6x7 f4x2x2x3x3 -> f2x4x4x4x3", "group=2 strides=[1,1,2]"},
    {"Conv", "f3x5x1x1 f6x5x1x1! f6! -> f3x6x1x1"},
    {"Conv", "f2x3x8x7~ f4x3x3x3! -> f2x4x6x5"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 f4 -> f2x4x6x7"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x7x9", "strides=[2,2] pads=[1,1,1,1]"},
    {"ConvTranspose", "f2x3x4x5 f3x4x3x3 -> f2x4x8x10",
     "strides=[2,2] pads=[1,1,1,1] output_padding=[1,1]"},
    {"ConvTranspose", "f1x4x4x4 f4x3x2x2 f6 -> f1x6x8x8", "strides=[2,2] group=2"},
    {"ConvTranspose", "f1x3x4x4 f3x1x3x3 -> f1x3x8x6", "group=3 dilations=[2,1] pads=[0,0,0,0]"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] auto_pad='SAME_UPPER'"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] auto_pad='SAME_LOWER'"},
    {"ConvTranspose", "f1x3x4x4 f3x2x3x3 -> f1x2x8x8", "strides=[2,2] output_shape=[8,8]"},
    {"ConvTranspose", "f1x3x5 f3x2x4 -> f1x2x12", "strides=[2]"},
    {"ConvTranspose", "f1x2x2x3x2 f2x3x2x2x2 -> f1x3x3x4x3"},
    {"ConvTranspose", "f2x3x12x12 f3x4x1x1 f4 -> f2x4x12x12"},
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[3,3]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[2,2] strides=[2,2] ceil_mode=1"},
    {"MaxPool", "f1x2x9x9 -> f1x2x5x3", "kernel_shape=[3,3] dilations=[2,3]"},
    {"MaxPool", "f1x2x9x9 -> f1x2x5x5", "kernel_shape=[2,2] strides=[2,2] auto_pad='SAME_LOWER'"},
    {"MaxPool", "f2x3x9 -> f2x3x4", "kernel_shape=[3] strides=[2]"},
    {"MaxPool", "f1x2x4x5x4 -> f1x2x3x4x3", "kernel_shape=[2,2,2]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6 i2x3x5x6", "kernel_shape=[3,3]"},
    {"MaxPool", "f2x3x7x8 -> f2x3x5x6 i2x3x5x6", "kernel_shape=[3,3] storage_order=1"},
    {"AveragePool", "f2x3x7x8 -> f2x3x5x6", "kernel_shape=[3,3]"},
    {"AveragePool", "f2x3x7x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"AveragePool", "f2x3x7x8 -> f2x3x4x4",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1"},
    {"AveragePool", "f2x3x8x8 -> f2x3x5x5",
     "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1 ceil_mode=1"},
    {"AveragePool", "f2x3x8x8 -> f2x3x4x4", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1"},
    {"AveragePool", "f1x2x9x9 -> f1x2x9x9", "kernel_shape=[4,4] auto_pad='SAME_UPPER'"},
    {"AveragePool", "f1x2x9x9 -> f1x2x5x3", "kernel_shape=[3,3] dilations=[2,3]"},
    {"AveragePool", "f2x3x9 -> f2x3x4", "kernel_shape=[3] strides=[2]"},
    {"AveragePool", "f1x2x4x5x4 -> f1x2x3x4x3", "kernel_shape=[2,2,2]"},
    {"MaxPool", "f1x1x3x300 -> f1x1x2x150", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"AveragePool", "f1x1x3x300 -> f1x1x2x150", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"GlobalAveragePool", "f2x3x5x4 -> f2x3x1x1"},
    {"GlobalAveragePool", "f2x3x7 -> f2x3x1"},
    {"GlobalMaxPool", "f2x3x5x4 -> f2x3x1x1"},
    {"GlobalMaxPool", "f2x3x2x3x4 -> f2x3x1x1x1"},
};

}  // namespace

std::span<const CaseRow> ConvCases() { return kRows; }

}  // namespace ckplan::reference
