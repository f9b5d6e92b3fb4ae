# SPDX-License-Identifier: Apache-2.0
# Part of an installation: PROGRAM says its manual page and its completions, they are made in WORK and installed into the
# folders MAN and SHARE (which DESTDIR is put before). A shell that is not there does no harm.
file(MAKE_DIRECTORY "${WORK}")
execute_process(COMMAND "${PROGRAM}" man COMMAND gzip -9n OUTPUT_FILE "${WORK}/postrider.1.gz" COMMAND_ERROR_IS_FATAL ANY)
file(INSTALL "${WORK}/postrider.1.gz" DESTINATION "${MAN}/man1")

# Debian's zsh looks below /usr for what packages bring, and elsewhere for what administrators do.
set(zsh_folder zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_folder zsh/vendor-completions)
endif()
set(shells bash zsh fish)
set(folders bash-completion/completions ${zsh_folder} fish/vendor_completions.d)
set(names postrider _postrider postrider.fish)
foreach(one IN ZIP_LISTS shells folders names)
  set(made "${WORK}/completion-${one_0}/${one_2}")
  file(MAKE_DIRECTORY "${WORK}/completion-${one_0}")
  execute_process(COMMAND "${PROGRAM}" completion ${one_0} OUTPUT_FILE "${made}" COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL "${made}" DESTINATION "${SHARE}/${one_1}")
endforeach()
