# SPDX-License-Identifier: Apache-2.0
# Run with cmake -P; see PostriderMigrations.cmake. Inputs: BACKEND, FOLDER, NAMES (comma separated), OUTPUT.
cmake_minimum_required(VERSION 3.25)

set(delimiter "postrider_sql")
set(chunk 8000) # MSVC takes 16 KiB in one piece

# Writes the file as adjacent raw literals, cut after a line's end (never inside a character) where possible.
function(literal_of file variable)
  file(READ "${file}" rest)
  string(FIND "${rest}" ")${delimiter}\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${file}: contains the text )${delimiter}\", which cannot be embedded")
  endif()
  set(result "")
  string(LENGTH "${rest}" length)
  while(length GREATER chunk)
    string(SUBSTRING "${rest}" 0 ${chunk} piece)
    string(FIND "${piece}" "\n" cut REVERSE)
    if(cut EQUAL -1)
      string(FIND "${rest}" "\n" cut)
    endif()
    if(cut EQUAL -1)
      break()
    endif()
    math(EXPR cut "${cut} + 1")
    string(SUBSTRING "${rest}" 0 ${cut} piece)
    string(SUBSTRING "${rest}" ${cut} -1 rest)
    string(LENGTH "${rest}" length)
    string(APPEND result "R\"${delimiter}(${piece})${delimiter}\"\n")
  endwhile()
  string(APPEND result "R\"${delimiter}(${rest})${delimiter}\"")
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" names "${NAMES}")
set(entries "")
set(seen "")
foreach(name IN LISTS names)
  if(NOT name MATCHES "^([0-9][0-9][0-9])_([a-z0-9_]+)\\.(up|down)\\.sql$")
    message(FATAL_ERROR "${FOLDER}/${name}: a migration is called NNN_name.up.sql or NNN_name.down.sql")
  endif()
  set(number "${CMAKE_MATCH_1}")
  set(title "${CMAKE_MATCH_2}")
  set(direction "${CMAKE_MATCH_3}")
  if(direction STREQUAL "down")
    if(NOT "${number}_${title}.up.sql" IN_LIST names)
      message(FATAL_ERROR "${FOLDER}/${name}: there is no ${number}_${title}.up.sql beside it")
    endif()
    continue()
  endif()
  if(NOT "${number}_${title}.down.sql" IN_LIST names)
    message(FATAL_ERROR "${FOLDER}/${name}: there is no ${number}_${title}.down.sql beside it")
  endif()
  if(number IN_LIST seen)
    message(FATAL_ERROR "${FOLDER}/${name}: number ${number} is taken by another migration")
  endif()
  list(APPEND seen "${number}")
  string(REGEX REPLACE "^0+" "" version "${number}")
  if(version STREQUAL "")
    message(FATAL_ERROR "${FOLDER}/${name}: migrations are numbered from 001")
  endif()
  literal_of("${FOLDER}/${name}" up)
  literal_of("${FOLDER}/${number}_${title}.down.sql" down)
  string(APPEND entries "    {${version}, \"${title}\",\n${up},\n${down}},\n")
endforeach()

set(body "  return {};\n")
if(seen)
  set(body "  static constexpr EmbeddedMigration migrations[] = {\n${entries}  };\n  return migrations;\n")
endif()
file(WRITE "${OUTPUT}"
"// Generated from ${BACKEND}/migrations/*.sql; changes here are lost.
#include <span>

#include \"storage/embedded_migration.hpp\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace postrider::${BACKEND} {

std::span<const EmbeddedMigration> embedded_migrations();

std::span<const EmbeddedMigration> embedded_migrations() {
${body}}

}  // namespace postrider::${BACKEND}
")
