include(CMakePackageConfigHelpers)

install(TARGETS glassbox_static glassbox_shared EXPORT glassbox-targets)
install(TARGETS glassbox)
install(TARGETS glassbox-chip glassbox-call DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/glassbox)
install(DIRECTORY include/glassbox TYPE INCLUDE)
install(FILES ${GBX_MAN_PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/completions/glassbox.bash RENAME glassbox
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/completions/_glassbox DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
# Works with any version of Python, so it is not installed into one: users add it to PYTHONPATH.
install(DIRECTORY python/glassbox DESTINATION ${CMAKE_INSTALL_DATADIR}/glassbox/python
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

# Relative, so that an installed tree can be moved.
file(RELATIVE_PATH GBX_PKGCONFIG_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/glassbox.pc.in glassbox.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/glassbox.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/glassbox)
install(EXPORT glassbox-targets NAMESPACE glassbox:: DESTINATION ${package_dir})
configure_package_config_file(cmake/glassbox-config.cmake.in glassbox-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(glassbox-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/glassbox-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/glassbox-config-version.cmake DESTINATION ${package_dir})
