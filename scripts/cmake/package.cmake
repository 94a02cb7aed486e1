# `cmake --install` installs the programs under the prefix; `cpack` makes an archive and a Debian package of
# them. The root's CMakeLists.txt includes this file after all targets.
include(GNUInstallDirs)
if(NOT SKBUILD_METADATA_DIR)  # For wheels, pyproject.toml includes it.
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
if(CKPLAN_PORTABLE OR CKPLAN_WHEEL)
  ckplan_install_linked_licences()
endif()

# Manual pages and completions are printed by their program, and installed where Debian's shells look for
# them.
function(ckplan_install_pages program)
  set(pages ${CMAKE_BINARY_DIR}/pages/${program})
  add_custom_command(OUTPUT ${pages}.stamp
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${program}> -DNAME=${program} -DFOLDER=${pages} -DSTAMP=${pages}.stamp
            -P ${PROJECT_SOURCE_DIR}/scripts/cmake/write_pages.cmake
    DEPENDS ${program} ${PROJECT_SOURCE_DIR}/scripts/cmake/write_pages.cmake
    COMMENT "Writing manual pages and completions of ${program}" VERBATIM)
  add_custom_target(${program}_pages ALL DEPENDS ${pages}.stamp)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${pages}/${program}.bash RENAME ${program}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/_${program} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${pages}/${program}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()

if(NOT SKBUILD_METADATA_DIR AND NOT CMAKE_CROSSCOMPILING)
  foreach(program ckplan ckexec)
    if(TARGET ${program})
      ckplan_install_pages(${program})
    endif()
  endforeach()
endif()

set(CPACK_PACKAGE_VENDOR "ckplan")
set(CPACK_PACKAGE_CONTACT "ckplan's developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
# Packages have the programs, and not the component "dev".
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};ckplan;Unspecified;/")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR TGZ)
find_program(CKPLAN_DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(CKPLAN_DPKG_SHLIBDEPS)
if(CKPLAN_DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  # The packages with the needed shared libraries are read from the program.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
