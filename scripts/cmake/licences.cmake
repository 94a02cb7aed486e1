# Installs the licences of the libraries that are linked into programs for other machines, or installed next
# to them. The texts come from the place where each library is installed, so they match the versions in the
# programs. In a wheel they are next to ckplan's own licence, in an archive in the folder of documents.
include(GNUInstallDirs)
if(SKBUILD_METADATA_DIR)
  set(ckplan_licence_folder ${SKBUILD_METADATA_DIR}/licenses)
else()
  set(ckplan_licence_folder ${CMAKE_INSTALL_DOCDIR}/licenses)
endif()

# ckplan_install_licence(LIBRARY FILES...): installs the files into the folder LIBRARY.
function(ckplan_install_licence library)
  install(FILES ${ARGN} DESTINATION ${ckplan_licence_folder}/${library})
endfunction()

# ckplan_find_licence(LIBRARY [PACKAGE...] [HINTS FOLDER...]): installs the licence from a distribution's
# package of one of these names, or from one of the folders. If neither has it, -DCKPLAN_LICENCE_LIBRARY=FILE
# names it.
function(ckplan_find_licence library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HINTS")
  set(suffixes)
  foreach(package IN LISTS arg_UNPARSED_ARGUMENTS)
    list(APPEND suffixes share/licenses/${package} share/doc/${package})
  endforeach()
  find_file(CKPLAN_LICENCE_${library}
    NAMES copyright LICENSE LICENSE.txt LICENSE.md LICENSE.MIT LICENSE.rst COPYING
    HINTS ${arg_HINTS}
    PATHS ${CMAKE_PREFIX_PATH} ${CMAKE_SYSTEM_PREFIX_PATH}
    PATH_SUFFIXES ${suffixes}
    NO_DEFAULT_PATH)
  mark_as_advanced(CKPLAN_LICENCE_${library})
  if(CKPLAN_LICENCE_${library})
    ckplan_install_licence(${library} ${CKPLAN_LICENCE_${library}})
  else()
    message(WARNING "The licence of ${library}, which is linked into the programs, was not found; "
      "-DCKPLAN_LICENCE_${library}=FILE names it.")
  endif()
endfunction()

# Installs the licences of libraries that are linked statically or compiled in from headers.
function(ckplan_install_linked_licences)
  ckplan_find_licence(onnx onnx libonnx-dev
    HINTS ${CKPLAN_ONNX_SOURCE_DIR} ${CKPLAN_DEPS_DIR}/onnx-${ONNX_VERSION})
  ckplan_find_licence(protobuf libprotobuf-dev protobuf protobuf-devel)
  if(absl_FOUND)  # protobuf uses abseil from version 22 on.
    ckplan_find_licence(abseil libabsl-dev abseil-cpp abseil-cpp-devel)
  endif()
  ckplan_find_licence(fmt libfmt-dev fmt fmt-devel)
  ckplan_find_licence(nlohmann_json nlohmann-json3-dev nlohmann-json nlohmann_json json-devel)
  ckplan_find_licence(CLI11 libcli11-dev cli11 cli11-devel)
  ckplan_find_licence(tomlplusplus libtomlplusplus-dev tomlplusplus tomlplusplus-devel)
endfunction()
