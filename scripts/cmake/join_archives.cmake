# Makes one archive of the objects of several: OUTPUT of MEMBERS, by the archiver AR.
file(REMOVE ${OUTPUT})
set(script "CREATE ${OUTPUT}\n")
foreach(member IN LISTS MEMBERS)
  string(APPEND script "ADDLIB ${member}\n")
endforeach()
file(WRITE ${OUTPUT}.mri "${script}SAVE\nEND\n")
execute_process(COMMAND ${AR} -M INPUT_FILE ${OUTPUT}.mri COMMAND_ERROR_IS_FATAL ANY)
