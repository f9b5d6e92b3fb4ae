# SPDX-License-Identifier: Apache-2.0
# Into an empty prefix, so that nothing of an earlier installation can help.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
