# Lets programs start with an older C library than they were linked with, from GNU's 2.28 on.
# cli/common/older_glibc.cc says how; the names of its functions are read from there.
include(CheckCXXSourceCompiles)

# ckplan_support_older_glibc(TARGETS...)
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
