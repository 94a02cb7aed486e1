# Fails if README.md, another page next to it or a page of docs/ names a missing path of this repository.
#
#   cmake -DSOURCE_DIR=... -P check_docs_paths.cmake
#
# `lib/a/b.{h,cc}` and `lib/a/b` stand for lib/a/b.*. Paths with capitals, such as `lib/executor/cpu/ops/FAMILY.cc`,
# are patterns for readers and are not checked.
file(GLOB pages ${SOURCE_DIR}/*.md ${SOURCE_DIR}/docs/*.md)
set(missing "")
foreach(page IN LISTS pages)
  file(READ ${page} text)
  string(REGEX MATCHALL "[A-Za-z0-9_./{},*-]+" words "${text}")
  list(REMOVE_DUPLICATES words)
  foreach(word IN LISTS words)
    if(NOT word MATCHES "^(cli|docs|lib|schemas|scripts|testdata)/" OR word MATCHES "[A-Z][A-Z]")
      continue()
    endif()
    string(REGEX REPLACE "[.,/]+$" "" path "${word}")
    string(REGEX REPLACE "{.*" "*" path "${path}")
    file(GLOB found ${SOURCE_DIR}/${path} ${SOURCE_DIR}/${path}.*)
    if(NOT found)
      file(RELATIVE_PATH name ${SOURCE_DIR} ${page})
      string(APPEND missing "\n  ${name}: ${word}")
    endif()
  endforeach()
endforeach()
if(missing)
  message(FATAL_ERROR "these pages name paths that are not there:${missing}")
endif()
