# Programs that run on other machines: everything but the C library, and what there is as a shared
# library alone (HiGHS and oneDNN, which the Python package has beside them), is linked statically.
# --as-needed drops shared libraries that are then not called, such as {fmt}. --exclude-libs keeps
# all that is linked in to the program itself: otherwise a shared library that calls the C++ library
# would be given the program's copy of some of its functions, and its own of the others.
set(Protobuf_USE_STATIC_LIBS ON)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--exclude-libs,ALL -s)

# Kernels for several architectures are most of ckexec; compression makes them a quarter as large.
set(ckplan_nvcc_compresses $<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,13.0>)
add_compile_options(
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,${ckplan_nvcc_compresses}>:--compress-mode=size>")

# {fmt} from its headers: distributions have it as a shared library alone.
macro(ckplan_use_fmt_headers)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endmacro()

include(${PROJECT_SOURCE_DIR}/scripts/cmake/older_glibc.cmake)
