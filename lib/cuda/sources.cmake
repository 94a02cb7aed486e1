# What both of the compilers see, one file a line. Paths are relative to this folder.
set(ckplan_cuda_sources
  activations.cu
  cuda_backend.cu
  batch_norm.cu
  extremes.cu
  group_norm.cu
  layer_norm.cu
  lp_norms.cu
  lrn.cu
  mean_variance_norm.cu
  reduce.cu
  reduce_integers.cu
  registry.cc
  softmax.cu
  unary_math.cu
)
