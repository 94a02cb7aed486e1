# One target per folder of lib/, with exactly the links that docs/architecture.md draws.
#
#   ckplan_library(schedule
#     SOURCES simulate.cc ...
#     DEPENDS base graph cost          the only other folders of lib/ that its files may include
#     PACKAGES fmt::fmt                outside libraries, private to this folder
#     PUBLIC_HEADERS schedule.h ...    the headers that other folders may include; by default all
#     TESTS simulate_test.cc ...       one doctest program per folder, registered with CTest
#     IN chen                          where its files are, if not in the folder of the CMakeLists.txt
#     PART_OF cuda                     the folder of lib/ that it belongs to, if it is not a folder
#     QUICK_BUILD                      needs no speed: is optimized less and compiled faster
#     ALONE)                           its files use the same names for their own, so each is compiled alone
#                                      also where CMAKE_UNITY_BUILD is on
#
# DEPENDS is enforced twice. The linker sees nothing else, and check_includes.cmake reads the #include lines,
# because a header alone needs no linking. check_walls.cmake does the same for outside libraries and for
# private headers of a folder, in all files including tests and programs.
file(GLOB_RECURSE ckplan_all_files CONFIGURE_DEPENDS lib/*.h lib/*.cc lib/*.cu cli/*.h cli/*.cc)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/walls.stamp
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DSTAMP=${CMAKE_BINARY_DIR}/walls.stamp
          "-DPUBLIC_HEADERS=$<TARGET_PROPERTY:ckplan_walls,CKPLAN_PUBLIC_HEADERS>"
          -P ${PROJECT_SOURCE_DIR}/scripts/cmake/check_walls.cmake
  DEPENDS ${ckplan_all_files} ${PROJECT_SOURCE_DIR}/scripts/cmake/check_walls.cmake
  COMMENT "Checking who includes outside libraries and private headers" VERBATIM)
add_custom_target(ckplan_walls ALL DEPENDS ${CMAKE_BINARY_DIR}/walls.stamp)
add_custom_target(ckplan_includes DEPENDS ckplan_walls) # All such checks of all folders.

# ckplan_options(TARGET [QUICK_BUILD] [ALONE])
function(ckplan_options target)
  if(ALONE IN_LIST ARGN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  if(QUICK_BUILD IN_LIST ARGN)
    ckplan_quick_build(${target})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # Fields that a designated initializer leaves out have default values, so this needs no warning.
  set(warnings -Wall -Wextra -Wno-missing-field-initializers -Wconversion -Wshadow -Wnon-virtual-dtor)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(APPEND warnings -Wno-sign-conversion) # gcc's -Wconversion does not include this in C++.
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    if(CMAKE_UNITY_BUILD)
      # GCC treats files that are compiled as one as headers, and reports false faults (its bug 105651).
      list(APPEND warnings -Wno-subobject-linkage -Wno-restrict)
    endif()
    # GCC warns about the unset half of a Result that is moved (its bug 105562), in one run but not in the
    # next. clang and the sanitizers detect reads of unwritten memory.
    list(APPEND warnings -Wno-maybe-uninitialized)
  endif()
  if(CKPLAN_WERROR)
    list(APPEND warnings -Werror)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${warnings}>)
  if(CKPLAN_SANITIZE)
    # gcc and clang use different names for their sanitizers' macros.
    target_compile_definitions(${target} PRIVATE CKPLAN_SANITIZED)
    target_compile_options(${target} PRIVATE -fsanitize=${CKPLAN_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${CKPLAN_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # With sanitizers GCC warns about its own headers (its bug 105562).
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
  endif()
endfunction()

# For tests, and for code that takes little of a run's time: less optimization, shorter builds.
function(ckplan_quick_build target)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-O0>)
endfunction()

# Checks the #include lines of a folder's sources and of all headers in it.
function(ckplan_check_includes target folder dir sources allowed)
  file(GLOB headers CONFIGURE_DEPENDS ${dir}/*.h ${dir}/ops/*.h)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${target}_includes.stamp)
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

# Declares a folder that has only headers.
function(ckplan_headers folder)
  cmake_parse_arguments(ARG "" "IN" "DEPENDS" ${ARGN})
  list(TRANSFORM ARG_DEPENDS PREPEND ckplan_ OUTPUT_VARIABLE links)
  add_library(ckplan_${folder} INTERFACE)
  target_link_libraries(ckplan_${folder} INTERFACE ${links})
  ckplan_check_includes(ckplan_${folder} ${folder} ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_IN} "" "${ARG_DEPENDS}")
endfunction()

function(ckplan_library folder)
  cmake_parse_arguments(ARG "QUICK_BUILD;ALONE" "IN;PART_OF"
                        "SOURCES;DEPENDS;PACKAGES;PUBLIC_HEADERS;TESTS;TEST_DEPENDS" ${ARGN})
  set(whole ${folder})
  if(ARG_PART_OF)
    set(whole ${ARG_PART_OF})
  endif()
  set(target ckplan_${folder})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR})
  if(ARG_IN)
    string(APPEND dir /${ARG_IN})
    list(TRANSFORM ARG_SOURCES PREPEND ${ARG_IN}/)
    list(TRANSFORM ARG_TESTS PREPEND ${ARG_IN}/)
  endif()
  foreach(other IN LISTS ARG_DEPENDS)
    if(NOT TARGET ckplan_${other})
      message(FATAL_ERROR "lib/${folder} links ${other}, which stands after it in lib/CMakeLists.txt")
    endif()
  endforeach()
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

  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/lib ${dir})
  list(TRANSFORM ARG_PUBLIC_HEADERS PREPEND ${path}/)
  set_property(TARGET ckplan_walls APPEND PROPERTY CKPLAN_PUBLIC_HEADERS ${ARG_PUBLIC_HEADERS})
  ckplan_check_includes(${target} ${whole} ${dir} "${ARG_SOURCES}" "${ARG_DEPENDS}")

  if(CKPLAN_TESTS AND ARG_TESTS)
    list(TRANSFORM ARG_TEST_DEPENDS PREPEND ckplan_ OUTPUT_VARIABLE test_links)
    ckplan_test(${folder} SOURCES ${ARG_TESTS} LINKS ${target} ${test_links})
  endif()
endfunction()

# Ends the named tests if they hang. docs/reliability.md says how `seconds` is chosen: CPU time, at least ten
# times the time of each of their processes in a Release build. Builds without optimization and with
# sanitizers get more time. A test that waits without using CPU time is ended after two hours, or later by the
# same factor.
function(ckplan_time_limit seconds)
  set(factor 1)
  if(CKPLAN_SANITIZE)
    set(factor 12)
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(factor 4)
  endif()
  math(EXPR cpu_seconds "${seconds} * ${factor}")
  math(EXPR wall_seconds "7200 * ${factor}")
  # Without OMP_WAIT_POLICY, threads that spin while they wait would make CPU time depend on other programs.
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${wall_seconds}
    ENVIRONMENT "CKPLAN_CPU_SECONDS=${cpu_seconds};OMP_WAIT_POLICY=passive")
endfunction()

# ckplan_add_test(NAME PROGRAM ARGUMENT...): a test that CTest runs in the project's root, with a time limit,
# which ckplan_time_limit raises for long tests. PROGRAM is a target or a path.
function(ckplan_add_test name program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  set(configurations)
  if(CKPLAN_TEST_ON_DEMAND)
    set(configurations CONFIGURATIONS on-demand)
  endif()
  add_test(NAME ${name} ${configurations}
           COMMAND sh -c "ulimit -S -t \"$CKPLAN_CPU_SECONDS\" && exec \"$@\"" sh ${program} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  ckplan_time_limit(900 ${name})
endfunction()

# ckplan_test(NAME SOURCES... LINKS... [ARGUMENTS...] [ALONE] [ON_DEMAND]): a doctest program ckplan_NAME_test,
# registered with CTest. With ON_DEMAND it is built only if it is named, and run only by ctest -C on-demand.
function(ckplan_test name)
  cmake_parse_arguments(ARG "ALONE;ON_DEMAND" "" "SOURCES;LINKS;ARGUMENTS" ${ARGN})
  set(target ckplan_${name}_test)
  if(NOT TARGET ckplan_doctest_main) # doctest itself is compiled once for all tests
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
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ${ARG_ON_DEMAND})
  set(CKPLAN_TEST_ON_DEMAND ${ARG_ON_DEMAND}) # ckplan_add_test reads it.
  ckplan_add_test(${name} ${target} ${ARG_ARGUMENTS})
endfunction()
