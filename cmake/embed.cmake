# Writes a C file that defines `const char NAME[]` with the text of a file, again whenever that changes.
function(gbx_embed_text input name output)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DNAME=${name} -DOUTPUT=${output}
      -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${input} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    VERBATIM)
endfunction()
