# oneDNN as the target DNNL::dnnl, for the executor. Below 3.2 its batched matmul and its plain
# reorders lack what lib/executor/cpu asks for (and version 2 is another interface).

# Finds an installed one; the folders PREFIX... are searched last. Sets CKPLAN_ONEDNN_FOUND, and where that is OFF,
# CKPLAN_ONEDNN_MISSING: why.
macro(ckplan_find_onednn)
  set(CKPLAN_ONEDNN_FOUND OFF)
  set(CKPLAN_ONEDNN_MISSING "no oneDNN >= 3.2 is installed")
  find_package(dnnl 3.2 CONFIG QUIET PATHS ${ARGN})
  if(TARGET DNNL::dnnl)
    # Another runtime would have threads that the executor does not control.
    if(DNNL_CPU_THREADING_RUNTIME STREQUAL "OMP")
      set(CKPLAN_ONEDNN_FOUND ON)
    else()
      set(CKPLAN_ONEDNN_MISSING "the oneDNN in ${dnnl_DIR} was not built with OpenMP")
    endif()
  endif()
endmacro()

# Makes the installed PROGRAM find oneDNN: one that scripts/setup fetched is installed beside it,
# one that the machine had already stays where it is.
function(ckplan_install_onednn program)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${dnnl_DIR}" NORMALIZE is_ours)
  if(NOT is_ours)
    set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    return()
  endif()
  include(GNUInstallDirs)
  set(folder ${CMAKE_INSTALL_LIBDIR}/ckplan)
  file(RELATIVE_PATH up /${CMAKE_INSTALL_BINDIR} /${folder})
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${up}")
  install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION ${folder}
          RENAME $<TARGET_SONAME_FILE_NAME:DNNL::dnnl>)
  ckplan_install_licence(onednn ${dnnl_DIR}/../../../share/doc/onednn/LICENSE
                         ${dnnl_DIR}/../../../share/doc/onednn/THIRD-PARTY-PROGRAMS)
  if(CKPLAN_WHEEL)  # auditwheel puts the OpenMP that both are built with beside them.
    ckplan_find_licence(libgomp libgomp1 libgomp gcc-libs)
  endif()
endfunction()
