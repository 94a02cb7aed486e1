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

include(CheckCXXSourceCompiles)
# ckplan_support_older_glibc(TARGETS...): lets programs start with an older C library than they were linked with, from GNU's 2.28 on.
# cli/common/older_glibc.cc says how; the names of its functions are read from there.
function(ckplan_support_older_glibc)
  check_cxx_source_compiles("
    #include <features.h>
    #if !defined __x86_64__ || !defined __GLIBC__ || !__GLIBC_PREREQ(2, 29)
    #error There is nothing to do.
    #endif
    int main() {}" CKPLAN_HAS_NEWER_GLIBC)
  if(NOT CKPLAN_HAS_NEWER_GLIBC)
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/cli/common/older_glibc.cc)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} lines REGEX "^(CKPLAN_OLDEST|CKPLAN_HIDDEN [a-z0-9_]+ __wrap_)")
  set(wraps)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "(CKPLAN_OLDEST\\(|__wrap_)([a-z0-9_]+)" unused "${line}")
    list(APPEND wraps -Wl,--wrap=${CMAKE_MATCH_2})
  endforeach()
  foreach(target IN LISTS ARGN)
    target_sources(${target} PRIVATE ${source})
    # Older C libraries keep threads in a separate library.
    target_link_options(${target} PRIVATE ${wraps}
      "SHELL:-Wl,--push-state,--no-as-needed -l:libpthread.so.0 -Wl,--pop-state")
  endforeach()
endfunction()
