# What both of the compilers see, one file a line. Paths are relative to this folder.
set(ckplan_cuda_sources
  activations.cu
  cuda_backend.cu
  extremes.cu
  layer_norm.cu
  lp_norms.cu
  reduce.cu
  reduce_integers.cu
  registry.cc
  softmax.cu
  unary_math.cu
)
