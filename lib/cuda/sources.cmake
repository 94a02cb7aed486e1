# What both of the compilers see, one file a line. Paths are relative to this folder.
set(ckplan_cuda_sources
  activations.cu
  attention.cu
  attention_shape.cc
  conv.cu
  convert.cu
  cuda_backend.cu
  einsum.cu
  gru.cu
  lstm.cu
  matmul.cu
  product.cc
  recurrent.cu
  registry.cc
  unary_math.cu
)
