# Programs that run on other machines: everything but the C library is linked statically.
# --as-needed drops shared libraries that are then not called, such as {fmt}.
set(Protobuf_USE_STATIC_LIBS ON)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -s)

# Kernels for several architectures are most of ckexec; compression makes them a quarter as large.
set(ckplan_nvcc_compresses $<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,13.0>)
add_compile_options(
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,${ckplan_nvcc_compresses}>:--compress-mode=size>")

# {fmt} from its headers: distributions have it as a shared library alone.
macro(ckplan_use_fmt_headers)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endmacro()
