# SPDX-License-Identifier: Apache-2.0
# postrider_migrations(<variable> <backend>): embeds src/backends/<backend>/migrations/NNN_name.{up,down}.sql.
#
# The generated source defines
#   namespace postrider::<backend> { std::span<const EmbeddedMigration> embedded_migrations(); }
# and is made anew whenever one of the files changes, appears or disappears.
function(postrider_migrations variable backend)
  set(folder "${PROJECT_SOURCE_DIR}/src/backends/${backend}/migrations")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_migrations.cmake")
  set(output "${PROJECT_BINARY_DIR}/generated/${backend}_migrations.cpp")
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*.sql")
  # The list is part of the command, so a file that appears or disappears changes the command.
  set(names "")
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    list(APPEND names "${name}")
  endforeach()
  list(JOIN names "," names)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DBACKEND=${backend}" "-DFOLDER=${folder}" "-DNAMES=${names}" "-DOUTPUT=${output}"
            -P "${script}"
    DEPENDS ${files} "${script}"
    COMMENT "Embedding the ${backend} migrations"
    VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()
