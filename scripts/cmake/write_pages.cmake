# Writes the pages that a program prints about itself: manual pages in FOLDER/man1, completions next to them.
#
#   PROGRAM   the program
#   NAME      its name: ckplan or ckexec
#   FOLDER    where to write
#   STAMP     the file to touch when all is written
cmake_minimum_required(VERSION 3.25)

# print_page(FILE ARGUMENTS...)
function(print_page file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${FOLDER}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER}/man1)
print_page(${NAME}.bash completion bash)
print_page(_${NAME} completion zsh)
print_page(${NAME}.fish completion fish)
print_page(man1/${NAME}.1 man)
# The program's own page names the pages of its commands.
file(STRINGS ${FOLDER}/man1/${NAME}.1 lines REGEX "${NAME}.*[(]1[)]$")
if(NOT lines)
  message(FATAL_ERROR "The manual page of ${PROGRAM} names no page of a command.")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^.*${NAME}.*-([a-z]+).*$" "\\1" command "${line}")
  print_page(man1/${NAME}-${command}.1 man ${command})
endforeach()
file(TOUCH ${STAMP})
