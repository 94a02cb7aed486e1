# What both of the compilers see, one file a line. Paths are relative to this folder.
set(ckplan_cuda_sources
  activations.cu
  cuda_backend.cu
  elements.cu
  gather.cu
  generate.cu
  join.cu
  move.cu
  pad.cu
  registry.cc
  resize.cu
  reverse.cu
  running_sum.cu
  separable.cu
  strided_copy.cu
  unary_math.cu
)
