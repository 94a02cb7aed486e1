# Installs ckplan as a library, in the component "dev": one archive, the headers that lib/ckplan.h reaches, and
# what find_package and pkg-config read. The root's CMakeLists.txt includes this file after all targets.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# ckplan_collect_archives(VARIABLE TARGET...): sets VARIABLE to our own static libraries among the targets and what
# they link.
function(ckplan_collect_archives variable)
  set(found "")
  set(waiting ${ARGN})
  while(waiting)
    list(POP_FRONT waiting target)
    if(target MATCHES "LINK_ONLY:([^>]+)>")
      set(target ${CMAKE_MATCH_1})
    endif()
    if(NOT TARGET ${target} OR NOT target MATCHES "^ckplan_" OR target IN_LIST found)
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND waiting ${links})
    endif()
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND found ${target})
    endif()
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

ckplan_collect_archives(archives ckplan_input)
set(members "")
foreach(target IN LISTS archives)
  list(APPEND members $<TARGET_FILE:${target}>)
endforeach()
# ONNX is linked in, since a machine rarely has the release that ckplan needs.
foreach(target ONNX::onnx ONNX::onnx_proto)
  if(TARGET ${target})
    list(APPEND members $<TARGET_FILE:${target}>)
  endif()
endforeach()
set(archive ${CMAKE_BINARY_DIR}/embed/libckplan.a)
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${archive} "-DMEMBERS=${members}"
          -P ${PROJECT_SOURCE_DIR}/scripts/cmake/join_archives.cmake
  DEPENDS ${archives} ${PROJECT_SOURCE_DIR}/scripts/cmake/join_archives.cmake
  COMMENT "Joining the library" VERBATIM)
add_custom_target(ckplan_embed ALL DEPENDS ${archive})
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)

# ckplan_reached_headers(VARIABLE HEADER): sets VARIABLE to the header and all that it includes.
function(ckplan_reached_headers variable)
  set(found "")
  set(waiting ${ARGN})
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"lib/")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND waiting ${lines})
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

set(include_dir ${CMAKE_INSTALL_INCLUDEDIR}/ckplan)
ckplan_reached_headers(headers lib/ckplan.h)
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${include_dir}/${folder} COMPONENT dev)
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/embed/ckplan.h "#pragma once\n#include \"lib/ckplan.h\"\n")
install(FILES ${CMAKE_BINARY_DIR}/embed/ckplan.h DESTINATION ${include_dir} COMPONENT dev)

# A HiGHS that scripts/setup built is installed beside the programs; any other must be found again.
set(CKPLAN_HAS_HIGHS ${CKPLAN_HIGHS_FOUND})
set(highs_library "")
if(CKPLAN_HIGHS_FOLDER)
  set(highs_library ${CMAKE_INSTALL_LIBDIR}/ckplan/libhighs.so)
  install(FILES ${CKPLAN_HIGHS_FOLDER}/lib/libhighs.so DESTINATION ${CMAKE_INSTALL_LIBDIR}/ckplan COMPONENT dev)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ckplan)
configure_package_config_file(${PROJECT_SOURCE_DIR}/scripts/cmake/ckplanConfig.cmake.in
  ${CMAKE_BINARY_DIR}/embed/ckplanConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_LIBDIR include_dir)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/embed/ckplanConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/embed/ckplanConfig.cmake ${CMAKE_BINARY_DIR}/embed/ckplanConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT dev)

set(highs_flags "")
if(CKPLAN_HIGHS_FOUND)
  set(highs_flags "-lhighs")
  if(CKPLAN_HIGHS_FOLDER)
    set(highs_flags "\${libdir}/ckplan/libhighs.so -Wl,-rpath,\${libdir}/ckplan")
  endif()
endif()
configure_file(${PROJECT_SOURCE_DIR}/scripts/cmake/ckplan.pc.in ${CMAKE_BINARY_DIR}/embed/ckplan.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/embed/ckplan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(CKPLAN_TESTS AND NOT CKPLAN_SANITIZE)
  ckplan_add_test(embed ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DBINARY_DIR=${CMAKE_BINARY_DIR}
                  -DPROGRAM=$<TARGET_FILE:ckplan> -DCOMPILER=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR}
                  -P ${PROJECT_SOURCE_DIR}/scripts/cmake/check_embed.cmake)
endif()
