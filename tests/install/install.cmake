# SPDX-License-Identifier: Apache-2.0
# Into an empty prefix, so that nothing of an earlier installation can help.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
# pkg-config files carry the prefix chosen at configure time; ours is chosen now.
file(GLOB files "${PREFIX}/lib*/pkgconfig/*.pc" "${PREFIX}/lib/*/pkgconfig/*.pc")
if(NOT files)
  message(FATAL_ERROR "no pkg-config file was installed below ${PREFIX}")
endif()
