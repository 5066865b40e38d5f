file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n    " bytes
  "${bytes}")
file(WRITE ${OUTPUT}
  "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n    ${bytes}0};\n")
