# One target per folder of lib/, with exactly the links that docs/architecture.md draws.
#
#   ckplan_library(schedule
#     SOURCES simulate.cc ...
#     DEPENDS base graph cost          the only folders of lib/ that its files may include
#     PACKAGES fmt::fmt                outside libraries, private to this folder
#     PUBLIC_HEADERS schedule.h ...    what other folders may include of it, if not all its headers
#     TESTS simulate_test.cc ...       one doctest program per folder, registered with CTest
#     PART_OF cuda                     the folder of lib/ that it is a part of, if it is no folder itself
#     QUICK_BUILD                      needs no speed: optimized less, compiled in less time
#     ALONE)                           its files use the same names for their own, so each is compiled alone
#                                      also where CMAKE_UNITY_BUILD is on
#
# DEPENDS is enforced twice: the linker sees nothing else, and check_includes.cmake reads the
# #include lines, which would otherwise let a header slip through. check_walls.cmake does the same for
# outside libraries and for headers that a folder keeps to itself, in all files, tests and programs
# included.
file(GLOB_RECURSE ckplan_all_files CONFIGURE_DEPENDS lib/*.h lib/*.cc lib/*.cu cli/*.h cli/*.cc)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/walls.stamp
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DSTAMP=${CMAKE_BINARY_DIR}/walls.stamp
          "-DPUBLIC_HEADERS=$<TARGET_PROPERTY:ckplan_walls,CKPLAN_PUBLIC_HEADERS>"
          -P ${PROJECT_SOURCE_DIR}/scripts/cmake/check_walls.cmake
  DEPENDS ${ckplan_all_files} ${PROJECT_SOURCE_DIR}/scripts/cmake/check_walls.cmake
  COMMENT "Checking who includes outside libraries and private headers" VERBATIM)
add_custom_target(ckplan_walls ALL DEPENDS ${CMAKE_BINARY_DIR}/walls.stamp)
add_custom_target(ckplan_includes DEPENDS ckplan_walls) # All such checks, of every folder.

# ckplan_options(TARGET [QUICK_BUILD] [ALONE])
function(ckplan_options target)
  if(ALONE IN_LIST ARGN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(QUICK_BUILD IN_LIST ARGN)
    ckplan_quick_build(${target})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # Fields that a designated initializer leaves out have defaults: that is what defaults are for.
  set(warnings -Wall -Wextra -Wno-missing-field-initializers -Wconversion -Wshadow -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND warnings -Wno-sign-conversion) # In C++, gcc's -Wconversion does not include it.
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    if(CMAKE_UNITY_BUILD)
      # GCC takes files that are compiled as one for headers, and sees faults that are none (its bug 105651).
      list(APPEND warnings -Wno-subobject-linkage -Wno-restrict)
    endif()
    # It warns of the unset half of a Result that is moved (its bug 105562), in one run and not in the next;
    # clang and the sanitizers look for reads of what was never written.
    list(APPEND warnings -Wno-maybe-uninitialized)
  endif()
  if(CKPLAN_WERROR)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${warnings}>)
  if(CKPLAN_SANITIZE)
    # gcc and clang name their sanitizers' macros differently.
    target_compile_definitions(${target} PRIVATE CKPLAN_SANITIZED)
    target_compile_options(${target} PRIVATE -fsanitize=${CKPLAN_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${CKPLAN_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # With sanitizers GCC warns of faults inside its own headers (its bug 105562).
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
  endif()
endfunction()

# For tests, and for code in which a run spends little time: less optimization, shorter builds.
function(ckplan_quick_build target)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-O0>)
endfunction()

# Reads the #include lines of a folder's sources and of all headers in it.
function(ckplan_check_includes target folder sources allowed)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h ${CMAKE_CURRENT_SOURCE_DIR}/ops/*.h)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/includes.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} "-DALLOWED=${allowed}" -DSTAMP=${stamp}
            -DSOURCE_DIR=${CMAKE_CURRENT_SOURCE_DIR} "-DFILES=${sources};${headers}"
            -P ${PROJECT_SOURCE_DIR}/scripts/cmake/check_includes.cmake
    DEPENDS ${sources} ${headers} ${PROJECT_SOURCE_DIR}/scripts/cmake/check_includes.cmake
    COMMENT "Checking who lib/${folder} includes" VERBATIM)
  add_custom_target(${target}_includes DEPENDS ${stamp})
  add_dependencies(${target} ${target}_includes ckplan_walls)
  add_dependencies(ckplan_includes ${target}_includes)
endfunction()

# A folder that has only headers.
function(ckplan_headers folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND ckplan_ OUTPUT_VARIABLE links)
  add_library(ckplan_${folder} INTERFACE)
  target_link_libraries(ckplan_${folder} INTERFACE ${links})
  ckplan_check_includes(ckplan_${folder} ${folder} "" "${ARG_DEPENDS}")
endfunction()

function(ckplan_library folder)
  cmake_parse_arguments(ARG "QUICK_BUILD;ALONE" "PART_OF"
                        "SOURCES;DEPENDS;PACKAGES;PUBLIC_HEADERS;TESTS;TEST_DEPENDS" ${ARGN})
  set(whole ${folder})
  if(ARG_PART_OF)
    set(whole ${ARG_PART_OF})
  endif()
  set(target ckplan_${folder})
  list(TRANSFORM ARG_DEPENDS PREPEND ckplan_ OUTPUT_VARIABLE links)
  add_library(${target} STATIC ${ARG_SOURCES})
  set(options)
  foreach(option QUICK_BUILD ALONE)
    if(ARG_${option})
      list(APPEND options ${option})
    endif()
  endforeach()
  ckplan_options(${target} ${options})
  target_link_libraries(${target} PUBLIC ${links} PRIVATE ${ARG_PACKAGES})

  list(TRANSFORM ARG_PUBLIC_HEADERS PREPEND ${whole}/)
  set_property(TARGET ckplan_walls APPEND PROPERTY CKPLAN_PUBLIC_HEADERS ${ARG_PUBLIC_HEADERS})
  ckplan_check_includes(${target} ${whole} "${ARG_SOURCES}" "${ARG_DEPENDS}")

  if(CKPLAN_TESTS AND ARG_TESTS)
    list(TRANSFORM ARG_TEST_DEPENDS PREPEND ckplan_ OUTPUT_VARIABLE test_links)
    ckplan_test(${folder} SOURCES ${ARG_TESTS} LINKS ${target} ${test_links})
  endif()
endfunction()

# Ends the named tests where they hang; docs/reliability.md says how `seconds` is chosen: CPU time, at least
# ten times what each of their processes takes as a Release build. Without optimization and with sanitizers
# they get more. What waits, and takes no CPU time, is ended after two hours, or as much longer.
function(ckplan_time_limit seconds)
  set(factor 1)
  if(CKPLAN_SANITIZE)
    set(factor 12)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(factor 4)
  endif()
  math(EXPR cpu_seconds "${seconds} * ${factor}")
  math(EXPR wall_seconds "7200 * ${factor}")
  # OMP_WAIT_POLICY: threads that spin while they wait for others would make CPU time depend on other programs.
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${wall_seconds}
    ENVIRONMENT "CKPLAN_CPU_SECONDS=${cpu_seconds};OMP_WAIT_POLICY=passive")
endfunction()

# ckplan_add_test(NAME PROGRAM ARGUMENT...): run by CTest with the project's root as its folder, and with a
# time limit, which ckplan_time_limit raises where the test takes long. PROGRAM: a target, or a path.
function(ckplan_add_test name program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${name}
           COMMAND sh -c "ulimit -S -t \"$CKPLAN_CPU_SECONDS\" && exec \"$@\"" sh ${program} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  ckplan_time_limit(900 ${name})
endfunction()

# A doctest program ckplan_NAME_test, registered with CTest.
# ckplan_test(NAME SOURCES... LINKS... [ALONE])
function(ckplan_test name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;LINKS" ${ARGN})
  set(target ckplan_${name}_test)
  if(NOT TARGET ckplan_doctest_main) # doctest itself, compiled once for all of them
    add_library(ckplan_doctest_main OBJECT ${PROJECT_SOURCE_DIR}/lib/testing/doctest_main.cc)
    ckplan_options(ckplan_doctest_main QUICK_BUILD)
    target_link_libraries(ckplan_doctest_main PRIVATE doctest::doctest)
  endif()
  add_executable(${target} ${ARG_SOURCES})
  set(options QUICK_BUILD)
  if(ARG_ALONE)
    list(APPEND options ALONE)
  endif()
  ckplan_options(${target} ${options})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS} ckplan_doctest_main doctest::doctest)
  ckplan_add_test(${name} ${target})
endfunction()
