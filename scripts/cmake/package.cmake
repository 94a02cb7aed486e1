# `cmake --install` puts the programs where the prefix says; `cpack` makes an archive and a Debian
# package of the same. Included by the root's CMakeLists.txt after all targets.
include(GNUInstallDirs)
if(NOT SKBUILD_METADATA_DIR)  # pyproject.toml puts it into a wheel.
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
if(CKPLAN_PORTABLE OR CKPLAN_WHEEL)
  ckplan_install_linked_licences()
endif()

set(CPACK_PACKAGE_VENDOR "ckplan")
set(CPACK_PACKAGE_CONTACT "ckplan's developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TGZ)
find_program(CKPLAN_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(CKPLAN_DPKG_SHLIBDEPS)
if(CKPLAN_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  # Reads from the program which packages hold the shared libraries that it needs.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
