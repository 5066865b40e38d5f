# Manual pages and completions, from the tables of the commands.
gbx_program(generate-docs scripts/generate_docs.c $<TARGET_OBJECTS:glassbox_commands>)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/cli/commands.c)
file(READ src/cli/commands.c commands)
string(REGEX MATCHALL "X\\([a-z]+\\)" commands "${commands}")
set(GBX_MAN_PAGES ${CMAKE_BINARY_DIR}/man/glassbox.1)
foreach(line ${commands})
  string(REGEX MATCH "[a-z]+" name ${line})
  if(NOT name STREQUAL help)
    list(APPEND GBX_MAN_PAGES ${CMAKE_BINARY_DIR}/man/glassbox-${name}.1)
  endif()
endforeach()
file(GLOB GBX_MAN_PROSE CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.roff)
set(GBX_COMPLETIONS ${CMAKE_BINARY_DIR}/completions/glassbox.bash ${CMAKE_BINARY_DIR}/completions/_glassbox)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man ${CMAKE_BINARY_DIR}/completions)

add_custom_command(OUTPUT ${GBX_MAN_PAGES}
  COMMAND generate-docs man ${CMAKE_SOURCE_DIR}/docs/man ${GBX_MAN_PAGES}
  DEPENDS generate-docs ${GBX_MAN_PROSE} VERBATIM)
foreach(output ${GBX_COMPLETIONS})
  get_filename_component(name ${output} NAME)
  add_custom_command(OUTPUT ${output}
    COMMAND generate-docs completion ${CMAKE_SOURCE_DIR}/completions/${name}.in ${output}
    DEPENDS generate-docs ${CMAKE_SOURCE_DIR}/completions/${name}.in VERBATIM)
endforeach()
add_custom_target(generated_docs ALL DEPENDS ${GBX_MAN_PAGES} ${GBX_COMPLETIONS})
