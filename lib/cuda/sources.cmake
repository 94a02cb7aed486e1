# What both of the compilers see, one file a line. Paths are relative to this folder.
set(ckplan_cuda_sources
  activations.cu
  binary.cu
  clip_cast.cu
  cuda_backend.cu
  logic.cu
  losses.cu
  nary.cu
  random.cu
  registry.cc
  rotary.cu
  top_k.cu
  unary_math.cu
)
