# HiGHS as the target highs::highs, for lib/mip. Versions before 1.15 lack options that lib/planning/mip sets
# so that its results are the same everywhere.

# Finds an installed one; else takes the one that scripts/setup unpacked in FOLDER. Sets
# CKPLAN_HIGHS_FOUND, CKPLAN_HIGHS_VERSION, and CKPLAN_HIGHS_FOLDER where it is the unpacked one.
macro(ckplan_find_highs)
  set(CKPLAN_HIGHS_FOUND OFF)
  set(CKPLAN_HIGHS_FOLDER "")
  find_package(highs 1.15 CONFIG QUIET)
  if(TARGET highs::highs)
    set(CKPLAN_HIGHS_FOUND ON)
    set(CKPLAN_HIGHS_VERSION "${highs_VERSION}")
  elseif(EXISTS "${ARGN}/lib/libhighs.so")
    # Its own CMake package names a folder that the wheel does not have, and asks for a BLAS, which
    # neither the simplex method nor branch and bound needs.
    add_library(highs::highs SHARED IMPORTED)
    set_target_properties(highs::highs PROPERTIES
      IMPORTED_LOCATION "${ARGN}/lib/libhighs.so"
      IMPORTED_SONAME libhighs.so
      INTERFACE_INCLUDE_DIRECTORIES "${ARGN}/include;${ARGN}/include/highs")
    set(CKPLAN_HIGHS_FOUND ON)
    set(CKPLAN_HIGHS_FOLDER "${ARGN}")
    file(STRINGS "${ARGN}/include/highs/HConfig.h" CKPLAN_HIGHS_VERSION REGEX "define HIGHS_VERSION_")
    string(REGEX REPLACE "[^0-9;]" "" CKPLAN_HIGHS_VERSION "${CKPLAN_HIGHS_VERSION}")
    list(JOIN CKPLAN_HIGHS_VERSION "." CKPLAN_HIGHS_VERSION)
  endif()
endmacro()

# Makes the installed PROGRAMS find HiGHS: one that scripts/setup fetched is installed beside them,
# one that the machine had already stays where it is.
function(ckplan_install_highs)
  if(NOT CKPLAN_HIGHS_FOLDER)
    set_target_properties(${ARGN} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    return()
  endif()
  include(GNUInstallDirs)
  set(folder ${CMAKE_INSTALL_LIBDIR}/ckplan)
  file(RELATIVE_PATH up /${CMAKE_INSTALL_BINDIR} /${folder})
  set_property(TARGET ${ARGN} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/${up}")
  install(FILES ${CKPLAN_HIGHS_FOLDER}/lib/libhighs.so DESTINATION ${folder})
  ckplan_install_licence(highs ${CKPLAN_HIGHS_FOLDER}/share/doc/HIGHS/LICENSE.txt)
endfunction()
