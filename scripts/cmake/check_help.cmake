# Fails unless each script answers --help with what it is for, and does nothing else: it runs in a copy that
# has no build folder, and nothing may appear there.
#
#   cmake -DSOURCE_DIR=DIR -DFOLDER=SCRATCH -P scripts/cmake/check_help.cmake
file(REMOVE_RECURSE ${FOLDER})
file(COPY ${SOURCE_DIR}/scripts ${SOURCE_DIR}/.ci DESTINATION ${FOLDER}
     PATTERN __pycache__ EXCLUDE)
file(COPY ${SOURCE_DIR}/python/benchmarks DESTINATION ${FOLDER}/python # Some scripts import from there.
     PATTERN __pycache__ EXCLUDE)
file(GLOB_RECURSE before RELATIVE ${FOLDER} ${FOLDER}/*)
file(GLOB scripts RELATIVE ${FOLDER} ${FOLDER}/scripts/* ${FOLDER}/scripts/lint.d/*
     ${FOLDER}/.ci/run)
set(count 0)
foreach(script IN LISTS scripts)
  if(IS_DIRECTORY ${FOLDER}/${script})
    continue()
  endif()
  file(READ ${FOLDER}/${script} start LIMIT 2)
  if(NOT start MATCHES "^#!")
    continue()
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${FOLDER}/${script} --help
                  RESULT_VARIABLE status OUTPUT_VARIABLE help ERROR_VARIABLE errors)
  string(LENGTH "${help}" length)
  if(NOT status EQUAL 0 OR length LESS 60)
    message(FATAL_ERROR "${script} --help: status ${status}, output: ${help}${errors}")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
file(GLOB_RECURSE after RELATIVE ${FOLDER} ${FOLDER}/*)
if(NOT after STREQUAL before)
  message(FATAL_ERROR "--help wrote files: ${after}")
endif()
if(count LESS 15)
  message(FATAL_ERROR "only ${count} scripts were found")
endif()
