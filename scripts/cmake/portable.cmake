# Programs that run on other machines are linked statically, except to the C library and to libraries that
# only exist as shared ones (HiGHS and oneDNN, which the Python package contains). --as-needed drops shared
# libraries that are then not called, such as {fmt}. --exclude-libs keeps linked-in symbols private to the
# program. Otherwise a shared library that uses the C++ library would get the program's copy of some
# functions, and its own copy of the others. --gc-sections leaves out functions that nothing calls.
set(Protobuf_USE_STATIC_LIBS ON)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--exclude-libs,ALL -Wl,--gc-sections -s)

# Most of ckexec is kernels for several architectures; compression makes them a quarter as large.
set(ckplan_nvcc_compresses $<VERSION_GREATER_EQUAL:$<CUDA_COMPILER_VERSION>,13.0>)
add_compile_options(
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,${ckplan_nvcc_compresses}>:--compress-mode=size>")

# {fmt} is used from its headers, because distributions only have it as a shared library.
macro(ckplan_use_fmt_headers)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endmacro()

include(${PROJECT_SOURCE_DIR}/scripts/cmake/older_glibc.cmake)
